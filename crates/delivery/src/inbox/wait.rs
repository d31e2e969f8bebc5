//! Waiting for a message, for test suites whose application has just sent one.

use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{view, visible_text};
use postroad_model::{EmailAddress, Timestamp};
use tokio::time::timeout;

use super::{CaughtMessage, Inbox};

/// Conditions of the message to wait for; `None` matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageMatcher {
    /// The recipient, compared as a mailbox: in any letter case.
    pub to: Option<EmailAddress>,
    /// A part of the subject, case-sensitive.
    pub subject: Option<String>,
    /// A part of the visible text, case-sensitive; any run of line breaks and spaces counts as one space.
    pub text: Option<String>,
    /// Only messages received at or after this time.
    pub since: Option<Timestamp>,
}

impl MessageMatcher {
    /// Tests all conditions except the text, which takes long to read.
    fn matches_head(&self, message: &CaughtMessage, to_key: Option<&str>) -> bool {
        to_key.is_none_or(|key| message.rcpt_to.mailbox_key() == key)
            && self.subject.as_ref().is_none_or(|part| message.subject.contains(part))
            && self.since.is_none_or(|since| message.received_at >= since)
    }
}

#[boxed_futures]
impl Inbox {
    /// The newest message that matches, at once if it already exists; `None` at the time limit.
    pub async fn wait(&self, matcher: &MessageMatcher, time_max: Duration) -> Option<Arc<CaughtMessage>> {
        let to_key = matcher.to.as_ref().map(EmailAddress::mailbox_key);
        let waiting = async {
            // Subscribes before the first look, so that no message is missed in between.
            let mut newest = self.state.newest.subscribe();
            let mut last_seen_id = 0;
            loop {
                let newest_id = *newest.borrow_and_update();
                let candidates = self.find_newest(matcher, to_key.as_deref(), last_seen_id);
                if let Some(found) = self.find_with_text(candidates, matcher.text.as_deref()).await {
                    return Some(found);
                }
                last_seen_id = newest_id;
                newest.changed().await.ok()?;
            }
        };
        timeout(time_max, waiting).await.ok().flatten()
    }

    /// Messages with an id above `last_seen_id` that match all conditions except the text, newest first. Without a
    /// condition on the text, only the first.
    fn find_newest(
        &self,
        matcher: &MessageMatcher,
        to_key: Option<&str>,
        last_seen_id: u64,
    ) -> Vec<Arc<CaughtMessage>> {
        let messages = self.messages();
        let unseen = messages.stored.iter().rev().take_while(|message| message.id > last_seen_id);
        let matching = unseen.filter(|message| matcher.matches_head(message, to_key));
        matching.take(if matcher.text.is_some() { usize::MAX } else { 1 }).cloned().collect()
    }

    /// The first candidate with the text. Reads the candidates on a blocking thread: they may be megabytes.
    async fn find_with_text(
        &self,
        candidates: Vec<Arc<CaughtMessage>>,
        text: Option<&str>,
    ) -> Option<Arc<CaughtMessage>> {
        let Some(text) = text.filter(|_| !candidates.is_empty()) else {
            return candidates.into_iter().next();
        };
        let text = collapse_spaces(text);
        let _permit = self.state.text_searches.acquire().await.ok()?;
        let search = move || candidates.into_iter().find(|message| contains(message, &text));
        tokio::task::spawn_blocking(search).await.ok().flatten()
    }
}

fn contains(message: &CaughtMessage, text: &str) -> bool {
    collapse_spaces(&visible_text(&view(&message.raw))).contains(text)
}

fn collapse_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
