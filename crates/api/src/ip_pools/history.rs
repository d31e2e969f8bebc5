//! ip_pools/history: messages sent by an address.

use crate::documented::ToSchema;
use postroad_store::SourceDay;
use serde::Serialize;

use super::remove_address::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Memory of an answer: an address has a row for each day and receiver group.
const ANSWER_BYTES: usize = 512 << 10;
/// Newest rows that are shown.
const DAYS_MAX: usize = 2_000;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryOut {
    /// In time order.
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

/// List the messages that an address sent
///
/// By day and receiver group, the newest 2,000 entries. Empty for a pool that is not the account's own, because others
/// send from it as well.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/history",
    tag = "ip_pools",
    operation_id = "listIpPoolHistory",
    request_body = super::remove_address::AddressIn,
    responses((status = 200, body = crate::documented::Answer<HistoryOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<HistoryOut>, Failure> {
    let mut findings = Findings::default();
    let address = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let memory = call.reserve_answer(ANSWER_BYTES).await?;
    let days = call.app.pool_address_history(&call.caller, address).await?;
    let newest = days.len().saturating_sub(DAYS_MAX);
    let items = days.into_iter().skip(newest).map(DayOut::from).collect();
    let answer = Success::with_warnings(Ok(HistoryOut { items }), warnings)?;
    Ok(Success { memory: memory.into(), ..answer })
}

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
