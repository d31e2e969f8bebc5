//! Erasure of a person: all messages to an address, and the address wherever else the store has it.

use postroad_model::{EmailAddress, ServerId};
use postroad_store::{FilterTerm, JobProblem, Matcher, SearchItem, StoreError};

use crate::App;
use crate::search::parse_query;

/// The address of a query that is nothing but `to:ADDRESS`. Such an erasure is about the person.
pub(super) fn address_of(query: &str) -> Option<EmailAddress> {
    let filter = parse_query("query", query).ok()?;
    let [FilterTerm { matcher: Matcher::To(needle), is_negated: false }] = filter.terms.as_slice() else {
        return None;
    };
    let is_all = filter.since.is_none() && filter.until.is_none() && filter.statuses.is_none();
    EmailAddress::parse(needle.as_str()).ok().filter(|_| is_all)
}

/// The query that finds the messages to an address.
pub(super) fn query_of(address: &EmailAddress) -> String {
    format!("to:\"{}\"", address.as_str().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Searches find parts of addresses; an erasure is about this one only.
pub(super) fn is_to(item: &SearchItem, person: &EmailAddress) -> bool {
    EmailAddress::parse(&item.rcpt_to).is_ok_and(|to| to.mailbox_key() == person.mailbox_key())
}

impl App {
    /// Returns a problem if the address is still in rows that are not about the person.
    pub(super) async fn erase_person(
        &self,
        server_id: ServerId,
        person: &EmailAddress,
    ) -> Result<Option<JobProblem>, StoreError> {
        let store = &self.inner.store;
        store.erase_address(server_id, person.as_str().to_owned()).await?;
        let left = store.scrub(person.as_str()).await?;
        // One is the request of this job, which goes when it ends.
        Ok((left > 1).then(|| JobProblem {
            id: 0,
            code: "AddressElsewhere".to_owned(),
            message: "The address is still in data that is not about its messages, such as other servers' mail, or \
                      subjects, templates and longer addresses that contain it"
                .to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_address_alone_is_a_person() {
        let address = address_of("to:Ann@Example.com").unwrap();
        assert_eq!(address.mailbox_key(), "ann@example.com");
        assert_eq!(address_of(&query_of(&address)).unwrap().mailbox_key(), "ann@example.com");
        let quoted = EmailAddress::parse("\"a b\"@example.com").unwrap();
        assert_eq!(address_of(&query_of(&quoted)).unwrap().mailbox_key(), quoted.mailbox_key());
        for query in [
            "to:@example.com",
            "-to:ann@example.com",
            "to:ann@example.com tag:x",
            "ann@example.com",
            "to:ann@example.com after:2026-01-01",
            "",
        ] {
            assert!(address_of(query).is_none(), "{query}");
        }
    }
}
