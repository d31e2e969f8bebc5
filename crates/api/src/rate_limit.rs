//! `RateLimit-*` headers of calls that count against a limit, and warnings near it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use postroad_app::accounts::CallLimit;
use postroad_app::send::limit_warning;
use postroad_store::LimitUse;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// State of one of the caller's limits after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimit {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) resets_in: Duration,
}

impl From<CallLimit> for RateLimit {
    fn from(CallLimit { limit, remaining, resets_in }: CallLimit) -> Self {
        Self { limit, remaining, resets_in }
    }
}

impl RateLimit {
    /// The limit with the fewest messages remaining; among equals, the one that resets last.
    pub(crate) fn tightest(uses: &[LimitUse]) -> Option<Self> {
        let tightest =
            uses.iter().min_by_key(|used| (used.remaining(), std::cmp::Reverse(used.resets_in)))?;
        let (limit, remaining) = (tightest.limit, tightest.remaining());
        Some(Self { limit, remaining, resets_in: tightest.resets_in })
    }

    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        // Rounded up, so that a client that waits this long is not too early.
        let secs = self.resets_in.as_secs() + u64::from(self.resets_in.subsec_nanos() > 0);
        headers.insert(RESET, HeaderValue::from(secs));
    }
}

/// Adds warnings about limits that are nearly used up.
pub(crate) fn add_warnings(warnings: &mut Vec<String>, uses: &[LimitUse]) {
    warnings.extend(uses.iter().filter_map(limit_warning));
}

#[cfg(test)]
mod tests {
    use postroad_model::LimitPeriod;
    use postroad_store::LimitOwner;

    use super::*;

    #[test]
    fn the_tightest_limit_is_shown() {
        let limit_use = |limit, used, secs: u64| LimitUse {
            owner: LimitOwner::Server,
            period: LimitPeriod::Hour,
            limit,
            used,
            resets_in: Duration::from_millis(secs * 1_000 + 1),
        };
        assert_eq!(RateLimit::tightest(&[]), None);
        let tightest =
            RateLimit::tightest(&[limit_use(10, 12, 60), limit_use(100, 100, 3_600), limit_use(50, 1, 9)])
                .unwrap();
        let mut headers = HeaderMap::new();
        tightest.write(&mut headers);
        assert_eq!(headers["ratelimit-limit"], "100");
        assert_eq!(headers["ratelimit-remaining"], "0");
        assert_eq!(headers["ratelimit-reset"], "3601");
    }
}
