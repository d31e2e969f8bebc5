//! `begin`: the last check before a message is sent.

use postroad_model::{DomainName, MessageId, ServerId, Status, SuppressionReason, Timestamp};
use postroad_store::{
    BeginRequest, BeginResult, ClaimSkips, InitialState, NewSuppression, NewTrackingEvent, TrackingEventKind,
};
use postroad_testkit::eventually_within;

use crate::counting::rules;
use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    claimed_message_is_begun_once,
    begin_returns_the_whole_message,
    begin_of_an_unclaimed_message_finds_it_gone,
    requests_of_a_batch_are_answered_one_by_one,
    recipient_suppressed_since_the_accept_is_reported,
    recipient_whose_suppression_was_erased_is_reported,
    fresh_message_is_read_again_if_an_address_was_suppressed_after_the_accept,
    late_suppressions_apply_to_messages_accepted_before,
    expired_suppression_is_not_reported,
    soft_failure_that_keeps_its_claim_is_begun_again,
    message_of_a_begin_that_timed_out_can_be_released_and_begun_again,
);

fn begin(server_id: ServerId, message_id: MessageId, due_at: Timestamp) -> BeginRequest {
    BeginRequest { server_id, message_id, due_at, needs_message: true }
}

async fn begin_one(fixture: &Fixture, request: BeginRequest) -> BeginResult {
    fixture.store.begin(vec![request]).await.expect("the store works").remove(0)
}

async fn claimed_message_is_begun_once(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let request = begin(fixture.server, id, fixture.now());
    assert!(matches!(begin_one(&fixture, request.clone()).await, BeginResult::Go(Some(_))));
    assert!(matches!(begin_one(&fixture, request.clone()).await, BeginResult::Gone), "it was begun before");
    fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    assert!(matches!(begin_one(&fixture, request.clone()).await, BeginResult::Gone), "it is not claimed");
    fixture.claim_due().await;
    assert!(
        matches!(begin_one(&fixture, request).await, BeginResult::Go(Some(_))),
        "it may go again after a new claim"
    );
}

async fn begin_returns_the_whole_message(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let BeginResult::Go(Some(begun)) = begin_one(&fixture, begin(fixture.server, id, fixture.now())).await
    else {
        panic!("it may go");
    };
    let found = fixture.message(id).await;
    assert_eq!(format!("{begun:?}"), format!("{found:?}"));
    assert_eq!((begun.id, begun.status, begun.rcpt_to.as_str()), (id, Status::Pending, "ann@example.com"));
}

async fn begin_of_an_unclaimed_message_finds_it_gone(fixture: Fixture) {
    let free = fixture.accept(fixture.send_to(&["bob@example.com"])).await[0];
    assert!(matches!(
        begin_one(&fixture, begin(fixture.server, free, fixture.now())).await,
        BeginResult::Gone
    ));
    let id = fixture.accept_and_claim().await;
    let other_time = begin(fixture.server, id, fixture.in_secs(1));
    assert!(matches!(begin_one(&fixture, other_time).await, BeginResult::Gone), "it is due at another time");
    let foreign = begin(fixture.other_server, id, fixture.now());
    assert!(matches!(begin_one(&fixture, foreign).await, BeginResult::Gone));
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert!(matches!(begin_one(&fixture, begin(fixture.server, id, fixture.now())).await, BeginResult::Gone));
}

async fn requests_of_a_batch_are_answered_one_by_one(fixture: Fixture) {
    let (first, second) = (fixture.accept_and_claim().await, fixture.accept_and_claim().await);
    let now = fixture.now();
    let batch = vec![
        begin(fixture.server, first, now),
        begin(fixture.server, MessageId(1), now),
        BeginRequest { needs_message: false, ..begin(fixture.server, second, now) },
        begin(fixture.server, first, now),
    ];
    let begun = fixture.store.begin(batch).await.expect("the store works");
    assert!(matches!(&begun[0], BeginResult::Go(Some(message)) if message.id == first), "{begun:?}");
    assert!(matches!(begun[1..], [BeginResult::Gone, BeginResult::Go(None), BeginResult::Gone]), "{begun:?}");
    assert!(fixture.store.begin(Vec::new()).await.expect("the store works").is_empty());
}

fn suppression(address: &str, expires_at: Option<Timestamp>) -> NewSuppression {
    NewSuppression {
        address: address.to_owned(),
        reason: SuppressionReason::Complaint,
        details: "she said so".into(),
        origin_message_id: None,
        expires_at,
    }
}

async fn recipient_suppressed_since_the_accept_is_reported(fixture: Fixture) {
    let ids = fixture.accept(fixture.send_to(&["Ünï.ANN@BÜCHER.example", "bob@example.com"])).await;
    fixture.claim_due().await;
    let added =
        fixture.store.add_suppression(fixture.server, suppression("Ünï.ann@bücher.example", None)).await;
    let added = added.expect("the store works");
    let batch = ids.iter().map(|id| begin(fixture.server, *id, fixture.now())).collect();
    let begun = fixture.store.begin(batch).await.expect("the store works");
    let BeginResult::Suppressed(message, found) = &begun[0] else { panic!("{begun:?}") };
    assert_eq!((message.id, found), (ids[0], &added));
    assert!(matches!(begun[1], BeginResult::Go(Some(_))));
    assert!(fixture.finish(fixture.outcome(ids[0], Status::Held)).await);
    assert_eq!(fixture.message(ids[0]).await.status, Status::Held);
}

async fn recipient_whose_suppression_was_erased_is_reported(fixture: Fixture) {
    let ids = fixture.accept(fixture.send_to(&["Ünï.ANN@BÜCHER.example", "bob@example.com"])).await;
    fixture.claim_due().await;
    let address = "Ünï.ann@bücher.example";
    fixture.store.add_suppression(fixture.server, suppression(address, None)).await.expect("the store works");
    fixture.store.erase_address(fixture.server, address.into(), &rules()).await.expect("the store works");
    let batch = ids.iter().map(|id| begin(fixture.server, *id, fixture.now())).collect();
    let begun = fixture.store.begin(batch).await.expect("the store works");
    assert!(matches!(begun[..], [BeginResult::Suppressed(..), BeginResult::Go(Some(_))]), "{begun:?}");
}

async fn fresh_message_is_read_again_if_an_address_was_suppressed_after_the_accept(fixture: Fixture) {
    let fresh = |server_id, id| BeginRequest { needs_message: false, ..begin(server_id, id, fixture.now()) };
    let ids =
        fixture.accept(fixture.send_to(&["Ann@example.com", "bob@example.com", "cid@example.com"])).await;
    let state = InitialState::Pending;
    let other = fixture.send(fixture.other_server, &["ann@example.com"], state, b"Subject: a\r\n\r\n");
    let other = fixture.accept(other).await[0];
    fixture.claim_due().await;
    assert!(matches!(begin_one(&fixture, fresh(fixture.server, ids[2])).await, BeginResult::Go(None)));
    let added = fixture.store.add_suppression(fixture.server, suppression("ann@example.com", None)).await;
    let added = added.expect("the store works");
    let batch = vec![
        fresh(fixture.server, ids[0]),
        fresh(fixture.server, ids[1]),
        fresh(fixture.other_server, other),
    ];
    let begun = fixture.store.begin(batch).await.expect("the store works");
    assert!(matches!(&begun[0], BeginResult::Suppressed(_, found) if *found == added), "{begun:?}");
    assert!(matches!(begun[1..], [BeginResult::Go(Some(_)), BeginResult::Go(None)]), "{begun:?}");
    // The recipient of a message that is accepted after the suppression is checked when it is accepted, so the message
    // is not read.
    fixture.clock.advance(std::time::Duration::from_secs(30));
    let later = fixture.accept(fixture.send_to(&["dan@example.com"])).await[0];
    fixture.claim_due().await;
    assert!(matches!(begin_one(&fixture, fresh(fixture.server, later)).await, BeginResult::Go(None)));
}

async fn late_suppressions_apply_to_messages_accepted_before(fixture: Fixture) {
    let failing = fixture.accept_and_claim().await;
    let mut outcome = fixture.outcome(failing, Status::HardFail);
    outcome.suppress = Some(suppression("ann@example.com", None));
    let unsubscribed = NewTrackingEvent {
        server_id: fixture.server,
        message_id: failing,
        kind: TrackingEventKind::Unsubscribe { address: "bob@example.com".into() },
        at: fixture.now(),
        ip_address: "192.0.2.1".into(),
        user_agent: "Reader/1.0".into(),
        is_bot: false,
    };
    // The store was unavailable for a while; a message is accepted before the outcome is stored.
    fixture.clock.advance(std::time::Duration::from_mins(5));
    let fresh = |id| BeginRequest { needs_message: false, ..begin(fixture.server, id, fixture.now()) };
    let ids = fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.claim_due().await;
    assert!(fixture.finish(outcome).await);
    assert!(matches!(begin_one(&fixture, fresh(ids[0])).await, BeginResult::Suppressed(..)));
    fixture.clock.advance(std::time::Duration::from_mins(5));
    let ids = fixture.accept(fixture.send_to(&["bob@example.com"])).await;
    fixture.claim_due().await;
    let simulator_domain = DomainName::parse("sim.postroad.test").expect("a domain");
    fixture
        .store
        .record_tracking_events(vec![unsubscribed], simulator_domain)
        .await
        .expect("tracking events can be written");
    assert!(matches!(begin_one(&fixture, fresh(ids[0])).await, BeginResult::Suppressed(..)));
}

async fn expired_suppression_is_not_reported(fixture: Fixture) {
    let new = suppression("ann@example.com", Some(fixture.now()));
    fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
    let other = suppression("ann@example.com", None);
    fixture.store.add_suppression(fixture.other_server, other).await.expect("the store works");
    let id = fixture.accept_and_claim().await;
    assert!(matches!(
        begin_one(&fixture, begin(fixture.server, id, fixture.now())).await,
        BeginResult::Go(Some(_))
    ));
}

async fn soft_failure_that_keeps_its_claim_is_begun_again(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    begin_one(&fixture, begin(fixture.server, id, fixture.now())).await;
    let mut outcome = fixture.outcome(id, Status::SoftFail);
    outcome.keep_claim = true;
    let due_at = outcome.delivery.next_attempt_at.expect("it is tried again");
    assert!(fixture.finish(outcome).await);
    assert!(
        fixture.store.claim(due_at, 10, ClaimSkips::default()).await.expect("it works").is_empty(),
        "it is ours"
    );
    assert!(matches!(begin_one(&fixture, begin(fixture.server, id, fixture.now())).await, BeginResult::Gone));
    let BeginResult::Go(Some(message)) = begin_one(&fixture, begin(fixture.server, id, due_at)).await else {
        panic!("it may go");
    };
    assert_eq!((message.status, message.next_attempt_at), (Status::SoftFail, Some(due_at)));
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(fixture.row_counts().await["queue"], 0);
}

async fn message_of_a_begin_that_timed_out_can_be_released_and_begun_again(fixture: Fixture) {
    for timeout_us in [0, 20, 50, 100, 200, 400, 800, 1_600] {
        let id = fixture.accept_and_claim().await;
        let requests = vec![begin(fixture.server, id, fixture.now())];
        let timeout = std::time::Duration::from_micros(timeout_us);
        let _ = tokio::time::timeout(timeout, fixture.store.begin(requests)).await;
        // Whether it was begun or not, the claim is ours: the message can be released and begun again.
        fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
        eventually_within(std::time::Duration::from_secs(5), async || {
            fixture.claim_due().await;
            if matches!(
                begin_one(&fixture, begin(fixture.server, id, fixture.now())).await,
                BeginResult::Go(_)
            ) {
                return Ok(());
            }
            fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
            Err(format!("not begun after {timeout_us} us"))
        })
        .await;
        assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    }
}
