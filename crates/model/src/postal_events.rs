//! Events that Postal's webhook format can express (docs/webhooks.md).

use crate::event::{EventKind, EventSet};

/// Events that `"all"` selects in that format.
pub fn postal_events() -> EventSet {
    [
        EventKind::Delivered,
        EventKind::Delayed,
        EventKind::Bounced,
        EventKind::Failed,
        EventKind::Held,
        EventKind::Opened,
        EventKind::Clicked,
        EventKind::DomainFailing,
        EventKind::SendLimitApproaching,
        EventKind::SendLimitExceeded,
    ]
    .into_iter()
    .collect()
}
