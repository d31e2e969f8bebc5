//! Counts the messages of a batch against the limits of their accounts: one query for all accounts, and further queries
//! only if a limit is reached or nearly reached.

use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::ClientWrapper;
use postroad_model::{AccountId, MessageId, Timestamp};

use super::pipeline::query;
use crate::accept::account_limits::{Admission, WindowCount};
use crate::accept::initial::{HoldCauses, counted_recipients};
use crate::accept::limit_values::Window;
use crate::accept::{AccountLimits, LimitUse, NewSend};
use crate::error::StoreError;
use crate::events::NewEvent;

/// Adds to the counts of periods, in sorted order to avoid deadlocks between nodes. Deletes periods before the previous
/// one.
const COUNT: &str = "WITH row AS (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
            AS row (account_id, period, number, messages)),
    old AS (
        DELETE FROM account_periods WHERE ctid = ANY (ARRAY(
            SELECT place FROM row CROSS JOIN LATERAL (SELECT periods.ctid AS place FROM account_periods periods
                WHERE periods.account_id = row.account_id AND periods.period = row.period
                  AND periods.number < row.number - 1 OFFSET 0) AS found)))
    INSERT INTO account_periods AS known (account_id, period, number, messages)
    SELECT account_id, period, number, messages FROM row ORDER BY account_id, period, number
    ON CONFLICT (account_id, period, number) DO UPDATE SET messages = known.messages + excluded.messages
    RETURNING account_id, period, messages";

const SUBTRACT: &str = "UPDATE account_periods SET messages = account_periods.messages - row.messages
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
        AS row (account_id, period, number, messages)
    WHERE account_periods.account_id = row.account_id AND account_periods.period = row.period
      AND account_periods.number = row.number";

const ADD_NOTICES: &str = "INSERT INTO account_notices (account_id, kind, data, at)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])";

/// Messages that a batch adds to the periods of an account.
struct AddedMessages {
    limits: AccountLimits,
    /// Time of the latest send.
    at: Timestamp,
    messages: Vec<MessageId>,
}

/// Rows for `COUNT` and `SUBTRACT`, as one array for each column.
#[derive(Default)]
struct PeriodRows {
    accounts: Vec<i64>,
    periods: Vec<i64>,
    numbers: Vec<i64>,
    messages: Vec<i64>,
}

impl PeriodRows {
    fn push(&mut self, account_id: AccountId, window: &Window, messages: usize) {
        self.accounts.push(account_id.0);
        self.periods.push(window.period_code());
        self.numbers.push(window.number);
        self.messages.push(messages as i64);
    }
}

/// Adds hold causes for messages beyond the limits of their accounts; returns the usage of each limit.
pub(super) async fn hold_beyond(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    sends: &[&NewSend],
    causes: &mut HoldCauses,
) -> Result<HashMap<AccountId, Vec<LimitUse>>, StoreError> {
    let mut accounts: BTreeMap<i64, AddedMessages> = BTreeMap::new();
    for send in sends {
        let Some(limits) = send.account_limits else { continue };
        let mut messages = counted_recipients(send, causes).map(|recipient| recipient.id).peekable();
        if messages.peek().is_none() {
            continue;
        }
        let at = send.info.created_at;
        let empty = AddedMessages { limits, at, messages: Vec::new() };
        let entry = accounts.entry(limits.account_id.0).or_insert(empty);
        (entry.limits, entry.at) = (limits, at.max(entry.at));
        entry.messages.extend(messages);
    }
    if accounts.is_empty() {
        return Ok(HashMap::new());
    }
    let totals = count(client, in_transaction, &accounts).await?;
    let (mut uses, mut rows, mut notices) = (HashMap::new(), PeriodRows::default(), Vec::new());
    for AddedMessages { limits, at, messages } in accounts.values() {
        let before = |window: &Window| {
            let total = totals.get(&(limits.account_id.0, window.period_code())).copied().unwrap_or(0);
            total - messages.len() as i64
        };
        let counts = limits.windows(*at).map(|window| WindowCount { window, before: before(&window) });
        let admission = Admission::of(counts.collect(), messages.len());
        admission.hold_beyond(messages, causes);
        uses.insert(limits.account_id, admission.uses(*at).collect());
        if admission.admitted < messages.len() {
            for window in limits.windows(*at) {
                rows.push(limits.account_id, &window, messages.len() - admission.admitted);
            }
        }
        notices.extend(admission.events().into_iter().map(|event| (limits.account_id, *at, event)));
    }
    if !rows.accounts.is_empty() {
        let PeriodRows { accounts, periods, numbers, messages } = &rows;
        query(client, in_transaction, SUBTRACT, &[accounts, periods, numbers, messages]).await?;
    }
    if !notices.is_empty() {
        add_notices(client, in_transaction, &notices).await?;
    }
    Ok(uses)
}

/// Adds the batch's messages to the counts of the accounts' periods; returns the new counts, by account id and
/// `period_code`.
async fn count(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    accounts: &BTreeMap<i64, AddedMessages>,
) -> Result<HashMap<(i64, i64), i64>, StoreError> {
    let mut rows = PeriodRows::default();
    for AddedMessages { limits, at, messages } in accounts.values() {
        for window in limits.windows(*at) {
            rows.push(limits.account_id, &window, messages.len());
        }
    }
    let PeriodRows { accounts, periods, numbers, messages } = &rows;
    let totals = query(client, in_transaction, COUNT, &[accounts, periods, numbers, messages]).await?;
    Ok(totals.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect())
}

async fn add_notices(
    client: &ClientWrapper,
    in_transaction: &mut bool,
    notices: &[(AccountId, Timestamp, NewEvent)],
) -> Result<(), StoreError> {
    let accounts: Vec<i64> = notices.iter().map(|(id, ..)| id.0).collect();
    let kinds: Vec<&str> = notices.iter().map(|(.., event)| event.kind.as_str()).collect();
    let data: Vec<&str> = notices.iter().map(|(.., event)| event.data.as_str()).collect();
    let times: Vec<i64> = notices.iter().map(|(_, at, _)| at.as_micros()).collect();
    query(client, in_transaction, ADD_NOTICES, &[&accounts, &kinds, &data, &times]).await?;
    Ok(())
}
