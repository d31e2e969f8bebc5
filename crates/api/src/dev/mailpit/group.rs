//! Messages as Mailpit shows them: one message for all its recipients. The inbox has a copy for each recipient; the
//! copies arrive one by one.

use std::collections::HashMap;
use std::sync::Arc;

use postroad_delivery::CaughtMessage;

/// The copies of one send. Never empty; in the order of their arrival.
#[derive(Debug, Clone)]
pub(super) struct Group {
    copies: Vec<Arc<CaughtMessage>>,
}

impl Group {
    /// The first copy, which represents all: they differ only in tracking links and in headers that delivery adds.
    pub(super) fn first(&self) -> &CaughtMessage {
        &self.copies[0]
    }

    pub(super) fn id(&self) -> u64 {
        self.first().id
    }

    /// Whether one of the copies has this id.
    pub(super) fn has_id(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id: u64| self.copies.iter().any(|copy| copy.id == id))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.copies.iter().map(|copy| copy.id)
    }

    /// Envelope recipients of all copies.
    pub(super) fn recipients(&self) -> impl Iterator<Item = &str> {
        self.copies.iter().map(|copy| copy.rcpt_to.as_str())
    }

    fn has_recipient(&self, address: &str) -> bool {
        self.recipients().any(|recipient| recipient.eq_ignore_ascii_case(address))
    }
}

/// Groups copies with the same Message-ID. A second copy for the same recipient begins another group: the message was
/// sent twice. Takes and returns the newest first.
pub(super) fn collect(newest_first: &[Arc<CaughtMessage>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // Index of the newest group of each Message-ID.
    let mut newest_by_id: HashMap<&str, usize> = HashMap::new();
    for copy in newest_first.iter().rev() {
        let index = newest_by_id.get(copy.message_id.as_str()).copied();
        match index.filter(|index| !groups[*index].has_recipient(copy.rcpt_to.as_str())) {
            Some(index) if !copy.message_id.is_empty() => groups[index].copies.push(Arc::clone(copy)),
            _ => {
                newest_by_id.insert(&copy.message_id, groups.len());
                groups.push(Group { copies: vec![Arc::clone(copy)] });
            }
        }
    }
    groups.reverse();
    groups
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use postroad_model::{EmailAddress, Timestamp};

    use super::*;

    #[test]
    fn copies_of_one_send_are_one_message() {
        let copy = |id: u64, message_id: &str, rcpt_to: &str| {
            Arc::new(CaughtMessage {
                id,
                mail_from: String::new(),
                rcpt_to: EmailAddress::parse(rcpt_to).unwrap(),
                from: String::new(),
                subject: String::new(),
                message_id: message_id.to_owned(),
                helo: String::new(),
                received_at: Timestamp::from_micros(0),
                raw: Bytes::new(),
            })
        };
        let mut caught = vec![
            copy(1, "m@x", "a@example.net"),
            copy(2, "other@x", "a@example.net"),
            copy(3, "m@x", "b@example.net"),
            copy(4, "m@x", "A@example.net"),
            copy(5, "", "a@example.net"),
            copy(6, "", "b@example.net"),
            copy(7, "m@x", "b@example.net"),
        ];
        caught.reverse();
        let groups = collect(&caught);
        let ids: Vec<Vec<u64>> = groups.iter().map(|group| group.ids().collect()).collect();
        assert_eq!(ids, [vec![6], vec![5], vec![4, 7], vec![2], vec![1, 3]]);
        assert!(groups[4].has_id("3") && !groups[4].has_id("4") && !groups[4].has_id("x"));
    }
}
