//! Health of an endpoint: whether its posts fail, and since when.

use postroad_model::{ServerId, Timestamp, WebhookId};

use crate::error::StoreError;
use crate::sql::Sql;

/// Health of an endpoint. Each time is the start of a post: posts count in the order in which they began, not in which
/// they ended, because several run at once, and some take long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Health {
    /// The first known failure after the last success.
    failing_since: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    last_failure_at: Option<Timestamp>,
}

impl Health {
    /// The health after some more posts. If a success becomes known that is later than `failing_since` and earlier than
    /// the last failure, `failing_since` becomes the last failure: failures in between are not stored.
    fn after(
        self,
        successes: impl Iterator<Item = Timestamp>,
        failures: impl Iterator<Item = Timestamp>,
    ) -> Self {
        let last_success_at = successes.chain(self.last_success_at).max();
        let failures: Vec<Timestamp> =
            failures.chain(self.failing_since).chain(self.last_failure_at).collect();
        let is_later = |at: &Timestamp| last_success_at.is_none_or(|success_at| *at > success_at);
        Self {
            failing_since: failures.iter().copied().filter(is_later).min(),
            last_success_at,
            last_failure_at: failures.iter().copied().max(),
        }
    }
}

/// Updates the health of an endpoint after posts that began at these times.
pub(super) async fn update_health(
    sql: &Sql<'_>,
    (server_id, id): (ServerId, WebhookId),
    successes: &[Timestamp],
    failures: &[Timestamp],
) -> Result<(), StoreError> {
    if successes.is_empty() && failures.is_empty() {
        return Ok(());
    }
    let text = if sql.is_sqlite() {
        "SELECT failing_since, last_success_at, last_failure_at FROM webhooks WHERE server_id = $1 AND id = $2"
    } else {
        // The row stays locked until the commit: another node may record posts to the same endpoint.
        "SELECT failing_since, last_success_at, last_failure_at FROM webhooks WHERE server_id = $1 AND id = $2
         FOR NO KEY UPDATE"
    };
    let Some(row) = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await? else { return Ok(()) };
    let before = Health {
        failing_since: row.time_opt(0)?,
        last_success_at: row.time_opt(1)?,
        last_failure_at: row.time_opt(2)?,
    };
    let after = before.after(successes.iter().copied(), failures.iter().copied());
    if after != before {
        let text = "UPDATE webhooks SET failing_since = $3, last_success_at = $4, last_failure_at = $5
                    WHERE server_id = $1 AND id = $2";
        let params = [
            server_id.0.into(),
            id.0.into(),
            after.failing_since.into(),
            after.last_success_at.into(),
            after.last_failure_at.into(),
        ];
        sql.execute(text, &params).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Failing since, the last success, the last failure.
    type HealthTimes = (Option<i64>, Option<i64>, Option<i64>);

    fn after(before: HealthTimes, successes: &[i64], failures: &[i64]) -> HealthTimes {
        let time = |micros: i64| Timestamp::from_micros(micros);
        let before = Health {
            failing_since: before.0.map(time),
            last_success_at: before.1.map(time),
            last_failure_at: before.2.map(time),
        };
        let after = before.after(successes.iter().copied().map(time), failures.iter().copied().map(time));
        let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        (micros(after.failing_since), micros(after.last_success_at), micros(after.last_failure_at))
    }

    #[test]
    fn an_endpoint_fails_since_the_first_known_failure_after_the_last_success() {
        let cases: [(HealthTimes, &[i64], &[i64], HealthTimes); 10] = [
            ((None, None, None), &[], &[5, 3], (Some(3), None, Some(5))),
            ((None, None, None), &[4], &[5, 3], (Some(5), Some(4), Some(5))),
            ((Some(10), Some(8), Some(10)), &[4], &[6], (Some(10), Some(8), Some(10))),
            ((None, Some(8), None), &[], &[6, 12], (Some(12), Some(8), Some(12))),
            ((None, Some(3), None), &[1], &[2, 4], (Some(4), Some(3), Some(4))),
            ((Some(10), Some(3), Some(10)), &[], &[6], (Some(6), Some(3), Some(10))),
            ((Some(6), Some(5), Some(6)), &[7], &[], (None, Some(7), Some(6))),
            ((Some(6), Some(5), Some(6)), &[7], &[9, 8], (Some(8), Some(7), Some(9))),
            ((Some(6), Some(5), Some(9)), &[7], &[], (Some(9), Some(7), Some(9))),
            ((None, Some(5), None), &[], &[5], (None, Some(5), Some(5))),
        ];
        for (before, successes, failures, expected) in cases {
            let found = after(before, successes, failures);
            assert_eq!(found, expected, "{before:?} and then {successes:?}, failures {failures:?}");
        }
    }

    #[test]
    fn whether_an_endpoint_fails_does_not_depend_on_the_order_in_which_posts_end() {
        for outcomes in 0..32 {
            let is_success = |at: i64| outcomes & (1 << at) != 0;
            let times = |wanted: bool| (0..5).filter(|at| is_success(*at) == wanted).collect::<Vec<_>>();
            let (first, success, last) = after((None, None, None), &times(true), &times(false));
            for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [3, 4, 0, 2, 1], [0, 2, 1, 4, 3]]
            {
                let mut state = (None, None, None);
                for at in order {
                    let (successes, failures): (&[i64], &[i64]) =
                        if is_success(at) { (&[at], &[]) } else { (&[], &[at]) };
                    state = after(state, successes, failures);
                }
                assert_eq!((state.1, state.2), (success, last), "{outcomes:b} in the order {order:?}");
                let bounds = first.map(|first| first..=last.unwrap_or(first));
                let is_right =
                    state.0.map_or(bounds.is_none(), |since| bounds.is_some_and(|of| of.contains(&since)));
                assert!(is_right, "{outcomes:b} in the order {order:?}: {state:?}");
            }
        }
    }
}
