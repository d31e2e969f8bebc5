//! Corrections of the webhook outbox. It may have millions of rows, so pages along its primary key are read first. Only
//! pages with events that are due in the future, or (on PostgreSQL) claimed for longer than usual, are written.

use std::time::Duration;

use postroad_model::Timestamp;

use crate::error::StoreError;
use crate::sql::{Sql, Value};
use crate::webhooks::outbox::CLAIM_DURATION;

/// A position before every row.
pub(crate) const START: RowKey = [0; 3];
const END: RowKey = [i64::MAX; 3];

/// The primary key of an outbox row: server, webhook, event.
type RowKey = [i64; 3];

/// A part of the outbox: the rows after `after`, up to and including `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    after: RowKey,
    last: RowKey,
}

impl Page {
    fn params(&self) -> Vec<Value> {
        self.after.iter().chain(&self.last).map(|part| (*part).into()).collect()
    }

    /// Position at which the next page begins; `None` after the last page.
    pub(crate) fn next(&self) -> Option<RowKey> {
        Some(self.last).filter(|last| *last != END)
    }
}

/// The next page of `rows` rows, and whether any of them is due in the future or claimed for too long.
pub(crate) async fn find_page(
    sql: &Sql<'_>,
    now: Timestamp,
    after: RowKey,
    rows: i64,
) -> Result<(Page, bool), StoreError> {
    let text = "SELECT server_id, webhook_id, event_id FROM webhook_queue
        WHERE (server_id, webhook_id, event_id) > ($1, $2, $3)
        ORDER BY server_id, webhook_id, event_id LIMIT 1 OFFSET $4";
    let params = [after[0].into(), after[1].into(), after[2].into(), (rows - 1).into()];
    let last = match sql.query_opt(text, &params).await? {
        Some(row) => [row.int(0)?, row.int(1)?, row.int(2)?],
        None => END,
    };
    let page = Page { after, last };
    let text = if sql.is_sqlite() {
        "SELECT event_id FROM webhook_queue
         WHERE (server_id, webhook_id, event_id) > ($1, $2, $3)
           AND (server_id, webhook_id, event_id) <= ($4, $5, $6) AND due_at > $7 LIMIT 1"
    } else {
        "SELECT event_id FROM webhook_queue
         WHERE (server_id, webhook_id, event_id) > ($1, $2, $3)
           AND (server_id, webhook_id, event_id) <= ($4, $5, $6) AND (due_at > $7 OR claimed_until > $8) LIMIT 1"
    };
    let mut params = page.params();
    params.push(now.into());
    if !sql.is_sqlite() {
        params.push(now.plus(CLAIM_DURATION).into());
    }
    Ok((page, sql.query_opt(text, &params).await?.is_some()))
}

/// Lowers `due_at` of a page's events to at most `now` plus the pause after their last attempt. `pauses` are the pauses
/// after attempt 1, 2, … Returns the number of changed events.
pub(crate) async fn bring_forward(
    sql: &Sql<'_>,
    now: Timestamp,
    pauses: &[Duration],
    page: Page,
) -> Result<u64, StoreError> {
    let mut changed = 0;
    let steps = std::iter::once(Duration::ZERO).chain(pauses.iter().copied());
    let last = pauses.len() as i64;
    for (attempts, pause) in (0_i64..).zip(steps) {
        let attempts_max = if attempts == last { i64::MAX } else { attempts };
        let mut params = page.params();
        params.extend([now.plus(pause).into(), attempts.into(), attempts_max.into()]);
        changed += sql
            .execute(
                "UPDATE webhook_queue SET due_at = $7
                 WHERE (server_id, webhook_id, event_id) > ($1, $2, $3)
                   AND (server_id, webhook_id, event_id) <= ($4, $5, $6)
                   AND due_at > $7 AND attempts >= $8 AND attempts <= $9",
                &params,
            )
            .await?;
    }
    if !sql.is_sqlite() {
        // Claims taken while the clock was ahead would also last too long.
        let mut params = page.params();
        params.push(now.plus(CLAIM_DURATION).into());
        let text = "UPDATE webhook_queue SET claimed_until = $7
            WHERE (server_id, webhook_id, event_id) > ($1, $2, $3)
              AND (server_id, webhook_id, event_id) <= ($4, $5, $6) AND claimed_until > $7";
        sql.execute(text, &params).await?;
    }
    Ok(changed)
}
