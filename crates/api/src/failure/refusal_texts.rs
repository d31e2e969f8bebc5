//! Codes and texts of refused keys, permissions and operations on accounts.

use std::borrow::Cow;

use postroad_app::KeyKind;
use postroad_app::access::{Denial, Level};
use postroad_app::accounts::{AccountRefusal, ObjectKind};

/// Error code and header of a kind of key.
pub(super) fn key_code_and_header(kind: KeyKind) -> (&'static str, &'static str) {
    match kind {
        KeyKind::Server => ("InvalidServerAPIKey", "X-Server-API-Key"),
        KeyKind::Account => ("InvalidAccountAPIKey", "X-Account-API-Key"),
        KeyKind::Operator => ("InvalidOperatorAPIKey", "X-Operator-API-Key"),
    }
}

pub(super) fn account_code_and_text(refusal: &AccountRefusal) -> (&'static str, Cow<'static, str>) {
    match refusal {
        AccountRefusal::NotFound(kind) => {
            let code = match kind {
                ObjectKind::Account => "AccountNotFound",
                ObjectKind::AccountKey => "AccountKeyNotFound",
                ObjectKind::Server => "ServerNotFound",
                ObjectKind::Credential => "CredentialNotFound",
                ObjectKind::User => "UserNotFound",
                ObjectKind::Invitation => "InvitationNotFound",
                ObjectKind::Session => "SessionNotFound",
                ObjectKind::IpPool => "IpPoolNotFound",
                ObjectKind::IpAddress => "IpAddressNotFound",
            };
            let by = if *kind == ObjectKind::IpAddress { "address" } else { "ID" };
            (code, format!("No {} found matching provided {by}", kind.name()).into())
        }
        AccountRefusal::Exists(ObjectKind::Account) => {
            ("AccountExists", "Another account has this name".into())
        }
        AccountRefusal::Exists(ObjectKind::User) => {
            ("UserExists", "A person with this address is in the account already".into())
        }
        AccountRefusal::LastOwner => {
            ("LastOwner", "An account needs an owner: make somebody else one first".into())
        }
        AccountRefusal::Exists(ObjectKind::IpPool) => {
            ("IpPoolExists", "Another pool has this name, or is the shared one".into())
        }
        AccountRefusal::Exists(ObjectKind::IpAddress) => {
            ("IpAddressExists", "The address is in a pool already".into())
        }
        AccountRefusal::Exists(_) => ("ServerExists", "Another server of the account has this name".into()),
        AccountRefusal::OtherVersion(version) => {
            let message =
                format!("The object was changed since: its version is {version}. Get it, and try again");
            ("VersionConflict", message.into())
        }
        AccountRefusal::SetByOperator => (
            "SuspendedByOperator",
            "The operator of the service set this suspension: only the operator can change it".into(),
        ),
        AccountRefusal::PoolInUse => (
            "IpPoolInUse",
            "The pool is in use: remove its addresses and give its servers another pool first".into(),
        ),
        AccountRefusal::CredentialEnded => {
            let message = "The credential is revoked, expired or replaced, or has no secret to rotate; create a new one";
            ("CredentialEnded", message.into())
        }
        // Not reached: `Failure::from` turns these into other reasons.
        AccountRefusal::Refused(_)
        | AccountRefusal::Denied(_)
        | AccountRefusal::TooManyCalls { .. }
        | AccountRefusal::Store(_) => ("InternalError", "An unexpected error occurred".into()),
    }
}

/// Text of `AccessDenied`.
pub(super) fn denial_text(denial: &Denial) -> Cow<'static, str> {
    match denial {
        Denial::ServerScope { scope, needed } => {
            format!("The API key has the scope `{scope}`; this call needs `{needed}` or `full`").into()
        }
        Denial::AccountScopes { scopes, operation } => {
            let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
            let read_scope = if operation.is_read() { ", `read`" } else { "" };
            let (scopes, group) = (scopes.join(", "), operation.group());
            format!("The API key has the scopes `{scopes}`; this call needs `{group}`{read_scope} or `full`")
                .into()
        }
        Denial::TestKey => {
            "The API key is a test key: it can send in test mode and read, but change nothing of the server"
                .into()
        }
        Denial::Role { needed } => format!("This needs the role `{needed}` or a higher one").into(),
        Denial::Kind(Level::Server | Level::ServerOrAccount) => {
            "This call needs the API key of a server, in the header X-Server-API-Key".into()
        }
        Denial::Kind(Level::Account | Level::Person) => {
            "This call needs the API key of an account, in the header X-Account-API-Key".into()
        }
        Denial::Kind(Level::Operator) => {
            "This call needs the API key of the operator, in the header X-Operator-API-Key".into()
        }
        Denial::NotFound => "There is no such object, or it belongs to somebody else".into(),
    }
}
