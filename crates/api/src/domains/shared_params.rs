//! Fields shared by several calls of domains/*.

use postroad_app::domains::{DkimKeyRequest, NamedOwner};
use postroad_model::ServerId;

use crate::account_params::{read_account, read_integer};
use crate::fields::{Fields, Findings};

pub(super) fn read_name(fields: &mut Fields<'_>, findings: &mut Findings) -> String {
    if fields.is_absent("name") {
        findings.missing("name");
    }
    fields.text("name", findings).unwrap_or_default().into_owned()
}

/// Takes `server` and `account`, which name the owner.
pub(super) fn read_owner(fields: &mut Fields<'_>, findings: &mut Findings) -> NamedOwner {
    let server = read_integer(fields, "server", findings).map(ServerId);
    NamedOwner { server, account: read_account(fields, findings) }
}

pub(super) fn read_dkim_key(fields: &mut Fields<'_>, findings: &mut Findings) -> DkimKeyRequest {
    DkimKeyRequest {
        private_key: fields.text("private_key", findings).map(Into::into),
        selector: fields.text("selector", findings).map(Into::into),
        algorithm: fields.text("algorithm", findings).map(Into::into),
    }
}
