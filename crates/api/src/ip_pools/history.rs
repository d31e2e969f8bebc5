//! ip_pools/history: daily counts of the messages sent by an address.

use std::net::IpAddr;

use crate::documented::ToSchema;
use postroad_model::Timestamp;
use postroad_openapi_macros::request_fields;
use postroad_store::SourceDay;
use serde::Serialize;

use super::shared_params::read_address;
use crate::account_params::page_flags;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in an answer.
const DAY_BYTES: usize = 512;

/// The address, and the page of the list.
#[request_fields]
#[schema(example = json!({"address": "192.0.2.1"}))]
pub(crate) struct HistoryIn {
    /// IPv4 or IPv6 address of a pool.
    address: String,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryOut {
    items: Vec<DayOut>,
}

/// Messages of one UTC day to one receiver group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DayOut {
    #[schema(example = "2026-11-15")]
    day: String,
    #[schema(example = "google")]
    provider: String,
    sent: u64,
    bounced: u64,
    complained: u64,
}

/// Get the daily message counts of an address
///
/// Messages sent, bounced and complained about, by day and receiver group, newest day first. Empty for a pool that is
/// not the account's own, because others send from it as well.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/history",
    tag = "ip_pools",
    operation_id = "listIpPoolHistory",
    request_body = HistoryIn,
    responses((status = 200, body = crate::documented::Answer<HistoryOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<HistoryOut>, Failure> {
    let mut findings = Findings::default();
    let (address, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * DAY_BYTES).await?.into();
    let (days, has_more) = call.app.pool_address_history(&call.caller, address, after, limit).await?;
    let position = |day: &SourceDay| format!("{} {}", day.day.as_micros(), day.provider);
    let next = days.last().filter(|_| has_more).map(position);
    let items = days.into_iter().map(DayOut::from).collect();
    Ok(Success { data: HistoryOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `HistoryIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<HistoryPage, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let address = read_address(&mut fields, findings);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| {
        let (day, provider) = text.split_once(' ')?;
        Some((Timestamp::from_micros(day.parse().ok()?), provider.to_owned()))
    });
    fields.finish(findings);
    Ok((address, after, limit))
}

/// Address, the day and provider after which the page begins, limit.
type HistoryPage = (IpAddr, Option<(Timestamp, String)>, usize);

impl From<SourceDay> for DayOut {
    fn from(day: SourceDay) -> Self {
        let text = day.day.to_rfc3339();
        Self {
            day: text.split('T').next().unwrap_or_default().to_owned(),
            provider: day.provider,
            sent: day.counts.sent,
            bounced: day.counts.bounced,
            complained: day.counts.complained,
        }
    }
}
