//! Waiting for a message: what test suites do after they made an application send one.

use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::EmailAddress;
use tokio::time::timeout;

use super::{CaughtMessage, Inbox};

/// Which message is waited for; what is not given does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The recipient, compared as mailboxes are: in any letter case.
    pub to: Option<EmailAddress>,
    /// A part of the subject, as it is written.
    pub subject: Option<String>,
}

impl Wanted {
    fn matches(&self, message: &CaughtMessage, to_key: Option<&str>) -> bool {
        to_key.is_none_or(|key| message.rcpt_to.mailbox_key() == key)
            && self.subject.as_ref().is_none_or(|part| message.subject.contains(part))
    }
}

#[boxed_futures]
impl Inbox {
    /// The newest message that matches, at once if it is already here; `None` when the time is up.
    pub async fn wait(&self, wanted: &Wanted, time_max: Duration) -> Option<Arc<CaughtMessage>> {
        let to_key = wanted.to.as_ref().map(EmailAddress::mailbox_key);
        let waiting = async {
            // Before the first look, so that nothing can slip in between.
            let mut newest = self.shared.newest.subscribe();
            let mut seen = 0;
            loop {
                let newest_id = *newest.borrow_and_update();
                if let Some(found) = self.find_newest(wanted, to_key.as_deref(), seen) {
                    return Some(found);
                }
                seen = newest_id;
                newest.changed().await.ok()?;
            }
        };
        timeout(time_max, waiting).await.ok().flatten()
    }

    /// Among those with an id above `seen`.
    fn find_newest(&self, wanted: &Wanted, to_key: Option<&str>, seen: u64) -> Option<Arc<CaughtMessage>> {
        let messages = self.messages();
        let mut unseen = messages.kept.iter().rev().take_while(|message| message.id > seen);
        unseen.find(|message| wanted.matches(message, to_key)).cloned()
    }
}
