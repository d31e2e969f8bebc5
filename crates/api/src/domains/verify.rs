//! domains/verify: check the records now.

use std::time::Duration;

use super::domain_out::DomainOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;
use crate::rate_limit::RateLimit;

/// Check a domain now
///
/// Looks the records up and returns the domain. If it was checked within the last 10 seconds, returns that result.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/verify",
    tag = "domains",
    operation_id = "verifyDomain",
    request_body = super::get::DomainNameIn,
    responses((status = 200, body = crate::documented::Answer<DomainOut>)),
)]
pub(crate) async fn handle(mut call: AccountCall) -> Result<Success<DomainOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    // Looking up the records may take long; the request's memory is freed before.
    call.free_request();
    let checked = call.app.verify_domain_as(&call.caller, owner, &name).await.map_err(Failure::from);
    let resets_in = checked.as_ref().map_or(Duration::ZERO, |view| call.app.verify_again_in(&view.domain));
    let mut answer = Success::with_warnings(checked.map(DomainOut::from), warnings)?;
    let remaining = u32::from(resets_in.is_zero());
    answer.flags.rate_limit = Some(RateLimit { limit: 1, remaining, resets_in });
    Ok(answer)
}
