//! Which events Postal's webhook format has a name for (contract 7).

use crate::event::{EventKind, EventSet};

/// What `"all"` means for a webhook of that format.
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
