//! Returned mail about a message: stored as a separate message, and recorded once.

use std::time::Duration;

use postroad_model::{
    Direction, EventKind, MessageId, MessageToken, SendId, SourceId, Status, SuppressionReason, idgen,
};
use postroad_store::{
    NewDelivery, NewEvent, NewReturn, NewSource, NewSuppression, OldRows, Outcome, ReturnEffect,
    ReturnResult, SendInfo, SendOptions, StoreError, StoredBody,
};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    a_sent_message_becomes_bounced_once,
    bounce_of_a_message_that_was_not_sent_changes_nothing,
    complaint_leaves_the_status_and_is_reported_once,
    mail_without_effect_is_stored,
    repeated_mail_is_stored_once_and_twenty_mails_at_most,
    repeated_mail_with_a_new_effect_is_stored,
    large_and_small_mail_is_read_back,
    mail_about_unknown_messages_is_refused,
    sources_count_complaints_and_no_simulated_bounces,
    concurrent_bounces_have_one_effect,
    bounce_of_a_message_without_delivery_records_is_stored,
);

const STORED_ONLY: ReturnResult = ReturnResult { is_stored: true, has_effect: false };
const STORED_WITH_EFFECT: ReturnResult = ReturnResult { is_stored: true, has_effect: true };
const NOT_STORED: ReturnResult = ReturnResult { is_stored: false, has_effect: false };

async fn send_message(fixture: &Fixture) -> MessageId {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    id
}

fn mail(fixture: &Fixture, about: MessageId, message_id: &str, effect: Option<ReturnEffect>) -> NewReturn {
    mail_with_bytes(fixture, about, message_id, effect, b"Subject: failed\r\n\r\nNo.\r\n")
}

pub(crate) fn mail_with_bytes(
    fixture: &Fixture,
    about: MessageId,
    message_id: &str,
    effect: Option<ReturnEffect>,
    bytes: &[u8],
) -> NewReturn {
    let ids = fixture.store.ids().expect("a node has ids");
    NewReturn {
        info: SendInfo {
            server_id: fixture.server,
            id: SendId(ids.next()),
            credential_id: None,
            message_id: message_id.to_owned(),
            mail_from: String::new(),
            from_domain: String::new(),
            subject: "failed".into(),
            tag: None,
            metadata: std::collections::BTreeMap::new(),
            options: SendOptions::default(),
            size: bytes.len() as u64,
            direction: Direction::Incoming,
            bounce: true,
            received_with_ssl: true,
            test: false,
            created_at: fixture.now(),
        },
        body: StoredBody::compress(bytes.to_vec()).expect("zstd compresses anything"),
        id: MessageId(ids.next()),
        token: MessageToken::random(&mut rand::rng()),
        rcpt_to: "path@rp.example.test".into(),
        about,
        effect,
    }
}

fn suppression(about: MessageId, reason: SuppressionReason) -> NewSuppression {
    NewSuppression {
        address: "ann@example.com".into(),
        reason,
        details: "550 5.1.1 no".into(),
        origin_message_id: Some(about),
        expires_at: None,
    }
}

fn bounce(fixture: &Fixture, about: MessageId) -> ReturnEffect {
    let delivery = NewDelivery {
        output: "550 5.1.1 no \0 such user".into(),
        code: Some(550),
        enhanced_code: Some("5.1.1".into()),
        bounce_class: Some("bad_mailbox".into()),
        ..NewDelivery::local(fixture.now(), Status::Bounced, "it came back")
    };
    ReturnEffect {
        delivery: Some(delivery),
        event: NewEvent { kind: EventKind::Bounced, data: r#"{"bounce":{"kind":"async"}}"#.into() },
        suppress: Some(suppression(about, SuppressionReason::HardBounce)),
        counts_for_source: true,
    }
}

fn complaint(about: MessageId) -> ReturnEffect {
    ReturnEffect {
        delivery: None,
        event: NewEvent { kind: EventKind::Complained, data: "{}".into() },
        suppress: Some(suppression(about, SuppressionReason::Complaint)),
        counts_for_source: true,
    }
}

async fn take(fixture: &Fixture, new: NewReturn) -> ReturnResult {
    fixture.store.take_return(new).await.expect("the store works")
}

async fn suppression_reason(fixture: &Fixture) -> Option<SuppressionReason> {
    let found = fixture.store.find_suppression(fixture.server, "ann@example.com".into()).await;
    found.expect("the store works").map(|found| found.reason)
}

async fn a_sent_message_becomes_bounced_once(fixture: Fixture) {
    let id = send_message(&fixture).await;
    fixture.clock.advance(Duration::from_mins(1));
    let new = mail(&fixture, id, "one@mx.example", Some(bounce(&fixture, id)));
    let stored_id = new.id;
    assert_eq!(take(&fixture, new).await, STORED_WITH_EFFECT);
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.last_delivery_at), (Status::Bounced, Some(fixture.now())));
    let deliveries = fixture.deliveries(id).await;
    assert_eq!(deliveries.len(), 2);
    let record = &deliveries[1].record;
    assert_eq!((record.status, record.code), (Status::Bounced, Some(550)));
    assert_eq!(record.output, "550 5.1.1 no \u{fffd} such user");
    assert_eq!(record.bounce_class.as_deref(), Some("bad_mailbox"));
    assert_eq!(suppression_reason(&fixture).await, Some(SuppressionReason::HardBounce));
    let stored = fixture.message(stored_id).await;
    assert_eq!(
        (stored.bounce_for_id, stored.send.bounce, stored.send.direction),
        (id.0, true, Direction::Incoming)
    );
    assert_eq!((stored.status, stored.next_attempt_at), (Status::Sent, None));
    assert_eq!(
        take(&fixture, mail(&fixture, id, "two@mx.example", Some(bounce(&fixture, id)))).await,
        STORED_ONLY
    );
    assert_eq!(fixture.deliveries(id).await.len(), 2);
    let kinds = [EventKind::Accepted, EventKind::Delivered, EventKind::Bounced];
    assert_eq!(fixture.event_kinds(id).await, kinds);
    assert!(fixture.claim_due().await.is_empty(), "nothing that came back is delivered");
}

async fn bounce_of_a_message_that_was_not_sent_changes_nothing(fixture: Fixture) {
    let mut ids = vec![fixture.accept(fixture.send_to(&["ann@example.com"])).await[0]];
    for status in [Status::SoftFail, Status::HardFail, Status::Held] {
        let id = fixture.accept_and_claim().await;
        assert!(fixture.finish(fixture.outcome(id, status)).await);
        ids.push(id);
    }
    for id in ids {
        let before = (fixture.message(id).await.status, fixture.event_kinds(id).await);
        assert_eq!(
            take(&fixture, mail(&fixture, id, "one@mx.example", Some(bounce(&fixture, id)))).await,
            STORED_ONLY
        );
        assert_eq!((fixture.message(id).await.status, fixture.event_kinds(id).await), before);
    }
    assert_eq!(suppression_reason(&fixture).await, None);
}

async fn complaint_leaves_the_status_and_is_reported_once(fixture: Fixture) {
    let id = send_message(&fixture).await;
    assert_eq!(
        take(&fixture, mail(&fixture, id, "one@mx.example", Some(complaint(id)))).await,
        STORED_WITH_EFFECT
    );
    assert_eq!(take(&fixture, mail(&fixture, id, "two@mx.example", Some(complaint(id)))).await, STORED_ONLY);
    assert_eq!(fixture.message(id).await.status, Status::Sent);
    assert_eq!(fixture.deliveries(id).await.len(), 1);
    assert_eq!(suppression_reason(&fixture).await, Some(SuppressionReason::Complaint));
    assert_eq!(
        take(&fixture, mail(&fixture, id, "three@mx.example", Some(bounce(&fixture, id)))).await,
        STORED_WITH_EFFECT
    );
    let kinds = [EventKind::Accepted, EventKind::Delivered, EventKind::Complained, EventKind::Bounced];
    assert_eq!(fixture.event_kinds(id).await, kinds);
    assert_eq!(suppression_reason(&fixture).await, Some(SuppressionReason::Complaint), "the older one stays");
}

async fn mail_without_effect_is_stored(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let new = mail(&fixture, id, "delay@mx.example", None);
    let stored_id = new.id;
    assert_eq!(take(&fixture, new).await, STORED_ONLY);
    assert_eq!(fixture.message(stored_id).await.bounce_for_id, id.0);
    assert_eq!(fixture.message(id).await.status, Status::Sent);
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Delivered]);
    assert!(fixture.events(stored_id).await.is_empty());
}

async fn repeated_mail_is_stored_once_and_twenty_mails_at_most(fixture: Fixture) {
    let id = send_message(&fixture).await;
    assert_eq!(take(&fixture, mail(&fixture, id, "same@mx.example", None)).await, STORED_ONLY);
    assert_eq!(take(&fixture, mail(&fixture, id, "same@mx.example", None)).await, NOT_STORED);
    for number in 1..20 {
        let name = if number % 2 == 0 { String::new() } else { format!("{number}@mx.example") };
        assert_eq!(take(&fixture, mail(&fixture, id, &name, None)).await, STORED_ONLY, "{number}");
    }
    assert_eq!(take(&fixture, mail(&fixture, id, "last@mx.example", None)).await, NOT_STORED);
    let other = send_message(&fixture).await;
    assert_eq!(take(&fixture, mail(&fixture, other, "same@mx.example", None)).await, STORED_ONLY);
}

/// The bounce arrives before the outcome of the attempt is stored, and once more after it.
async fn repeated_mail_with_a_new_effect_is_stored(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert_eq!(
        take(&fixture, mail(&fixture, id, "same@mx.example", Some(bounce(&fixture, id)))).await,
        STORED_ONLY
    );
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let again = mail(&fixture, id, "same@mx.example", Some(bounce(&fixture, id)));
    let stored_id = again.id;
    assert_eq!(take(&fixture, again).await, STORED_WITH_EFFECT);
    assert_eq!(fixture.message(id).await.status, Status::Bounced);
    assert_eq!(fixture.message(stored_id).await.bounce_for_id, id.0);
}

async fn large_and_small_mail_is_read_back(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let large: Vec<u8> =
        (0..1_500_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for bytes in [&b"x"[..], &large] {
        let new = mail_with_bytes(&fixture, id, "", None, bytes);
        let stored_id = new.id;
        assert_eq!(take(&fixture, new).await, STORED_ONLY);
        let send = fixture.message(stored_id).await.send;
        let read = fixture.store.read_body(fixture.server, send.id, send.size).await.expect("it is there");
        assert!(read == bytes, "{} bytes became {}", bytes.len(), read.len());
    }
    let repeated = mail_with_bytes(&fixture, id, "same@mx.example", None, &large);
    assert_eq!(take(&fixture, repeated).await, STORED_ONLY);
    let repeated = mail_with_bytes(&fixture, id, "same@mx.example", None, &large);
    assert_eq!(take(&fixture, repeated).await, NOT_STORED);
    assert_eq!(fixture.query_int("SELECT count(*) FROM sends").await, 4);
}

async fn mail_about_unknown_messages_is_refused(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let first = mail(&fixture, id, "one@mx.example", None);
    let stored_id = first.id;
    assert_eq!(take(&fixture, first).await, STORED_ONLY);
    let unknown = mail(&fixture, MessageId(4_711), "x@mx.example", None);
    let mut foreign = mail(&fixture, id, "x@mx.example", Some(bounce(&fixture, id)));
    foreign.info.server_id = fixture.other_server;
    // Returned mail has no return path of its own.
    let of_a_bounce = mail(&fixture, stored_id, "x@mx.example", Some(bounce(&fixture, id)));
    for new in [unknown, foreign, of_a_bounce] {
        assert!(matches!(fixture.store.take_return(new).await, Err(StoreError::NotFound)));
    }
    assert_eq!(fixture.message(id).await.status, Status::Sent);
    assert_eq!(fixture.query_int("SELECT count(*) FROM sends").await, 2);
}

async fn sources_count_complaints_and_no_simulated_bounces(fixture: Fixture) {
    let pool = fixture.store.create_pool("shared".into(), true).await.expect("the store works");
    let address = "192.0.2.1";
    let new = NewSource {
        pool_id: pool.id,
        address: address.parse().expect("an address"),
        helo: postroad_model::DomainName::parse("mx.example.test").expect("a name"),
        weight: 1,
        warmup_started_at: None,
    };
    let source: SourceId = fixture.store.add_source(new).await.expect("the store works").id;
    let domain = postroad_model::DomainName::parse("example.com").expect("a name");
    fixture.store.save_recipient_providers(vec![(domain, "big".into())]).await.expect("the store works");
    for source_ip in [Some(address), Some("192.0.2.99"), None] {
        let id = fixture.accept_and_claim().await;
        let mut outcome = Outcome { source_id: None, ..fixture.outcome(id, Status::Sent) };
        outcome.delivery.source_ip = source_ip.map(str::to_owned);
        assert!(fixture.finish(outcome).await);
        // If the address were suppressed, the next message to it would be held.
        let counted = ReturnEffect { suppress: None, ..complaint(id) };
        assert_eq!(take(&fixture, mail(&fixture, id, "", Some(counted))).await, STORED_WITH_EFFECT);
        let simulated = bounce(&fixture, id);
        let simulated = ReturnEffect { suppress: None, counts_for_source: false, ..simulated };
        assert_eq!(take(&fixture, mail(&fixture, id, "", Some(simulated))).await, STORED_WITH_EFFECT);
    }
    let of = async |column: &str| {
        fixture.query_int(&format!("SELECT {column} FROM source_days WHERE source_id = {}", source.0)).await
    };
    assert_eq!((of("sent").await, of("bounced").await, of("complained").await), (0, 0, 1));
    assert_eq!(fixture.query_int("SELECT count(*) FROM source_days").await, 1);
    let of_big = "SELECT count(*) FROM source_days WHERE provider = 'big'";
    assert_eq!(fixture.query_int(of_big).await, 1, "by the provider of the recipient");
}

async fn concurrent_bounces_have_one_effect(fixture: Fixture) {
    let id = send_message(&fixture).await;
    let mut taking = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (store, name) = (fixture.store.clone(), format!("{number}@mx.example"));
        let new = mail(&fixture, id, &name, Some(bounce(&fixture, id)));
        taking.spawn(async move { store.take_return(new).await.expect("the store works").has_effect });
    }
    let effects = taking.join_all().await;
    assert_eq!(effects.iter().filter(|has_effect| **has_effect).count(), 1);
    assert_eq!(fixture.event_kinds(id).await.len(), 3);
}

async fn bounce_of_a_message_without_delivery_records_is_stored(fixture: Fixture) {
    let id = send_message(&fixture).await;
    fixture.clock.advance(Duration::from_hours(3 * 7 * 24));
    let before = idgen::first_id_at(fixture.now());
    let mut removal =
        fixture.store.begin_removal(OldRows::Deliveries, before).await.expect("the store answers");
    while fixture.store.remove_old_rows(&mut removal).await.expect("removing works").has_more {}
    assert!(fixture.deliveries(id).await.is_empty());
    let new = mail(&fixture, id, "one@mx.example", Some(bounce(&fixture, id)));
    assert_eq!(take(&fixture, new).await, STORED_WITH_EFFECT);
    assert_eq!(fixture.message(id).await.status, Status::Bounced);
    assert_eq!(fixture.deliveries(id).await.len(), 1);
}
