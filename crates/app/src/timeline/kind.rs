//! Kinds of timeline items, and the items of events. The macro `kinds!` declares all kinds.

use postroad_model::EventKind;
use postroad_store::Event;
use serde_json::Value;

use super::TimelineItem;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)+) => {
        /// What a timeline item is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum TimelineKind {
            $($(#[$doc])* $variant),+
        }

        impl TimelineKind {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Name in the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    Accepted = "accepted";
    Queued = "queued";
    Rescheduled = "rescheduled";
    Held = "held";
    Released = "released";
    /// The DNS answer before an attempt.
    Dns = "dns";
    Attempt = "attempt";
    /// A wait before or after an attempt.
    Wait = "wait";
    /// Why a queued message waits now; the last item.
    Waiting = "waiting";
    // From here to `Cancelled`, and sometimes `Held` and `Queued`: a delivery record without an attempt, such as that of a
    // message in test mode, or of one that expired.
    Sent = "sent";
    Delayed = "delayed";
    Failed = "failed";
    Bounced = "bounced";
    Cancelled = "cancelled";
    Opened = "opened";
    Clicked = "clicked";
    Unsubscribed = "unsubscribed";
    Complained = "complained";
    /// An attempt to post an event of the message to a webhook.
    Webhook = "webhook";
}

/// The item of an event; `None` for events without one, such as those whose delivery record is shown.
pub(super) fn of_event(event: &Event) -> Option<TimelineItem> {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let by_bot = if data["bot"] == true { ", probably by a program" } else { "" };
    let (kind, text) = match event.kind {
        EventKind::Released => (TimelineKind::Released, "Released from its hold and queued".to_owned()),
        EventKind::Opened => (TimelineKind::Opened, format!("Opened{by_bot}")),
        EventKind::Clicked => {
            let url = data["url"].as_str().unwrap_or("a link");
            (TimelineKind::Clicked, format!("Clicked{by_bot}: {url}"))
        }
        EventKind::Unsubscribed => (TimelineKind::Unsubscribed, "The recipient unsubscribed".to_owned()),
        EventKind::Complained => {
            (TimelineKind::Complained, "The recipient complained about it as spam".to_owned())
        }
        _ => return None,
    };
    Some(TimelineItem { at: event.at, kind, text, data })
}
