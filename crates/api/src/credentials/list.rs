//! credentials/list: a page of credentials.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::{CredentialId, ServerId};
use postroad_openapi_macros::request_fields;
use postroad_store::CredentialFilter;
use serde::Serialize;

use super::credential_out::CredentialOut;
use crate::account_params::{page_flags, read_account, read_integer};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in the answer.
const ENTRY_BYTES: usize = 2 << 10;

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListCredentialsIn {
    /// Id of a server: only its credentials.
    server: Option<i64>,
    /// Only those with this name.
    name: Option<String>,
    /// `true`: only revoked credentials; `false`: only those not revoked; all if left out.
    revoked: Option<bool>,
    /// Id of an account. If left out, the operator's key lists the credentials of all accounts, an account key those of
    /// its own.
    account: Option<i64>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialListOut {
    items: Vec<CredentialOut>,
}

/// List credentials
///
/// In order of creation, including expired ones and those revoked in the last 90 days, but not those of deleted servers.
#[crate::documented::path(
    post,
    path = "/api/v1/credentials/list",
    tag = "credentials",
    operation_id = "listCredentials",
    request_body = ListCredentialsIn,
    responses((status = 200, body = crate::documented::Answer<CredentialListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<CredentialListOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_credentials_as(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(CredentialOut::from).collect();
    Ok(Success { data: CredentialListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListCredentialsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(CredentialFilter, Option<CredentialId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = CredentialFilter {
        server_id: read_integer(&mut fields, "server", findings).map(ServerId),
        name: fields.text("name", findings).map(Cow::into_owned),
        name_part: None,
        revoked: fields.flag("revoked", findings),
        account_id: read_account(&mut fields, findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(CredentialId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
