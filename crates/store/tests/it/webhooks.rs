//! Webhooks: the outbox, which is written with the events; its claims, attempts and replays; disabling and deletion.

use std::time::Duration;

use postroad_model::{
    Clock as _, DomainName, EventId, EventKind, EventSet, Status, Timestamp, WebhookFormat,
};
use postroad_store::{
    NewTrackingEvent, NewWebhook, NewWebhookAttempt, Replay, StoreError, TrackingEventKind, UpdateResult,
    Webhook, WebhookAttemptFilter, WebhookChange, WebhookNext, WebhookOutcome, WebhookSecret, WebhookWork,
};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    events_go_to_the_subscribed_webhooks,
    tracking_events_go_to_the_subscribed_webhooks,
    posted_events_are_not_repeated_and_failed_ones_are_retried_later,
    attempts_are_logged_newest_first,
    replayed_events_are_posted_again,
    an_event_replayed_during_its_post_is_posted_again,
    an_event_replayed_during_a_failing_post_is_posted_again_at_once,
    the_outcome_of_an_unrecorded_attempt_counts,
    claimed_events_that_were_not_tried_are_released,
    disabled_webhook_gets_no_events_and_others_are_notified,
    a_webhook_fails_only_if_a_post_failed_after_the_last_success,
    a_webhook_that_has_not_failed_for_long_enough_is_not_disabled,
    events_that_a_format_cannot_express_are_dropped_without_a_failure,
    webhook_enabled_again_gets_only_new_events,
    deleted_webhook_leaves_nothing_behind,
    rotated_secret_stays_valid_for_a_while,
    webhooks_of_another_server_are_unknown,
);

pub(crate) async fn create(fixture: &Fixture, events: EventSet) -> Webhook {
    let new = NewWebhook {
        server_id: fixture.server,
        url: "https://hooks.example/in".into(),
        events,
        format: WebhookFormat::Standard,
        enabled: true,
        secret: WebhookSecret("whsec_one".into()),
    };
    fixture.store.create_webhook(new).await.expect("the store works")
}

pub(crate) async fn claim(fixture: &Fixture, webhook: &Webhook) -> Vec<WebhookWork> {
    claim_some(fixture, webhook, 10).await
}

pub(crate) async fn claim_some(fixture: &Fixture, webhook: &Webhook, limit: usize) -> Vec<WebhookWork> {
    let claimed = fixture.store.claim_webhook_work(webhook.server_id, webhook.id, limit, Vec::new()).await;
    claimed.expect("the store works")
}

fn kinds(works: &[WebhookWork]) -> Vec<EventKind> {
    works.iter().map(|work| work.event.kind).collect()
}

fn outcome(webhook: &Webhook, work: &WebhookWork, at: Timestamp, next: WebhookNext) -> WebhookOutcome {
    WebhookOutcome {
        server_id: webhook.server_id,
        webhook_id: webhook.id,
        attempt: NewWebhookAttempt {
            event_id: work.event.id,
            message_id: work.event.message_id,
            kind: work.event.kind,
            at,
            number: work.attempts + 1,
            url: webhook.url.clone(),
            status: Some(200),
            answer: "ok".into(),
            error_class: None,
            error: None,
            connect_us: Some(1_500),
            duration_us: 20_000,
        },
        next,
    }
}

async fn events_go_to_the_subscribed_webhooks(fixture: Fixture) {
    let all = create(&fixture, EventSet::ALL).await;
    let ends = create(&fixture, [EventKind::Delivered, EventKind::Bounced].into_iter().collect()).await;
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(kinds(&claim(&fixture, &all).await), [EventKind::Accepted, EventKind::Delivered]);
    let works = claim(&fixture, &ends).await;
    assert_eq!(kinds(&works), [EventKind::Delivered]);
    let message = works[0].event.message.as_ref().expect("it is about a message");
    assert_eq!((message.id, message.rcpt_to.as_str()), (id, fixture.message(id).await.rcpt_to.as_str()));
    assert_eq!(works[0].event.seq, 2);
}

async fn tracking_events_go_to_the_subscribed_webhooks(fixture: Fixture) {
    let clicks = create(&fixture, [EventKind::Clicked].into_iter().collect()).await;
    let message_id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(message_id, Status::Sent)).await);
    let click = TrackingEventKind::Click { url: "https://example.com/".into(), link: "abcdefgh".into() };
    let tracking_events = [TrackingEventKind::Open, click].map(|kind| NewTrackingEvent {
        server_id: fixture.server,
        message_id,
        kind,
        at: fixture.clock.now(),
        ip_address: "192.0.2.1".into(),
        user_agent: "Reader/1.0".into(),
        is_bot: false,
    });
    let simulator_domain = DomainName::parse("sim.postroad.test").expect("a name");
    fixture
        .store
        .record_tracking_events(tracking_events.into(), simulator_domain)
        .await
        .expect("the store works");
    let works = claim(&fixture, &clicks).await;
    assert_eq!((kinds(&works), works[0].event.seq), (vec![EventKind::Clicked], 4));
}

async fn posted_events_are_not_repeated_and_failed_ones_are_retried_later(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let works = claim(&fixture, &webhook).await;
    let known: Vec<EventId> = works.iter().map(|work| work.event.id).collect();
    let again = fixture.store.claim_webhook_work(webhook.server_id, webhook.id, 10, known).await;
    assert!(again.expect("the store works").is_empty(), "known events are not handed out again");
    let now = fixture.clock.now();
    let later = now.plus(Duration::from_secs(5));
    let outcomes = vec![
        outcome(&webhook, &works[0], now, WebhookNext::Done),
        outcome(&webhook, &works[1], now, WebhookNext::RetryAt(later)),
    ];
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    assert!(claim(&fixture, &webhook).await.is_empty());
    let due = fixture.store.list_due_webhooks().await.expect("the store works");
    assert_eq!(due.iter().map(|due| (due.webhook_id, due.due_at)).collect::<Vec<_>>(), [(webhook.id, later)]);
    // Nothing is posted for a deleted server until it is restored.
    for delete_at in [Some(fixture.in_secs(60)), None] {
        fixture.store.set_server_deleted(webhook.server_id, delete_at).await.expect("the store works");
        let due = fixture.store.list_due_webhooks().await.expect("the store works");
        assert_eq!(due.is_empty(), delete_at.is_some());
    }
    fixture.clock.advance(Duration::from_secs(5));
    let works = claim(&fixture, &webhook).await;
    assert_eq!((kinds(&works), works[0].attempts), (vec![EventKind::Delivered], 1));
    let outcomes = vec![outcome(&webhook, &works[0], fixture.clock.now(), WebhookNext::Done)];
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    let found = fixture.store.find_webhook(fixture.server, webhook.id).await.expect("it works");
    assert_eq!(found.expect("it is there").failing_since, None);
    assert!(fixture.store.list_due_webhooks().await.expect("the store works").is_empty());
}

async fn attempts_are_logged_newest_first(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    let now = fixture.clock.now();
    for (number, next) in [(0, WebhookNext::RetryAt(now)), (1, WebhookNext::GiveUp)] {
        let work = WebhookWork { attempts: number, ..works[0].clone() };
        let outcomes = vec![outcome(&webhook, &work, now, next)];
        fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    }
    let attempts = fixture.store.list_webhook_attempts(fixture.server, webhook.id, None, 10).await;
    let attempts = attempts.expect("the store works");
    assert_eq!(attempts.iter().map(|attempt| attempt.attempt.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((attempts[0].next_attempt_at, attempts[1].next_attempt_at), (None, Some(now)));
    let older =
        fixture.store.list_webhook_attempts(fixture.server, webhook.id, Some(attempts[0].id), 10).await;
    assert_eq!(older.expect("the store works"), attempts[1..]);
    // Both were answered with 200. A search that reads only one attempt says where to continue.
    let search = async |filter: WebhookAttemptFilter, before, scanned_max| {
        let webhook = (fixture.server, webhook.id);
        let found = fixture.store.search_webhook_attempts(webhook, filter, before, 10, scanned_max).await;
        let found = found.expect("the store works");
        (found.attempts.iter().map(|attempt| attempt.attempt.number).collect::<Vec<_>>(), found.before)
    };
    let all = WebhookAttemptFilter::default();
    let (failed, succeeded) = (
        WebhookAttemptFilter { succeeded: Some(false), ..all },
        WebhookAttemptFilter { succeeded: Some(true), ..all },
    );
    assert_eq!(search(all, None, 100).await, (vec![2, 1], None));
    assert_eq!(search(succeeded, None, 100).await, (vec![2, 1], None));
    assert_eq!(search(failed, None, 100).await, (vec![], None));
    let (none, before) = search(failed, None, 1).await;
    assert!(none.is_empty() && before.is_some_and(|before| before > attempts[1].id), "{before:?}");
    assert_eq!(search(succeeded, before, 1).await, (vec![1], None));
    let later = Some(now.plus(Duration::from_secs(1)));
    assert_eq!(search(WebhookAttemptFilter { since: later, ..all }, None, 100).await.0, [0_u32; 0]);
    assert_eq!(search(WebhookAttemptFilter { until: later, ..all }, None, 100).await.0, [2, 1]);
    let found = fixture.store.find_webhook_attempt(fixture.server, attempts[1].id).await;
    assert_eq!(found.expect("the store works").as_ref(), Some(&attempts[1]));
    let of_event =
        fixture.store.list_event_attempts(fixture.server, works[0].event.id, 10).await.expect("it works");
    assert_eq!(of_event.len(), 2);
    let found = fixture.store.find_webhook(fixture.server, webhook.id).await.expect("it works");
    assert_eq!(found.expect("it is there").failing_since, Some(now));
}

async fn replayed_events_are_posted_again(fixture: Fixture) {
    let webhook = create(&fixture, [EventKind::Accepted].into_iter().collect()).await;
    let from = fixture.clock.now();
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let works = claim(&fixture, &webhook).await;
    let outcomes = works.iter().map(|work| outcome(&webhook, work, from, WebhookNext::Done)).collect();
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    fixture.clock.advance(Duration::from_hours(1));
    let event = works[0].event.id;
    for replay in [Replay::Event(event), Replay::Between { from, to: fixture.clock.now(), after: EventId(0) }]
    {
        let replayed = fixture.store.replay_webhook(fixture.server, webhook.id, replay).await;
        let replayed = replayed.expect("the store works");
        assert_eq!((replayed.events, replayed.continue_after), (1, None));
        let works = claim(&fixture, &webhook).await;
        assert_eq!(works.iter().map(|work| work.event.id).collect::<Vec<_>>(), [event]);
        let outcomes = vec![outcome(&webhook, &works[0], fixture.clock.now(), WebhookNext::Done)];
        fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    }
    let nothing = Replay::Between { from: Timestamp::from_micros(0), to: from, after: EventId(0) };
    let replayed = fixture.store.replay_webhook(fixture.server, webhook.id, nothing).await;
    assert_eq!(replayed.expect("the store works").events, 0);
    let unknown = fixture.store.replay_webhook(fixture.server, webhook.id, Replay::Event(EventId(7))).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)));
}

async fn an_event_replayed_during_its_post_is_posted_again(fixture: Fixture) {
    let webhook = create(&fixture, [EventKind::Accepted].into_iter().collect()).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    let begun = fixture.clock.now();
    fixture.clock.advance(Duration::from_secs(1));
    let replay = Replay::Event(works[0].event.id);
    fixture.store.replay_webhook(fixture.server, webhook.id, replay).await.expect("the store works");
    // The posting worker claims more meanwhile; depending on the engine the replay comes now or after the outcome.
    let known = vec![works[0].event.id];
    let more = fixture.store.claim_webhook_work(fixture.server, webhook.id, 10, known).await;
    let mut again = more.expect("the store works");
    let outcomes = vec![outcome(&webhook, &works[0], begun, WebhookNext::Done)];
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    again.extend(claim(&fixture, &webhook).await);
    assert_eq!(kinds(&again), [EventKind::Accepted]);
    let outcomes = vec![outcome(&webhook, &again[0], fixture.clock.now(), WebhookNext::Done)];
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    assert!(claim(&fixture, &webhook).await.is_empty());
}

async fn an_event_replayed_during_a_failing_post_is_posted_again_at_once(fixture: Fixture) {
    let webhook = create(&fixture, [EventKind::Accepted].into_iter().collect()).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    let begun = fixture.clock.now();
    fixture.clock.advance(Duration::from_secs(1));
    let replay = Replay::Event(works[0].event.id);
    fixture.store.replay_webhook(fixture.server, webhook.id, replay).await.expect("the store works");
    let retry = WebhookNext::RetryAt(fixture.in_secs(3_600));
    settle(&fixture, &webhook, &[(&works[0], begun, retry)]).await;
    let again = claim(&fixture, &webhook).await;
    assert_eq!(kinds(&again), [EventKind::Accepted]);
    // The next failure postpones the event.
    let retry = WebhookNext::RetryAt(fixture.in_secs(3_600));
    settle(&fixture, &webhook, &[(&again[0], fixture.clock.now(), retry)]).await;
    assert!(claim(&fixture, &webhook).await.is_empty());
}

async fn the_outcome_of_an_unrecorded_attempt_counts(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let works = claim(&fixture, &webhook).await;
    let (now, later) = (fixture.clock.now(), fixture.in_secs(5));
    for (work, next) in works.iter().zip([WebhookNext::Done, WebhookNext::RetryAt(later)]) {
        let outcome = outcome(&webhook, work, now, next);
        fixture.store.settle_unrecorded_webhook(outcome).await.expect("the store works");
    }
    let due = fixture.store.list_due_webhooks().await.expect("the store works");
    assert_eq!(due.iter().map(|due| due.due_at).collect::<Vec<_>>(), [later]);
    let found = fixture.store.find_webhook(fixture.server, webhook.id).await.expect("it works");
    assert_eq!(found.expect("it is there").last_success_at, Some(now));
    let logged = fixture.store.list_webhook_attempts(fixture.server, webhook.id, None, 10).await;
    assert!(logged.expect("the store works").is_empty());
}

async fn claimed_events_that_were_not_tried_are_released(fixture: Fixture) {
    let webhook = create(&fixture, [EventKind::Accepted].into_iter().collect()).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    assert_eq!(kinds(&works), [EventKind::Accepted]);
    // On SQLite a claim is only a read.
    assert_eq!(claim(&fixture, &webhook).await.is_empty(), !fixture.is_sqlite());
    let unused = works.iter().map(|work| work.event.id).collect();
    let released = fixture.store.release_webhook_work(fixture.server, webhook.id, unused).await;
    released.expect("the store works");
    assert_eq!(claim(&fixture, &webhook).await.len(), works.len());
}

async fn disabled_webhook_gets_no_events_and_others_are_notified(fixture: Fixture) {
    let (dead, other) = (create(&fixture, EventSet::ALL).await, create(&fixture, EventSet::ALL).await);
    fixture.accept_and_claim().await;
    let disabled = fixture.store.disable_webhook(fixture.server, dead.id, "410 Gone".into(), None).await;
    assert!(disabled.expect("the store works"));
    let again = fixture.store.disable_webhook(fixture.server, dead.id, "410 Gone".into(), None).await;
    assert!(!again.expect("the store works"));
    assert!(claim(&fixture, &dead).await.is_empty());
    let works = claim(&fixture, &other).await;
    assert_eq!(kinds(&works), [EventKind::Accepted, EventKind::WebhookDisabled]);
    assert_eq!(works[1].event.message, None);
    assert!(works[1].event.data.contains("410 Gone"));
    let found = fixture.store.find_webhook(fixture.server, dead.id).await.expect("it works").expect("there");
    assert_eq!((found.enabled, found.disabled_reason.as_deref()), (false, Some("410 Gone")));
    let change = WebhookChange { enabled: Some(true), ..WebhookChange::default() };
    let late =
        fixture.store.change_webhook(fixture.server, dead.id, Some(dead.version), change.clone()).await;
    assert!(matches!(late, Ok(UpdateResult::OtherVersion(2))), "{late:?}");
    let enabled = fixture.store.change_webhook(fixture.server, dead.id, Some(2), change).await;
    let Ok(UpdateResult::Done(enabled)) = enabled else { panic!("{enabled:?}") };
    assert_eq!((enabled.enabled, enabled.disabled_reason, enabled.url), (true, None, dead.url));
}

async fn settle(
    fixture: &Fixture,
    webhook: &Webhook,
    outcomes: &[(&WebhookWork, Timestamp, WebhookNext)],
) -> Webhook {
    let outcomes = outcomes.iter().map(|(work, at, next)| outcome(webhook, work, *at, *next)).collect();
    fixture.store.settle_webhooks(outcomes).await.expect("the store works");
    let found = fixture.store.find_webhook(webhook.server_id, webhook.id).await.expect("the store works");
    found.expect("it is there")
}

async fn a_webhook_fails_only_if_a_post_failed_after_the_last_success(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let works = claim(&fixture, &webhook).await;
    let at = |secs| fixture.in_secs(secs);
    let retry = WebhookNext::RetryAt(at(0));
    // The failed post began first and is stored last: it hung.
    let batch = [(&works[0], at(2), WebhookNext::Done), (&works[1], at(1), retry)];
    let found = settle(&fixture, &webhook, &batch).await;
    assert_eq!((found.failing_since, found.last_success_at), (None, Some(at(2))));
    assert_eq!(settle(&fixture, &webhook, &[(&works[1], at(1), retry)]).await.failing_since, None);
    assert_eq!(settle(&fixture, &webhook, &[(&works[1], at(3), retry)]).await.failing_since, Some(at(3)));
    let batch = [(&works[1], at(6), retry), (&works[1], at(5), WebhookNext::Done)];
    assert_eq!(settle(&fixture, &webhook, &batch).await.failing_since, Some(at(6)));
    // This successful post took long: it began before the known failure and the known success.
    let found = settle(&fixture, &webhook, &[(&works[1], at(4), WebhookNext::Done)]).await;
    assert_eq!((found.failing_since, found.last_success_at), (Some(at(6)), Some(at(5))));
    let batch = [(&works[1], at(5), retry), (&works[1], at(7), WebhookNext::Done)];
    let found = settle(&fixture, &webhook, &batch).await;
    assert_eq!((found.failing_since, found.last_success_at), (None, Some(at(7))));
    // A batch of two posts that began before the known success and the known failure.
    settle(&fixture, &webhook, &[(&works[0], at(8), WebhookNext::Done), (&works[1], at(10), retry)]).await;
    let batch = [(&works[0], at(4), WebhookNext::Done), (&works[1], at(6), retry)];
    let found = settle(&fixture, &webhook, &batch).await;
    assert_eq!((found.failing_since, found.last_success_at), (Some(at(10)), Some(at(8))));
    assert_eq!(settle(&fixture, &webhook, &[(&works[1], at(9), retry)]).await.failing_since, Some(at(9)));
    // A batch of which only some failures are later than the known success.
    settle(&fixture, &webhook, &[(&works[0], at(20), WebhookNext::Done)]).await;
    let found = settle(&fixture, &webhook, &[(&works[0], at(18), retry), (&works[1], at(24), retry)]).await;
    assert_eq!((found.failing_since, found.last_success_at), (Some(at(24)), Some(at(20))));
    settle(&fixture, &webhook, &[(&works[0], at(30), WebhookNext::Done)]).await;
    let late = [(at(28), WebhookNext::Done), (at(29), retry), (at(31), retry)];
    let batch = late.map(|(at, next)| (&works[0], at, next));
    let found = settle(&fixture, &webhook, &batch).await;
    assert_eq!((found.failing_since, found.last_success_at), (Some(at(31)), Some(at(30))));
}

async fn a_webhook_that_has_not_failed_for_long_enough_is_not_disabled(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    let failed_at = fixture.in_secs(10);
    settle(&fixture, &webhook, &[(&works[0], failed_at, WebhookNext::RetryAt(fixture.in_secs(0)))]).await;
    let disable = |failing_before| {
        fixture.store.disable_webhook(fixture.server, webhook.id, "No success".into(), Some(failing_before))
    };
    assert!(!disable(fixture.in_secs(9)).await.expect("the store works"));
    assert_eq!(claim(&fixture, &webhook).await.len(), 1, "its queued events stay");
    assert!(disable(failed_at).await.expect("the store works"));
}

async fn events_that_a_format_cannot_express_are_dropped_without_a_failure(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    fixture.accept_and_claim().await;
    let works = claim(&fixture, &webhook).await;
    let found =
        settle(&fixture, &webhook, &[(&works[0], fixture.clock.now(), WebhookNext::UnsupportedInFormat)])
            .await;
    assert_eq!((found.failing_since, found.last_success_at), (None, None));
    assert_eq!(fixture.query_int("SELECT count(*) FROM webhook_queue").await, 0);
}

async fn webhook_enabled_again_gets_only_new_events(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    fixture.accept_and_claim().await;
    let event = claim(&fixture, &webhook).await[0].event.id;
    let disabled = fixture.store.disable_webhook(fixture.server, webhook.id, "410 Gone".into(), None).await;
    assert!(disabled.expect("the store works"));
    // As if a transaction had not seen that the webhook was disabled.
    let left = fixture.store.replay_webhook(fixture.server, webhook.id, Replay::Event(event)).await;
    assert_eq!(left.expect("the store works").events, 1);
    let change = || WebhookChange { enabled: Some(true), ..WebhookChange::default() };
    fixture.store.change_webhook(fixture.server, webhook.id, None, change()).await.expect("it works");
    assert!(claim(&fixture, &webhook).await.is_empty());
    fixture.accept_and_claim().await;
    // Enabling an enabled webhook loses no events.
    fixture.store.change_webhook(fixture.server, webhook.id, None, change()).await.expect("it works");
    assert_eq!(kinds(&claim(&fixture, &webhook).await), [EventKind::Accepted]);
}

async fn deleted_webhook_leaves_nothing_behind(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    fixture.accept_and_claim().await;
    fixture.store.delete_webhook(fixture.server, webhook.id).await.expect("the store works");
    assert_eq!(fixture.store.find_webhook(fixture.server, webhook.id).await.expect("it works"), None);
    assert_eq!(fixture.query_int("SELECT count(*) FROM webhook_queue").await, 0);
    let again = fixture.store.delete_webhook(fixture.server, webhook.id).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
}

async fn rotated_secret_stays_valid_for_a_while(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    let until = fixture.clock.now().plus(Duration::from_mins(1));
    let new = WebhookSecret("whsec_two".into());
    let rotated = fixture
        .store
        .rotate_webhook_secret(fixture.server, webhook.id, new.clone(), None, until)
        .await
        .expect("it works");
    assert_eq!(
        (rotated.secret, rotated.previous_secret),
        (new.clone(), Some((webhook.secret.clone(), until)))
    );
    let third = WebhookSecret("whsec_three".into());
    let rotate = async |replaces| {
        fixture
            .store
            .rotate_webhook_secret(fixture.server, webhook.id, third.clone(), Some(replaces), until)
            .await
    };
    let late = rotate(webhook.secret.clone()).await;
    assert!(matches!(late, Err(StoreError::Conflict)), "somebody rotated before");
    assert_eq!(rotate(new).await.expect("it works").secret, third);
}

async fn webhooks_of_another_server_are_unknown(fixture: Fixture) {
    let webhook = create(&fixture, EventSet::ALL).await;
    let (store, other) = (&fixture.store, fixture.other_server);
    assert_eq!(store.find_webhook(other, webhook.id).await.expect("it works"), None);
    assert!(store.list_webhooks(other, None, None, 10).await.expect("it works").is_empty());
    let change = WebhookChange { url: Some("https://evil.example".into()), ..WebhookChange::default() };
    assert!(matches!(store.change_webhook(other, webhook.id, None, change).await, Err(StoreError::NotFound)));
    assert!(matches!(store.delete_webhook(other, webhook.id).await, Err(StoreError::NotFound)));
    let listed = store.list_webhooks(fixture.server, None, None, 10).await.expect("it works");
    assert_eq!(listed, [webhook]);
}
