//! The feed: every event once, in commit order; no event appears before one that was already read.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{Clock as _, EventCursor, EventKind, EventSet, MessageId, Status};
use postroad_store::{FeedEvent, FeedPage, FeedQuery, NewEvent, RecentEventsQuery};
use postroad_testkit::eventually;

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    events_come_in_order_and_once,
    feed_of_one_kind_continues_after_events_of_other_kinds,
    feed_of_one_message_has_only_its_events,
    feed_from_its_end_begins_with_the_next_event,
    events_of_a_server_have_their_own_seq,
    reader_beside_many_writers_misses_nothing,
    newest_events_come_page_by_page,
);

async fn read(fixture: &Fixture, query: FeedQuery) -> FeedPage {
    fixture.store.feed(query).await.expect("the store works")
}

fn query_all(fixture: &Fixture, after: EventCursor) -> FeedQuery {
    FeedQuery { server_id: fixture.server, after, kinds: EventSet::ALL, message_id: None, limit: 3 }
}

/// Reads pages until `wanted` events came and no more follow. On PostgreSQL an event appears when every transaction of
/// the cluster that began before its own has ended, including transactions of other tests.
async fn read_all(fixture: &Fixture, mut query: FeedQuery, wanted: usize) -> Vec<FeedEvent> {
    let mut all = Vec::new();
    eventually(async || {
        loop {
            let page = read(fixture, query).await;
            all.extend(page.events);
            if page.next == query.after {
                break;
            }
            query.after = page.next;
        }
        if all.len() >= wanted { Ok(()) } else { Err(format!("{} of {wanted} events came", all.len())) }
    })
    .await;
    all
}

async fn send_and_finish(fixture: &Fixture) -> MessageId {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    id
}

async fn events_come_in_order_and_once(fixture: Fixture) {
    let mut wanted = Vec::new();
    for _ in 0..5 {
        let id = send_and_finish(&fixture).await;
        wanted.extend([(id, EventKind::Accepted), (id, EventKind::Delivered)]);
    }
    let all = read_all(&fixture, query_all(&fixture, EventCursor::START), wanted.len()).await;
    assert_eq!(all.iter().map(|event| (event.message_id, event.kind)).collect::<Vec<_>>(), wanted);
    let other = FeedQuery { server_id: fixture.other_server, ..query_all(&fixture, EventCursor::START) };
    assert!(read_all(&fixture, other, 0).await.is_empty());
}

async fn feed_of_one_kind_continues_after_events_of_other_kinds(fixture: Fixture) {
    for _ in 0..4 {
        send_and_finish(&fixture).await;
    }
    let kinds = [EventKind::Delivered].into_iter().collect();
    let all = read_all(&fixture, FeedQuery { kinds, ..query_all(&fixture, EventCursor::START) }, 4).await;
    assert_eq!(all.len(), 4);
    let none = [EventKind::Complained].into_iter().collect();
    let page = read(&fixture, FeedQuery { kinds: none, ..query_all(&fixture, EventCursor::START) }).await;
    assert!(page.events.is_empty() && page.has_more && page.next > EventCursor::START);
}

async fn feed_of_one_message_has_only_its_events(fixture: Fixture) {
    send_and_finish(&fixture).await;
    let id = send_and_finish(&fixture).await;
    let query = FeedQuery { message_id: Some(id), ..query_all(&fixture, EventCursor::START) };
    let all = read_all(&fixture, query, 2).await;
    assert_eq!(all.iter().map(|event| (event.message_id, event.seq)).collect::<Vec<_>>(), [(id, 1), (id, 2)]);
}

async fn feed_from_its_end_begins_with_the_next_event(fixture: Fixture) {
    send_and_finish(&fixture).await;
    assert_eq!(read_all(&fixture, query_all(&fixture, EventCursor::START), 2).await.len(), 2);
    let end = fixture.store.feed_end(fixture.server).await.expect("the store works");
    assert!(read_all(&fixture, query_all(&fixture, end), 0).await.is_empty());
    let id = send_and_finish(&fixture).await;
    let all = read_all(&fixture, query_all(&fixture, end), 2).await;
    assert_eq!(all.iter().map(|event| event.message_id).collect::<Vec<_>>(), [id, id]);
}

async fn events_of_a_server_have_their_own_seq(fixture: Fixture) {
    let mut notices = fixture.store.event_notices();
    notices.mark_unchanged();
    for _ in 0..2 {
        let event = NewEvent { kind: EventKind::SendLimitApproaching, data: "{}".into() };
        fixture.store.add_server_event(fixture.server, event).await.expect("the store works");
    }
    assert!(notices.has_changed().expect("the store is open"));
    let all = read_all(&fixture, query_all(&fixture, EventCursor::START), 2).await;
    assert_eq!(
        all.iter().map(|event| (event.seq, &event.message)).collect::<Vec<_>>(),
        [(1, &None), (2, &None)]
    );
}

async fn reader_beside_many_writers_misses_nothing(fixture: Fixture) {
    const WRITERS: usize = 8;
    const SENDS: usize = 25;
    let writing = (0..WRITERS).map(|_| {
        let store = fixture.store.clone();
        let sends: Vec<_> =
            (0..SENDS).map(|_| fixture.send_to(&["a@example.com", "b@example.com"])).collect();
        tokio::spawn(async move {
            for send in sends {
                store.accept(send).await.expect("the store works");
            }
        })
    });
    let writers: Vec<_> = writing.collect();
    // Reads while the tasks write.
    let query = FeedQuery { limit: 20, ..query_all(&fixture, EventCursor::START) };
    let all = read_all(&fixture, query, WRITERS * SENDS * 2).await;
    for writer in writers {
        writer.await.expect("the writer does not panic");
    }
    let messages: HashSet<MessageId> = all.iter().map(|event| event.message_id).collect();
    assert_eq!((all.len(), messages.len()), (WRITERS * SENDS * 2, WRITERS * SENDS * 2));
}

async fn newest_events_come_page_by_page(fixture: Fixture) {
    let mut wanted = Vec::new();
    for _ in 0..3 {
        let id = send_and_finish(&fixture).await;
        wanted.extend([(id, EventKind::Accepted), (id, EventKind::Delivered)]);
    }
    wanted.reverse();
    let all = RecentEventsQuery {
        server_id: fixture.server,
        kinds: EventSet::ALL,
        since: None,
        until: None,
        before: None,
        limit: 4,
        scanned_max: 100,
    };
    let list = async |query| {
        let page = fixture.store.list_recent_events(query).await.expect("the store works");
        (page.events.iter().map(|event| (event.message_id, event.kind)).collect::<Vec<_>>(), page.before)
    };
    let (first, before) = list(all).await;
    assert_eq!(first, wanted[..4]);
    assert_eq!(list(RecentEventsQuery { before, ..all }).await, (wanted[4..].to_vec(), None));
    // Lists events of one kind. A page also ends after `scanned_max` events.
    let accepted = RecentEventsQuery { kinds: [EventKind::Accepted].into_iter().collect(), ..all };
    let is_accepted = |one: &&(MessageId, EventKind)| one.1 == EventKind::Accepted;
    let only: Vec<_> = wanted.iter().filter(is_accepted).copied().collect();
    assert_eq!(list(accepted).await, (only.clone(), None));
    let (none, before) = list(RecentEventsQuery { scanned_max: 1, ..accepted }).await;
    assert!(none.is_empty() && before.is_some());
    let (next, _) = list(RecentEventsQuery { scanned_max: 1, before, ..accepted }).await;
    assert_eq!(next, only[..1]);
    let later = Some(fixture.clock.now().plus(Duration::from_secs(1)));
    assert_eq!(list(RecentEventsQuery { since: later, ..all }).await, (Vec::new(), None));
    assert_eq!(list(RecentEventsQuery { until: later, limit: 9, ..all }).await, (wanted, None));
    assert!(list(RecentEventsQuery { server_id: fixture.other_server, ..all }).await.0.is_empty());
}
