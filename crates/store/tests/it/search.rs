//! Searches find exactly the messages that reading all messages finds, with and without the index.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{MessageId, Status, Timestamp};
use postroad_store::{
    EraseResult, FilterTerm, IndexProgress, InitialState, Matcher, Needle, SearchFilter, SearchPage,
    WaitingFor,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines! {
    searches_find_what_a_scan_finds,
    messages_stored_late_are_found,
    a_block_of_a_writer_that_died_is_finished_by_another_later,
    blocks_are_removed_with_their_messages,
    a_search_that_runs_out_of_time_continues_with_its_cursor,
    a_merge_of_a_node_that_died_is_finished_by_another_later,
    merged_blocks_are_removed_with_their_messages,
    a_merge_does_not_bring_back_an_erased_person,
}

const BLOCK: usize = 32;
const WORDS: [&str; 12] = [
    "order",
    "Order",
    "invoice 4711",
    "ÄRGER",
    "注文が届きました",
    "re:",
    "100%_x",
    "a",
    "ord",
    "voice",
    "1234567890",
    "345678",
];
const PEOPLE: [&str; 7] = ["ann", "bob.order", "ÜLI", "x", "carol+news", "ann.smith", "user345678"];
const DOMAINS: [&str; 4] = ["example.com", "order.example", "mail.example.com", "example.org"];
const TAGS: [&str; 3] = ["news", "news ", "receipts"];

/// A message as the test knows it.
#[derive(Debug, Clone)]
struct KnownMessage {
    id: MessageId,
    token: String,
    message_id: String,
    rcpt_to: String,
    mail_from: String,
    from_domain: String,
    subject: String,
    tag: Option<String>,
    template: Option<String>,
    order: String,
    attachment: bool,
    status: Status,
    at: Timestamp,
}

async fn accept_random(fixture: &Fixture, random: &mut StdRng) -> Vec<KnownMessage> {
    let to: Vec<String> = (0..random.random_range(1..4))
        .map(|_| format!("{}@{}", pick(random, &PEOPLE), pick(random, &DOMAINS)))
        .collect();
    let status = match random.random_range(0..10) {
        0..=1 => Status::Held,
        2 => Status::Scheduled,
        _ => Status::Pending,
    };
    let state = if status == Status::Held {
        let (reason, details) = (postroad_model::HoldReason::Credential, "as the key says".to_owned());
        InitialState::Held { reason, details, expiry: fixture.in_secs(3_600) }
    } else if status == Status::Scheduled {
        InitialState::Scheduled(fixture.in_secs(1_000_000))
    } else {
        InitialState::Pending
    };
    let addresses: Vec<&str> = to.iter().map(String::as_str).collect();
    let mut send = fixture.send(fixture.server, &addresses, state, b"x");
    let words: Vec<&str> = (0..random.random_range(0..4)).map(|_| *pick(random, &WORDS)).collect();
    send.info.subject = words.join(" ");
    send.info.mail_from = format!("{}@shop.example", pick(random, &PEOPLE));
    send.info.from_domain = (*pick(random, &DOMAINS)).to_owned();
    send.info.tag = random.random_bool(0.5).then(|| (*pick(random, &TAGS)).to_owned());
    send.info.options.template = random.random_bool(0.3).then(|| "welcome".to_owned());
    send.info.options.attachment = random.random_bool(0.3);
    let order = random.random_range(0..5).to_string();
    send.info.metadata.insert("order".into(), order.clone());
    let info = send.info.clone();
    let tokens: Vec<String> = send.recipients.iter().map(|recipient| recipient.token.0.clone()).collect();
    let ids = fixture.accept(send).await;
    fixture.clock.advance(Duration::from_secs(random.random_range(0..3)));
    let known = |((id, token), rcpt_to): ((MessageId, String), String)| KnownMessage {
        id,
        token,
        message_id: info.message_id.clone(),
        rcpt_to,
        mail_from: info.mail_from.clone(),
        from_domain: info.from_domain.clone(),
        subject: info.subject.clone(),
        tag: info.tag.clone(),
        template: info.options.template.clone(),
        order: order.clone(),
        attachment: info.options.attachment,
        status,
        at: info.created_at,
    };
    ids.into_iter().zip(tokens).zip(to).map(known).collect()
}

type MessageTest = Box<dyn Fn(&KnownMessage) -> bool>;

fn pick<'a, T>(random: &mut StdRng, from: &'a [T]) -> &'a T {
    from.choose(random).expect("it is not empty")
}

fn random_matcher(random: &mut StdRng) -> (Matcher, MessageTest) {
    let source = [*pick(random, &WORDS), *pick(random, &PEOPLE), *pick(random, &DOMAINS)];
    let letters: Vec<char> = pick(random, &source).chars().collect();
    let from = random.random_range(0..letters.len());
    let to = random.random_range(from + 1..=letters.len());
    let text: String = letters[from..to].iter().collect();
    let has = {
        let text = text.to_lowercase();
        move |field: &str| field.to_lowercase().contains(&text)
    };
    let needle = Needle::new(&text);
    match random.random_range(0..9) {
        0 => (Matcher::To(needle), Box::new(move |known| has(&known.rcpt_to))),
        1 => (Matcher::From(needle), Box::new(move |known| has(&known.mail_from))),
        2 => (Matcher::Subject(needle), Box::new(move |known| has(&known.subject))),
        3 => (
            Matcher::Anywhere(needle),
            Box::new(move |known| has(&known.subject) || has(&known.rcpt_to) || has(&known.mail_from)),
        ),
        4 => {
            let tag = (*pick(random, &TAGS)).to_owned();
            (Matcher::Tag(tag.clone()), Box::new(move |known| known.tag.as_ref() == Some(&tag)))
        }
        5 => {
            let domain = (*pick(random, &DOMAINS)).to_owned();
            (Matcher::Domain(domain.to_uppercase()), Box::new(move |known| known.from_domain == domain))
        }
        6 => (Matcher::Template("welcome".into()), Box::new(|known| known.template.is_some())),
        7 => {
            let value = random.random_range(0..6).to_string();
            let matcher = Matcher::Metadata { key: "order".into(), value: value.clone() };
            (matcher, Box::new(move |known| known.order == value))
        }
        _ => (Matcher::HasAttachment, Box::new(|known| known.attachment)),
    }
}

/// Searches page by page; returns all ids found.
async fn search_all(
    fixture: &Fixture,
    filter: &Arc<SearchFilter>,
    limit: usize,
    time: Duration,
) -> Vec<MessageId> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let search = fixture.store.search(fixture.server, filter, before, limit, time);
        let SearchPage { items, next } = search.await.expect("the store works");
        assert!(items.len() <= limit);
        found.extend(items.iter().map(|item| item.id));
        match next {
            Some(next) => {
                assert!(before.is_none_or(|before| next.0 < before.0), "every page gets further");
                before = Some(next);
            }
            None => return found,
        }
    }
}

async fn index_all(fixture: &Fixture) -> usize {
    let mut blocks = 0;
    while fixture.store.index_next_block(fixture.server, BLOCK).await.expect("the store works")
        == IndexProgress::Added
    {
        blocks += 1;
    }
    blocks
}

/// Checks all blocks and merges them, `parts` at a time; returns how many merged blocks were added.
async fn merge_all(fixture: &Fixture, parts: usize) -> usize {
    fixture.clock.advance(Duration::from_mins(16));
    while fixture.store.check_next_block().await.expect("the store works").is_some() {}
    let mut merged = 0;
    while merge_next(fixture, parts).await == IndexProgress::Added {
        merged += 1;
    }
    merged
}

async fn merge_next(fixture: &Fixture, parts: usize) -> IndexProgress {
    fixture.store.merge_next_blocks(fixture.server, parts).await.expect("the store works")
}

async fn remove_parts(fixture: &Fixture) {
    while fixture.store.remove_merged_parts().await.expect("the store works") {}
}

async fn searches_find_what_a_scan_finds(fixture: Fixture) {
    let mut random = StdRng::seed_from_u64(7);
    let mut known: Vec<KnownMessage> = Vec::new();
    for round in 0..5 {
        for _ in 0..60 {
            known.extend(accept_random(&fixture, &mut random).await);
        }
        fixture.clock.advance(Duration::from_secs(11));
        // The first round is searched without any index.
        if round > 0 {
            assert!(index_all(&fixture).await >= 2);
        }
        // In one round the parts of merged blocks still exist, in the next they are removed.
        if round > 2 {
            assert!(merge_all(&fixture, 3).await >= 1);
        }
        if round > 3 {
            fixture.clock.advance(Duration::from_secs(61));
            remove_parts(&fixture).await;
            let parts = "SELECT count(*) FROM search_blocks WHERE state = 4";
            assert_eq!(fixture.query_int(parts).await, 0);
        }
        let newest_first: Vec<KnownMessage> = known.iter().rev().cloned().collect();
        for number in 0..40 {
            let mut filter = SearchFilter::default();
            let mut tests: Vec<MessageTest> = Vec::new();
            for _ in 0..random.random_range(0..4) {
                let (matcher, test) = random_matcher(&mut random);
                let is_negated = random.random_ratio(1, 4);
                filter.terms.push(FilterTerm { matcher, is_negated });
                tests.push(Box::new(move |known| test(known) != is_negated));
            }
            match random.random_range(0..6) {
                0 => filter.statuses = Some(vec![Status::Held]),
                1 => filter.statuses = Some(vec![Status::Pending, Status::Bounced]),
                2 => filter.statuses = Some(vec![Status::Scheduled]),
                3 => filter.statuses = Some(vec![Status::Held, Status::Scheduled, Status::Pending]),
                _ => {}
            }
            if random.random_ratio(1, 4) {
                filter.since = Some(pick(&mut random, &known).at);
                filter.until = Some(pick(&mut random, &known).at);
            }
            let expected: Vec<MessageId> = newest_first
                .iter()
                .filter(|known| {
                    filter.statuses.as_ref().is_none_or(|statuses| statuses.contains(&known.status))
                        && filter.since.is_none_or(|since| known.at >= since)
                        && filter.until.is_none_or(|until| known.at < until)
                        && tests.iter().all(|test| test(known))
                })
                .map(|known| known.id)
                .collect();
            let filter = Arc::new(filter);
            let limit = [1, 7, 500][number % 3];
            let found = search_all(&fixture, &filter, limit, Duration::from_mins(1)).await;
            assert_eq!(found, expected, "{filter:?}");
        }
        for _ in 0..5 {
            assert_found_by_names(&fixture, &newest_first, pick(&mut random, &known)).await;
        }
    }
    let everything = Arc::new(SearchFilter::default());
    let page = fixture.store.search(fixture.other_server, &everything, None, 10, Duration::from_mins(1));
    assert!(page.await.expect("the store works").items.is_empty());
}

/// A message is found by its id and token, and with others of its send by its Message-ID.
async fn assert_found_by_names(fixture: &Fixture, newest_first: &[KnownMessage], one: &KnownMessage) {
    let of_send = newest_first.iter().filter(|known| known.message_id == one.message_id);
    let of_send: Vec<MessageId> = of_send.map(|known| known.id).collect();
    let anywhere = |text: &str| Matcher::Anywhere(Needle::new(text));
    for (matcher, expected) in [
        (Matcher::Id(one.id), vec![one.id]),
        (Matcher::Id(MessageId(i64::MAX)), vec![]),
        (Matcher::Token(one.token.clone()), vec![one.id]),
        (anywhere(&one.token), vec![one.id]),
        (Matcher::MessageIdHeader(one.message_id.clone()), of_send.clone()),
        (anywhere(&format!("<{}>", one.message_id)), of_send),
        (anywhere(&one.token[1..]), vec![]),
    ] {
        let filter = SearchFilter {
            terms: vec![FilterTerm { matcher, is_negated: false }],
            ..SearchFilter::default()
        };
        let found = search_all(fixture, &Arc::new(filter.clone()), 7, Duration::from_mins(1)).await;
        assert_eq!(found, expected, "{filter:?}");
    }
}

fn tagged(tag: &str) -> Arc<SearchFilter> {
    let term = FilterTerm { matcher: Matcher::Tag(tag.into()), is_negated: false };
    Arc::new(SearchFilter { terms: vec![term], ..SearchFilter::default() })
}

async fn accept_block(fixture: &Fixture, tag: &str) -> Vec<MessageId> {
    let addresses: Vec<String> = (0..BLOCK).map(|number| format!("u{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let mut send = fixture.send_to(&addresses);
    send.info.tag = Some(tag.to_owned());
    fixture.accept(send).await
}

async fn messages_stored_late_are_found(fixture: Fixture) {
    // Ids of the late send are created before those of the block; the send is stored after the block is indexed.
    let mut late = fixture.send_to(&["late@example.com", "later@example.com"]);
    late.info.tag = Some("late".to_owned());
    accept_block(&fixture, "block").await;
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 1);
    let mut ids = fixture.accept(late).await;
    ids.reverse();
    let filter = tagged("late");
    let found = fixture.store.search_with_late(fixture.server, &filter, None, 10, Duration::from_mins(1));
    let found: Vec<MessageId> =
        found.await.expect("the store works").items.iter().map(|item| item.id).collect();
    assert_eq!(found, ids, "a job finds them before they are indexed");
    assert_eq!(fixture.store.check_next_block().await.expect("the store works"), None, "too early");
    fixture.clock.advance(Duration::from_mins(16));
    let checked = fixture.store.check_next_block().await.expect("the store works");
    assert_eq!(checked, Some(fixture.server));
    assert_eq!(fixture.store.check_next_block().await.expect("the store works"), None, "once");
    assert_eq!(search_all(&fixture, &tagged("late"), 10, Duration::from_mins(1)).await, ids);
    assert_eq!(search_all(&fixture, &tagged("block"), 10, Duration::from_mins(1)).await.len(), BLOCK);
}

async fn a_block_of_a_writer_that_died_is_finished_by_another_later(fixture: Fixture) {
    let ids = accept_block(&fixture, "block").await;
    fixture.clock.advance(Duration::from_secs(11));
    // A writer that died before it had written anything else.
    let (last, until) = (ids[BLOCK - 1].0, fixture.in_secs(60).as_micros());
    let blob = if fixture.is_sqlite() { "x''" } else { "''" };
    fixture
        .execute(&format!(
            "INSERT INTO search_blocks (server_id, first_id, last_id, state, claimed_until, ids)
             VALUES ({}, 0, {last}, 0, {until}, {blob})",
            fixture.server.0
        ))
        .await;
    assert_eq!(index_all(&fixture).await, 0, "it may still be writing");
    assert_eq!(search_all(&fixture, &tagged("block"), 10, Duration::from_mins(1)).await.len(), BLOCK);
    fixture.clock.advance(Duration::from_secs(61));
    assert_eq!(index_all(&fixture).await, 1);
    assert_eq!(search_all(&fixture, &tagged("block"), 10, Duration::from_mins(1)).await.len(), BLOCK);
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks WHERE state = 1").await, 1);
}

async fn blocks_are_removed_with_their_messages(fixture: Fixture) {
    let old = accept_block(&fixture, "old").await;
    accept_block(&fixture, "new").await;
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 2);
    assert!(!fixture.store.remove_old_search_rows().await.expect("the store works").has_more);
    let before = old[BLOCK - 1].0;
    fixture.execute(&format!("DELETE FROM messages WHERE id <= {before}")).await;
    while fixture.store.remove_old_search_rows().await.expect("the store works").has_more {}
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks").await, 1);
    assert_eq!(fixture.query_int("SELECT count(DISTINCT block) FROM search_postings").await, 1);
    assert_eq!(search_all(&fixture, &tagged("new"), 10, Duration::from_mins(1)).await.len(), BLOCK);
    assert!(search_all(&fixture, &tagged("old"), 10, Duration::from_mins(1)).await.is_empty());
}

async fn a_search_that_runs_out_of_time_continues_with_its_cursor(fixture: Fixture) {
    for _ in 0..4 {
        accept_block(&fixture, "block").await;
    }
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 4);
    let wanted = accept_block(&fixture, "tail").await;
    let all = search_all(&fixture, &tagged("block"), 500, Duration::from_nanos(1)).await;
    assert_eq!(all.len(), 4 * BLOCK);
    assert_eq!(search_all(&fixture, &tagged("tail"), 500, Duration::from_nanos(1)).await.len(), wanted.len());
}

async fn a_merge_of_a_node_that_died_is_finished_by_another_later(fixture: Fixture) {
    for _ in 0..3 {
        accept_block(&fixture, "block").await;
    }
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 3);
    assert_eq!(merge_next(&fixture, 3).await, IndexProgress::Nothing, "they are not checked yet");
    assert_eq!(merge_all(&fixture, 4).await, 0, "too few");
    // A writer that died after it had written a posting of a message that is gone since.
    let until = fixture.in_secs(60).as_micros();
    fixture.execute(&format!("UPDATE search_blocks SET claimed_until = {until} WHERE first_id = 0")).await;
    let blob = if fixture.is_sqlite() { "x'00'" } else { "'\\x00'" };
    fixture
        .execute(&format!(
            "INSERT INTO search_postings (server_id, block, token, positions) VALUES ({}, -1, 4711, {blob})",
            fixture.server.0
        ))
        .await;
    assert_eq!(merge_next(&fixture, 3).await, IndexProgress::Nothing, "it may still be writing");
    fixture.clock.advance(Duration::from_secs(61));
    assert_eq!(merge_next(&fixture, 3).await, IndexProgress::Added);
    let left = "SELECT count(*) FROM search_postings WHERE token = 4711";
    assert_eq!(fixture.query_int(left).await, 0, "its postings are removed");
    assert!(!fixture.store.remove_merged_parts().await.expect("the store works"), "searches may read them");
    for _ in 0..2 {
        let found = search_all(&fixture, &tagged("block"), 500, Duration::from_mins(1)).await;
        assert_eq!(found.len(), 3 * BLOCK);
        fixture.clock.advance(Duration::from_secs(61));
        remove_parts(&fixture).await;
    }
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks").await, 1);
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_postings WHERE block >= 0").await, 0);
    // New messages are indexed after the merged block.
    accept_block(&fixture, "block").await;
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 1);
    let found = search_all(&fixture, &tagged("block"), 500, Duration::from_mins(1)).await;
    assert_eq!(found.len(), 4 * BLOCK);
}

async fn merged_blocks_are_removed_with_their_messages(fixture: Fixture) {
    let old = accept_block(&fixture, "old").await;
    accept_block(&fixture, "new").await;
    fixture.clock.advance(Duration::from_secs(11));
    assert_eq!(index_all(&fixture).await, 2);
    assert_eq!(merge_all(&fixture, 2).await, 1);
    let remove =
        || async { while fixture.store.remove_old_search_rows().await.expect("the store works").has_more {} };
    // The merged block still has its parts, and half of its messages.
    fixture.execute(&format!("DELETE FROM messages WHERE id <= {}", old[BLOCK - 1].0)).await;
    remove().await;
    assert_eq!(search_all(&fixture, &tagged("new"), 10, Duration::from_mins(1)).await.len(), BLOCK);
    assert!(search_all(&fixture, &tagged("old"), 10, Duration::from_mins(1)).await.is_empty());
    fixture.execute("DELETE FROM messages").await;
    remove().await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks").await, 0);
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_postings").await, 0);
}

async fn a_merge_does_not_bring_back_an_erased_person(fixture: Fixture) {
    let tokens = "SELECT count(*) FROM search_postings";
    let mut ids = Vec::new();
    for address in ["jane.doe@customer.example", "bob@example.com", "bob@example.com"] {
        ids.extend(fixture.accept(fixture.send_to(&[address])).await);
    }
    let second = fixture.accept(fixture.send_to(&["kate.roe@client.example"])).await[0];
    fixture.clock.advance(Duration::from_secs(11));
    for _ in 0..2 {
        let indexed = fixture.store.index_next_block(fixture.server, 2).await.expect("the store works");
        assert_eq!(indexed, IndexProgress::Added);
    }
    fixture.clock.advance(Duration::from_mins(16));
    while fixture.store.check_next_block().await.expect("the store works").is_some() {}

    // A merge is in progress; erasing a person ends it.
    let until = fixture.in_secs(60).as_micros();
    fixture.execute(&format!("UPDATE search_blocks SET claimed_until = {until} WHERE first_id = 0")).await;
    erase(&fixture, ids[0]).await;
    let claimed = "SELECT count(*) FROM search_blocks WHERE claimed_until > 0";
    assert_eq!(fixture.query_int(claimed).await, 0);

    // Erases a person from a merged block, and from the parts that still exist.
    assert_eq!(merge_next(&fixture, 2).await, IndexProgress::Added);
    let before = fixture.query_int(tokens).await;
    erase(&fixture, second).await;
    // Trigrams of the address that no other address has: in the merged block, and in one of its parts.
    let only_hers = "kate.roe@client.".len() as i64 - 2;
    let after = fixture.query_int(tokens).await;
    assert!(before - after >= 2 * only_hers, "{before} tokens, then {after}");
    for address in ["jane", "kate.roe"] {
        let term = FilterTerm { matcher: Matcher::To(Needle::new(address)), is_negated: false };
        let filter = Arc::new(SearchFilter { terms: vec![term], ..SearchFilter::default() });
        assert!(search_all(&fixture, &filter, 10, Duration::from_mins(1)).await.is_empty());
    }
    assert_eq!(search_all(&fixture, &Arc::default(), 10, Duration::from_mins(1)).await.len(), 4);
}

async fn erase(fixture: &Fixture, id: MessageId) {
    let store = &fixture.store;
    store.cancel_if(fixture.server, id, WaitingFor::Anything).await.expect("the store works");
    assert_eq!(store.erase_message(fixture.server, id).await.expect("the store works"), EraseResult::Done);
}
