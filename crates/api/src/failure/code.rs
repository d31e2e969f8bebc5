//! Table of the error codes, with cause and fix. The list of codes in the OpenAPI document and the table in
//! docs/http-api.md are made from it. `Reason::row` and `app` say which failure has which code.

use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A value of `data.code`.
pub(crate) struct ErrorCode {
    pub(crate) name: &'static str,
    pub(crate) cause: &'static str,
    /// What the caller can do about the failure.
    pub(crate) fix: &'static str,
}

const fn code(name: &'static str, cause: &'static str, fix: &'static str) -> ErrorCode {
    ErrorCode { name, cause, fix }
}

impl ErrorCode {
    /// All codes, in the order of the documentation.
    pub(crate) const ALL: &[Self] = &[
        code(
            "ValidationError",
            "fields are missing or wrong; `status` is `parameter-error`",
            "correct every field that `data.errors` names",
        ),
        code("NoRecipients", "`to`, `cc` and `bcc` are all empty", "name at least one recipient"),
        code(
            "NoContent",
            "`plain_body` and `html_body` are empty and there is no `template`; attachments alone are not enough",
            "add a body or a template",
        ),
        code("TooManyToAddresses", "`to` has over 50 addresses", "split the send"),
        code("TooManyCCAddresses", "`cc` has over 50 addresses", "split the send"),
        code("TooManyBCCAddresses", "`bcc` has over 50 addresses", "split the send"),
        code("FromAddressMissing", "there is no `from`", "set it to an address of a verified domain"),
        code(
            "UnauthenticatedFromAddress",
            "the domain of `from` or `sender` is not a verified domain of the server or its account",
            "add and verify the domain, or send from a verified one",
        ),
        code("AttachmentMissingName", "an attachment has no `name`", "name every attachment"),
        code("AttachmentMissingData", "an attachment has no `data`", "add the file's content in base64"),
        code(
            "IdempotencyConflict",
            "the idempotency key was used for another request",
            "use a new key for a new request",
        ),
        code(
            "IdempotencyInProgress",
            "the first request with this key is still in progress",
            "repeat the request a moment later",
        ),
        code(
            "BatchRejected",
            "an atomic batch has messages that cannot be sent; `results` says which and why",
            r#"correct them, or send the batch with `mode: "independent"`"#,
        ),
        code(
            "MessageNotScheduled",
            "the message has no `send_at`, or is held or cancelled",
            "nothing to cancel; cancel a held message with `messages/cancel_hold`",
        ),
        code(
            "TooLateToCancel",
            "the message is being sent at this moment, or was sent",
            "nothing: it can no longer be stopped",
        ),
        code(
            "MessageNotFound",
            "the server has no message with this id",
            "check the id, and that the key belongs to the message's server",
        ),
        code(
            "MessageNotQueued",
            "the message to be retried is scheduled, held, sent or finished",
            "`send/reschedule` moves scheduled messages, `messages/release` queues held ones",
        ),
        code(
            "MessageNotHeld",
            "the message to be released or cancelled is not held",
            "nothing: it is queued, sent or finished",
        ),
        code(
            "HourlyLimitReached",
            "the held message to be released does not fit under the hourly limit of its server",
            "release it in the next hour",
        ),
        code(
            "DevelopmentServer",
            "the operator or the account made the server a development server, so that its held messages are not released",
            "ask them to make the server live",
        ),
        code(
            "AccountLimitReached",
            "the held message to be released does not fit under a limit of its account",
            "release it when the period is over, or ask the operator",
        ),
        code("MessageInDelivery", "the message is being sent right now", "look again in a minute"),
        code(
            "MessageTextNeeded",
            "other recipients of the message to be erased still wait for delivery, and share its text",
            "erase it again when they are done, or cancel them",
        ),
        code(
            "RecipientSuppressed",
            "the recipient of the held message is suppressed, so that a release would hold it again at once",
            "remove the suppression first",
        ),
        code(
            "JobNotFound",
            "the server has no job with this id",
            "jobs are kept for 30 days after their end",
        ),
        code("TooManyJobs", "the server has 10 running jobs", "wait until one has ended"),
        code("WebhookNotFound", "the server has no webhook with this id", "list them with `webhooks/list`"),
        code(
            "EventNotFound",
            "the event no longer exists, or never did",
            "events are kept for a limited time; replay earlier",
        ),
        code("TooManyWebhooks", "the server has the maximum number of webhooks", "delete one first"),
        code("SuppressionNotFound", "the address is not suppressed", "nothing to do"),
        code(
            "DomainNotFound",
            "neither the server nor its account has the domain",
            "check the name, or add it with domains/create",
        ),
        code(
            "DomainExists",
            "the server (with an account key: the account) has the domain already",
            "use `domains/get`",
        ),
        code(
            "TooManyDomains",
            "the server (with an account key: the account) has the maximum number of domains (`domains.per_server`, 1,000 unless the operator changes it)",
            "delete one first",
        ),
        code(
            "DomainNotVerified",
            "`domains/reports` of a domain that is not verified",
            "have it verified first",
        ),
        code(
            "DomainsBusy",
            "too many domains are being added or checked at this moment, of your account or of all",
            "try again in a few seconds (`Retry-After`)",
        ),
        code(
            "TemplateNotFound",
            "the server has no template with this id or alias",
            "list them with `templates/list`",
        ),
        code(
            "TemplateVersionNotFound",
            "the template has no such version, or it was removed",
            "list them with `templates/versions`",
        ),
        code(
            "TemplateInvalid",
            "a text of the template has an error; `errors` has part, line and column of each",
            "correct it; `templates/validate` checks texts without saving",
        ),
        code(
            "TemplateVariableMissing",
            "the model lacks a variable; `variable`, `part`, `line` and `did_you_mean` say which",
            "add it to the model, or use `default` in the template",
        ),
        code(
            "TemplateRenderingFailed",
            "the template cannot be rendered with this model, or would take too much work; `part` and `line` say where",
            "correct the template or the model",
        ),
        code("TemplateNotPublished", "the template of the send is only a draft", "`templates/publish`"),
        code("NothingToRollBackTo", "no other version was published before", "name one with `version`"),
        code("TemplateAliasTaken", "another template of the server has the alias", "choose another"),
        code("TemplateInUse", "templates use this layout", "give them another layout first"),
        code("TooManyTemplates", "the server has 500 templates", "delete one first"),
        code("AccountNotFound", "the key has no account with this id", "check the id"),
        code("UserNotFound", "the account has no person with this id", "list them with `users/list`"),
        code(
            "InvitationNotFound",
            "the account has no open invitation with this id",
            "list them with `users/invitations`",
        ),
        code(
            "SessionNotFound",
            "the person has no open session with this id",
            "list them with `users/sessions`",
        ),
        code(
            "UserExists",
            "a person with this address is in the account already",
            "change the person with `users/update`",
        ),
        code("LastOwner", "the account would be left without an owner", "make somebody else an owner first"),
        code(
            "AccountKeyNotFound",
            "the account has no API key with this id",
            "list them with `account_keys/list`",
        ),
        code(
            "ServerNotFound",
            "the account has no server with this id, or it is deleted",
            "list them with `servers/list`",
        ),
        code(
            "CredentialNotFound",
            "no server of the account has a credential with this id",
            "list them with `credentials/list`",
        ),
        code(
            "AccountExists",
            "the operator gave an account a name that another has (an account that renames itself may choose any name)",
            "choose another",
        ),
        code("IpPoolNotFound", "the account has no pool with this id", "list them with `ip_pools/list`"),
        code("IpAddressNotFound", "no pool of the account has the address", "list them with `ip_pools/list`"),
        code(
            "IpPoolExists",
            "another pool has the name, or there is a shared one already",
            "choose another name, or use the shared pool that exists",
        ),
        code("IpAddressExists", "the address is in a pool already", "remove it there first"),
        code(
            "SuspendedByOperator",
            "the operator suspended the server, so its account can neither resume it nor change the reason",
            "ask the operator",
        ),
        code(
            "IpPoolInUse",
            "the pool has addresses, or servers send from it",
            "remove its addresses, and give its servers another pool",
        ),
        code("ServerExists", "another server of the account has the name", "choose another"),
        code(
            "VersionConflict",
            "the object was changed since you read the version in `if_version`",
            "read it again, and repeat the change if it still applies",
        ),
        code(
            "CredentialEnded",
            "the credential is revoked, expired or replaced; or it is to be rotated and has no secret, because it is for SMTP without a password",
            "create a new one",
        ),
        code(
            "CeilingExceeded",
            "a setting is above its ceiling, or the account has the maximum number of servers, domains, webhooks or people",
            "stay below the ceiling that `data.errors` names, or ask whoever set it",
        ),
        code(
            "InvalidServerAPIKey",
            "the key is missing, unknown, revoked, expired, or not for this network; the answer repeats the key that was sent, as Postal's does",
            "send a valid key in `X-Server-API-Key`",
        ),
        code(
            "InvalidAccountAPIKey",
            "the same for an account's key, but the answer does not repeat it",
            "send a valid key in `X-Account-API-Key`",
        ),
        code(
            "InvalidOperatorAPIKey",
            "the same for the operator's key",
            "send a valid key in `X-Operator-API-Key`",
        ),
        code(
            "ServerSuspended",
            "the server or its account is suspended or deleted",
            "`servers/resume` or `servers/restore` with an account key, if the account did it; else ask the operator",
        ),
        code("AccountSuspended", "the account is suspended or deleted", "ask the operator"),
        code(
            "AccessDenied",
            "the key's scope does not include this call, it is a test key, or the call needs another kind of key, as changes of an account's domain do",
            "use a key of the kind or scope that the message names",
        ),
        code(
            "UnknownEndpoint",
            "there is no such path",
            "check group and action in [endpoints.md](endpoints.md)",
        ),
        code("MethodNotAllowed", "the endpoint does not accept this method", "use POST"),
        code("BadRequest", "the request is not valid HTTP", "correct the client"),
        code("RequestTooLarge", "the body is over the limit", "send less; link to large files"),
        code(
            "Maintenance",
            "the service is in maintenance; nothing was accepted",
            "repeat after `Retry-After`",
        ),
        code(
            "ServiceUnavailable",
            "the store is unavailable, or a limit on memory or on calls in progress is reached",
            "repeat after `Retry-After`, with an idempotency key",
        ),
        code("InternalError", "a bug in Postroad", "report the `request_id`"),
    ];
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let names = Self::ALL.iter().map(|code| code.name);
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("All values of `data.code`."))
            .enum_values(Some(names));
        RefOr::T(Schema::Object(schema.build()))
    }
}

impl ToSchema for ErrorCode {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    /// Heading of the table in docs/http-api.md; the table ends at the first empty line.
    const HEADING: &str = "\n| code | cause | fix |\n|---|---|---|\n";

    fn rows() -> String {
        let mut rows = String::new();
        for ErrorCode { name, cause, fix } in ErrorCode::ALL {
            writeln!(rows, "| `{name}` | {cause} | {fix} |").unwrap();
        }
        rows
    }

    #[test]
    fn the_page_lists_the_codes_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http-api.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(HEADING).expect("the page has a table of error codes");
        let (listed, after) = rest.split_once("\n\n").expect("text follows the table");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, format!("{before}{HEADING}{}\n{after}", rows())).unwrap();
            return;
        }
        assert!(
            format!("{listed}\n") == rows(),
            "docs/http-api.md does not list the codes of failure/code.rs; UPDATE_GOLDEN=1 rewrites the table"
        );
    }

    #[test]
    fn every_code_is_listed_once_and_explained() {
        let mut names = BTreeSet::new();
        for ErrorCode { name, cause, fix } in ErrorCode::ALL {
            assert!(names.insert(name), "{name} is listed twice");
            for text in [cause, fix] {
                assert!(!text.is_empty() && !text.contains(['|', '\n']), "{name}: {text:?}");
            }
        }
    }
}
