//! Waiting for a message, as test suites do after they made an application send one.

use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{view, visible_text};
use postroad_model::{EmailAddress, Timestamp};
use tokio::time::timeout;

use super::{CaughtMessage, Inbox};

/// The message that is waited for; omitted conditions match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The recipient, compared as mailboxes are: in any letter case.
    pub to: Option<EmailAddress>,
    /// A part of the subject, as it is written.
    pub subject: Option<String>,
    /// A part of the text that a reader sees, as it is written; line breaks and spaces count as one space.
    pub text: Option<String>,
    /// Only messages received at or after this time.
    pub since: Option<Timestamp>,
}

impl Wanted {
    /// Everything but the text, which takes long to read.
    fn matches_head(&self, message: &CaughtMessage, to_key: Option<&str>) -> bool {
        to_key.is_none_or(|key| message.rcpt_to.mailbox_key() == key)
            && self.subject.as_ref().is_none_or(|part| message.subject.contains(part))
            && self.since.is_none_or(|since| message.received_at >= since)
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
                let candidates = self.find_newest(wanted, to_key.as_deref(), seen);
                if let Some(found) = self.with_text(candidates, wanted.text.as_deref()).await {
                    return Some(found);
                }
                seen = newest_id;
                newest.changed().await.ok()?;
            }
        };
        timeout(time_max, waiting).await.ok().flatten()
    }

    /// Among those with an id above `seen`, the newest first; only the first if no text is looked for.
    fn find_newest(&self, wanted: &Wanted, to_key: Option<&str>, seen: u64) -> Vec<Arc<CaughtMessage>> {
        let messages = self.messages();
        let unseen = messages.kept.iter().rev().take_while(|message| message.id > seen);
        let matching = unseen.filter(|message| wanted.matches_head(message, to_key));
        matching.take(if wanted.text.is_some() { usize::MAX } else { 1 }).cloned().collect()
    }

    /// The first candidate with the text. Reads them on a blocking thread: they may have megabytes.
    async fn with_text(
        &self,
        candidates: Vec<Arc<CaughtMessage>>,
        text: Option<&str>,
    ) -> Option<Arc<CaughtMessage>> {
        let Some(text) = text.filter(|_| !candidates.is_empty()) else {
            return candidates.into_iter().next();
        };
        let text = one_spaced(text);
        let _permit = self.shared.text_searches.acquire().await.ok()?;
        let search = move || candidates.into_iter().find(|message| contains(message, &text));
        tokio::task::spawn_blocking(search).await.ok().flatten()
    }
}

fn contains(message: &CaughtMessage, text: &str) -> bool {
    one_spaced(&visible_text(&view(&message.raw))).contains(text)
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
