//! Erasure of a person's data: all messages to an address, and the address itself wherever else it is stored.

use postroad_model::{EmailAddress, ServerId};
use postroad_store::{FilterTerm, Matcher, Needle, SearchFilter, SearchItem, StoreError};

use super::MessageAction;
use crate::App;
use crate::search::parse_query;

/// The address, if the query is only `to:ADDRESS`. An erasure with such a query erases the person, not just the
/// messages.
pub(super) fn address_of(query: &str) -> Option<EmailAddress> {
    let filter = parse_query("query", query).ok()?;
    let [FilterTerm { matcher: Matcher::To(needle), is_negated: false }] = filter.terms.as_slice() else {
        return None;
    };
    let is_all = filter.since.is_none() && filter.until.is_none() && filter.statuses.is_none();
    EmailAddress::parse(needle.original()).ok().filter(|_| is_all)
}

/// The query that finds the messages to an address.
pub(super) fn query_of(address: &EmailAddress) -> String {
    format!("to:\"{}\"", address.as_str().replace('\\', "\\\\").replace('"', "\\\""))
}

/// The person whom a job erases.
pub(super) fn person_of(action: MessageAction, query: &str) -> Option<EmailAddress> {
    if action == MessageAction::Erase { address_of(query) } else { None }
}

/// Finds the messages to a person, however the address was spelled. Also finds some messages to other addresses, which
/// `is_to_person` excludes.
pub(super) fn filter_of(person: &EmailAddress) -> SearchFilter {
    let spellings = person.spellings().iter().map(|spelling| Needle::new(spelling)).collect();
    let term = FilterTerm { matcher: Matcher::ToAny(spellings), is_negated: false };
    SearchFilter { terms: vec![term], ..SearchFilter::default() }
}

/// Whether the item's recipient is `person`: searches also find parts of addresses. True if the job is not about one
/// person.
pub(super) fn is_to_person(item: &SearchItem, person: Option<&EmailAddress>) -> bool {
    person.is_none_or(|person| {
        EmailAddress::parse(&item.rcpt_to).is_ok_and(|to| to.mailbox_key() == person.mailbox_key())
    })
}

impl App {
    /// Erases the address wherever else it is stored. If other data in SQLite still contains it, only the operator's
    /// log says so: the data may belong to another tenant.
    pub(super) async fn erase_person(
        &self,
        server_id: ServerId,
        job: i64,
        person: &EmailAddress,
    ) -> Result<(), StoreError> {
        let store = &self.inner.store;
        store.erase_address(server_id, person.as_str().to_owned(), &self.counting_rules()).await?;
        let left = store.scrub(person.as_str()).await?;
        // One database page still contains the request of this job itself, which is removed when this step is stored.
        if left > 1 {
            tracing::info!(
                server.id = server_id.0,
                job,
                pages = left,
                "an erased address is still in other rows, such as other servers' mail, subjects or longer addresses that contain it; these are kept"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_query_for_one_whole_address_erases_a_person() {
        let address = address_of("to:Ann@Example.com").unwrap();
        assert_eq!(address.mailbox_key(), "ann@example.com");
        assert_eq!(address_of(&query_of(&address)).unwrap().mailbox_key(), "ann@example.com");
        let quoted = EmailAddress::parse("\"a b\"@example.com").unwrap();
        assert_eq!(address_of(&query_of(&quoted)).unwrap().mailbox_key(), quoted.mailbox_key());
        assert_eq!(address_of("to:Élodie@example.fr").unwrap().mailbox_key(), "Élodie@example.fr");
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
