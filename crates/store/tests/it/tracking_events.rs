//! Opens, clicks and unsubscriptions: their events, marks and limits.

use postroad_model::{DomainName, EventKind, MessageId, ServerId, Status, SuppressionReason, Timestamp};
use postroad_store::{
    DomainTracking, InitialState, NewDomain, NewTrackingEvent, ServerTracking, TrackingEventKind,
};
use serde_json::Value;

use crate::by_operator;
use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    first_events_of_people_and_bots_are_distinguished,
    a_click_within_a_second_of_delivery_counts_as_by_a_bot,
    unsubscribing_is_reported_once,
    unsubscribing_suppresses_again_after_the_suppression_was_removed,
    unsubscribing_suppresses_even_if_the_message_is_gone,
    tracking_events_of_one_message_are_numbered_in_a_row,
    tracking_events_of_unknown_messages_are_ignored,
    tracking_events_of_one_message_are_limited,
    tracking_events_of_test_messages_are_marked_and_suppress_nobody,
    tracking_events_of_many_messages_are_written_together,
    tracking_hosts_of_domains_are_listed,
    tracking_settings_of_a_server_are_kept,
);

fn simulator_domain() -> DomainName {
    DomainName::parse("sim.postroad.test").expect("a name")
}

fn click() -> TrackingEventKind {
    TrackingEventKind::Click { url: "https://example.com/".into(), link: "abcdefgh".into() }
}

fn unsubscribe(address: &str) -> TrackingEventKind {
    TrackingEventKind::Unsubscribe { address: address.into() }
}

fn tracking_event(
    server_id: ServerId,
    message_id: MessageId,
    kind: TrackingEventKind,
    at: Timestamp,
) -> NewTrackingEvent {
    let (ip_address, user_agent) = ("192.0.2.1".into(), "Reader/1.0".into());
    NewTrackingEvent { server_id, message_id, kind, at, ip_address, user_agent, is_bot: false }
}

async fn record(fixture: &Fixture, tracking_events: Vec<NewTrackingEvent>) {
    fixture
        .store
        .record_tracking_events(tracking_events, simulator_domain())
        .await
        .expect("tracking events can be written");
}

async fn send_message(fixture: &Fixture) -> MessageId {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    id
}

/// The data of the events from `seq` on.
async fn event_data(fixture: &Fixture, id: MessageId, seq: usize) -> Vec<Value> {
    let events = fixture.events(id).await;
    events[seq - 1..].iter().map(|event| serde_json::from_str(&event.data).expect("JSON")).collect()
}

async fn first_events_of_people_and_bots_are_distinguished(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let at = |seconds| fixture.in_secs(seconds);
    let opened = |seconds, is_bot| NewTrackingEvent {
        is_bot,
        ..tracking_event(fixture.server, id, TrackingEventKind::Open, at(seconds))
    };
    record(&fixture, vec![opened(5, true), opened(6, false)]).await;
    record(&fixture, vec![opened(7, false), tracking_event(fixture.server, id, click(), at(8))]).await;
    assert_eq!(
        fixture.event_kinds(id).await[2..],
        [EventKind::Opened, EventKind::Opened, EventKind::Opened, EventKind::Clicked]
    );
    let events = event_data(&fixture, id, 3).await;
    let flags: Vec<(bool, bool, bool)> = events
        .iter()
        .map(|data| {
            ["first", "bot", "first_including_bots"].map(|name| data[name].as_bool().expect("a flag")).into()
        })
        .collect();
    assert_eq!(flags, [(true, true, true), (true, false, false), (false, false, false), (true, false, true)]);
    assert_eq!(events[3]["url"], "https://example.com/");
    assert_eq!((&events[3]["token"], &events[3]["ip_address"]), (&"abcdefgh".into(), &"192.0.2.1".into()));
    let marks = fixture.query_int(&format!("SELECT marks FROM messages WHERE id = {}", id.0)).await;
    // Opened by a person, opened by a bot, clicked by a person (the bits in `tracking.rs`).
    assert_eq!(marks, 1 | 2 | 4);
    let events = fixture.events(id).await;
    assert_eq!(events[2].at, at(5));
}

async fn a_click_within_a_second_of_delivery_counts_as_by_a_bot(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    record(&fixture, vec![tracking_event(fixture.server, id, click(), fixture.now())]).await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let delivered_at = fixture.now();
    let after = |millis| delivered_at.plus(std::time::Duration::from_millis(millis));
    let tracking_events = [(999, click()), (1_000, click()), (0, TrackingEventKind::Open)];
    record(
        &fixture,
        tracking_events
            .map(|(millis, kind)| tracking_event(fixture.server, id, kind, after(millis)))
            .to_vec(),
    )
    .await;
    let events = event_data(&fixture, id, 2).await;
    let bots: Vec<&Value> =
        events.iter().filter(|data| data["bot"].is_boolean()).map(|data| &data["bot"]).collect();
    // The click before the delivery was recorded, the open at the time of delivery, and the two clicks after it.
    assert_eq!(bots, [true, false, true, false]);
}

async fn unsubscribing_is_reported_once(fixture: Fixture) {
    let id = send_message(&fixture).await;
    for seconds in [1, 2] {
        let kind = unsubscribe("Ann@example.com");
        record(&fixture, vec![tracking_event(fixture.server, id, kind, fixture.in_secs(seconds))]).await;
    }
    assert_eq!(fixture.event_kinds(id).await[2..], [EventKind::Unsubscribed]);
    let found = fixture.store.find_suppression(fixture.server, "ANN@example.com".into()).await;
    let suppression = found.expect("reading works").expect("it is suppressed");
    assert_eq!(
        (suppression.reason, suppression.origin_message_id),
        (SuppressionReason::Unsubscribe, Some(id))
    );
    let simulated = fixture.accept(fixture.send_to(&["click@sim.postroad.test"])).await[0];
    let kind = unsubscribe("click@SIM.postroad.test");
    record(&fixture, vec![tracking_event(fixture.server, simulated, kind, fixture.now())]).await;
    assert_eq!(fixture.event_kinds(simulated).await.last(), Some(&EventKind::Unsubscribed));
    let found = fixture.store.find_suppression(fixture.server, "click@sim.postroad.test".into()).await;
    assert_eq!(found.expect("reading works"), None);
}

async fn unsubscribing_suppresses_again_after_the_suppression_was_removed(fixture: Fixture) {
    let id = send_message(&fixture).await;
    for seconds in [1, 2] {
        let kind = unsubscribe("ann@example.com");
        record(&fixture, vec![tracking_event(fixture.server, id, kind, fixture.in_secs(seconds))]).await;
        let removed = fixture.store.remove_suppressions(fixture.server, vec!["ann@example.com".into()]).await;
        assert_eq!(removed.expect("removing works"), [true]);
    }
    assert_eq!(fixture.event_kinds(id).await[2..], [EventKind::Unsubscribed]);
}

async fn unsubscribing_suppresses_even_if_the_message_is_gone(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let (gone, at) = (MessageId(12_345), fixture.in_secs(1));
    // Twice in one batch, and with an open of another message.
    record(
        &fixture,
        vec![
            tracking_event(fixture.server, gone, unsubscribe("Bob@example.com"), at),
            tracking_event(fixture.server, id, TrackingEventKind::Open, at),
            tracking_event(fixture.server, gone, unsubscribe("bob@EXAMPLE.com"), fixture.in_secs(2)),
        ],
    )
    .await;
    let found = fixture.store.find_suppression(fixture.server, "bob@example.com".into()).await;
    let suppression = found.expect("reading works").expect("it is suppressed");
    assert_eq!((suppression.origin_message_id, suppression.created_at), (Some(gone), at));
    assert_eq!(fixture.query_int("SELECT COUNT(*) FROM events WHERE kind = 'message.unsubscribed'").await, 0);
    assert_eq!(fixture.event_kinds(id).await[2..], [EventKind::Opened]);
}

async fn tracking_events_of_one_message_are_numbered_in_a_row(fixture: Fixture) {
    let ids = [send_message(&fixture).await, send_message(&fixture).await];
    let mut tracking_events = Vec::new();
    for seconds in 5..25 {
        let kind = if seconds % 2 == 0 { TrackingEventKind::Open } else { click() };
        tracking_events.push(tracking_event(
            fixture.server,
            ids[seconds as usize % 3 / 2],
            kind,
            fixture.in_secs(seconds),
        ));
    }
    tracking_events.reverse();
    record(&fixture, tracking_events).await;
    let mut count = 0;
    for id in ids {
        let events = fixture.events(id).await;
        let seqs: Vec<i64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=events.len() as i64).collect::<Vec<_>>());
        assert!(events[2..].is_sorted_by_key(|event| event.at), "{events:?}");
        let firsts = event_data(&fixture, id, 3).await.iter().filter(|data| data["first"] == true).count();
        assert_eq!(firsts, 2, "one open and one click");
        count += events.len() - 2;
    }
    assert_eq!(count, 20);
}

async fn tracking_events_of_unknown_messages_are_ignored(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let now = fixture.in_secs(5);
    record(
        &fixture,
        vec![
            tracking_event(fixture.server, MessageId(12_345), TrackingEventKind::Open, now),
            tracking_event(fixture.other_server, id, TrackingEventKind::Open, now),
            tracking_event(fixture.server, id, TrackingEventKind::Open, now),
        ],
    )
    .await;
    assert_eq!(fixture.event_kinds(id).await[2..], [EventKind::Opened]);
    assert_eq!(fixture.query_int("SELECT COUNT(*) FROM events WHERE kind = 'message.opened'").await, 1);
}

async fn tracking_events_of_one_message_are_limited(fixture: Fixture) {
    let id = send_message(&fixture).await;
    fixture.execute(&format!("UPDATE messages SET last_seq = 999 WHERE id = {}", id.0)).await;
    let opened = || tracking_event(fixture.server, id, TrackingEventKind::Open, fixture.in_secs(5));
    record(&fixture, vec![opened(), opened(), opened()]).await;
    let unsubscribed = tracking_event(fixture.server, id, unsubscribe("ann@example.com"), fixture.in_secs(6));
    record(&fixture, vec![opened(), unsubscribed]).await;
    let kinds: Vec<EventKind> = fixture.events(id).await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds[2..], [EventKind::Opened, EventKind::Unsubscribed], "unsubscribing always works");
}

async fn tracking_events_of_test_messages_are_marked_and_suppress_nobody(fixture: Fixture) {
    let state = InitialState::TestSent { details: "test".into() };
    let mut send = fixture.send(fixture.server, &["ann@example.com"], state, b"Subject: x\r\n\r\nx\r\n");
    send.info.test = true;
    let id = fixture.accept(send).await[0];
    let at = fixture.in_secs(5);
    record(
        &fixture,
        vec![
            tracking_event(fixture.server, id, click(), at),
            tracking_event(fixture.server, id, unsubscribe("ann@example.com"), at),
        ],
    )
    .await;
    let events = fixture.events(id).await;
    assert!(events[2..].iter().all(|event| event.test) && events.len() == 4, "{events:?}");
    let found = fixture.store.find_suppression(fixture.server, "ann@example.com".into()).await;
    assert_eq!(found.expect("reading works"), None);
}

async fn tracking_events_of_many_messages_are_written_together(fixture: Fixture) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(send_message(&fixture).await);
    }
    let notices = fixture.store.event_notices();
    let before = *notices.borrow();
    let tracking_events = ids
        .iter()
        .rev()
        .map(|id| tracking_event(fixture.server, *id, TrackingEventKind::Open, fixture.in_secs(5)));
    let (one, two): (Vec<NewTrackingEvent>, Vec<NewTrackingEvent>) =
        (tracking_events.clone().collect(), tracking_events.collect());
    let (first, second) = tokio::join!(
        fixture.store.record_tracking_events(one, simulator_domain()),
        fixture.store.record_tracking_events(two, simulator_domain())
    );
    first.expect("tracking events can be written");
    second.expect("tracking events can be written at once");
    for id in ids {
        assert_eq!(fixture.event_kinds(id).await[2..], [EventKind::Opened, EventKind::Opened]);
    }
    assert!(*notices.borrow() > before, "readers that wait for events are woken");
}

async fn tracking_hosts_of_domains_are_listed(fixture: Fixture) {
    let mut domains = Vec::new();
    for name in ["one.example", "two.example", "three.example"] {
        let new = NewDomain { is_verified: true, ..fixture.new_domain(name) };
        domains.push(fixture.store.create_domain(new).await.expect("it is new").id);
    }
    for id in &domains[..2] {
        let tracking =
            DomainTracking { host: Some("track.one.example".into()), opens: Some(true), clicks: Some(false) };
        fixture.store.set_domain_tracking(*id, tracking, fixture.now()).await.expect("it is there");
    }
    assert_eq!(fixture.store.list_tracking_hosts().await.expect("reading works"), ["track.one.example"]);
}

async fn tracking_settings_of_a_server_are_kept(fixture: Fixture) {
    let tracking = ServerTracking { opens: true, clicks: true, excluded_hosts: vec!["*.example.com".into()] };
    by_operator::set_tracking(&fixture.store, fixture.server, tracking.clone()).await.expect("it is there");
    let servers = fixture.store.list_servers().await.expect("reading works");
    let of = |id| servers.iter().find(|server| server.id == id).map(|server| server.tracking.clone());
    assert_eq!(of(fixture.server), Some(tracking));
    assert_eq!(of(fixture.other_server), Some(ServerTracking::default()));
}
