//! The audit log: filters and pages; and its chain, by which a removed or changed entry is noticed.

use postroad_store::{Audit, AuditEntry, AuditFilter, AuditSubject, AuditVerdict, HiddenActors, SetBy};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    a_changed_or_removed_entry_is_noticed,
    a_long_chain_is_checked_in_parts,
    entries_are_found_by_every_filter_page_by_page,
    a_filter_that_few_entries_pass_ends_a_page_early,
);

/// Suspends the server; without a reason, ends its suspension.
async fn set_suspension(fixture: &Fixture, reason: Option<&str>) {
    let audit = Audit {
        actor: ("command_line", None),
        address: None,
        operation: "servers/suspend",
        subject: AuditSubject::Server(fixture.server),
        creation: None,
    };
    let store = fixture.store.audited(audit);
    store
        .set_server_suspended_by(SetBy::Operator, fixture.server, reason.map(ToOwned::to_owned))
        .await
        .expect("the store works");
}

async fn verdict(fixture: &Fixture) -> AuditVerdict {
    fixture.store.verify_audit(fixture.account, 0, "").await.expect("the store works")
}

async fn a_changed_or_removed_entry_is_noticed(fixture: Fixture) {
    for reason in [Some("one"), Some("two"), None, Some("four"), Some("four")] {
        set_suspension(&fixture, reason).await;
    }
    // The fifth call changed nothing, so there are four entries.
    let whole = verdict(&fixture).await;
    assert_eq!((whole.account_id, whole.intact_count, whole.broken_at), (fixture.account, 4, None));
    let last = fixture.store.find_audit_hash(fixture.account, 4).await.expect("the store works");
    assert_eq!(last, Some(whole.hash.clone()));
    let account = fixture.account.0;
    let change = |operation: &str| {
        format!("UPDATE audit SET operation = '{operation}' WHERE account_id = {account} AND seq = 2")
    };
    fixture.execute(&change("servers/resume")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(2));
    fixture.execute(&change("servers/suspend")).await;
    assert_eq!(verdict(&fixture).await, whole);
    fixture.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq = 4")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(4), "the head knows the last one");
    // An entry beyond the head does not replace a missing one.
    fixture.execute(&format!("UPDATE audit SET seq = 9 WHERE account_id = {account} AND seq = 3")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(3));
    fixture.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq = 1")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(1));
    fixture.execute(&format!("DELETE FROM audit_heads WHERE account_id = {account}")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(1), "entries without a head");
    let audited = fixture.store.list_audited_accounts(postroad_model::AccountId(-1), 10).await;
    assert!(audited.expect("the store works").contains(&fixture.account));
}

async fn a_long_chain_is_checked_in_parts(fixture: Fixture) {
    for number in 0..1_003 {
        set_suspension(&fixture, Some(&format!("reason {number}"))).await;
    }
    let first = verdict(&fixture).await;
    assert_eq!((first.intact_count, first.broken_at, first.has_more), (1_000, None, true));
    let verify_after = async |after: i64, hash: &str| {
        let found = fixture.store.verify_audit(fixture.account, after, hash).await.expect("the store works");
        (found.intact_count, found.broken_at, found.has_more)
    };
    assert_eq!(verify_after(first.intact_count, &first.hash).await, (1_003, None, false));
    // A check continues neither after a wrong hash nor after an entry that does not exist.
    let other = first.hash.replace('a', "b");
    assert_eq!(verify_after(first.intact_count, &other).await, (1_000, Some(1_001), false));
    assert_eq!(verify_after(first.intact_count, "no hash").await, (1_000, Some(1_001), false));
    assert_eq!(verify_after(2_000, &first.hash).await, (2_000, Some(2_000), false));
    let account = fixture.account.0;
    fixture.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq > 1000")).await;
    assert_eq!(verify_after(first.intact_count, &first.hash).await, (1_000, Some(1_001), false));
}

/// Whether a filter should find an entry.
type EntryTest = Box<dyn Fn(&AuditEntry) -> bool>;

async fn entries_are_found_by_every_filter_page_by_page(fixture: Fixture) {
    let store = &fixture.store;
    let mut times = Vec::new();
    for number in 0..12 {
        fixture.clock.set(fixture.in_secs(1));
        times.push(fixture.now());
        let is_user = number % 3 == 0;
        let (subject, operation) = match number % 2 {
            0 => (AuditSubject::Server(fixture.server), "servers/suspend"),
            _ => (AuditSubject::Server(fixture.other_server), "servers/resume"),
        };
        let audit = Audit {
            actor: if is_user { ("user", Some(7)) } else { ("account_key", Some(8)) },
            address: None,
            operation,
            subject,
            creation: None,
        };
        let server = if number % 2 == 0 { fixture.server } else { fixture.other_server };
        let reason = Some(format!("reason {number}"));
        store
            .audited(audit)
            .set_server_suspended_by(SetBy::Operator, server, reason)
            .await
            .expect("the store works");
    }
    let all = |_: &AuditEntry| true;
    let account = store.find_server(fixture.server).await.expect("it works").expect("it is there").account_id;
    let server = fixture.server.0;
    let (since, until) = (times[3], times[9]);
    let filters: Vec<(AuditFilter, EntryTest)> = vec![
        (AuditFilter::default(), Box::new(all)),
        (
            AuditFilter { operation: Some("servers/resume".into()), ..AuditFilter::default() },
            Box::new(|entry| entry.operation == "servers/resume"),
        ),
        (
            AuditFilter { subject_id: Some(server), ..AuditFilter::default() },
            Box::new(move |entry| entry.subject_id == Some(server)),
        ),
        (
            AuditFilter { subject: Some("server".into()), since: Some(since), ..AuditFilter::default() },
            Box::new(move |entry| entry.at >= since),
        ),
        (
            AuditFilter { actor: Some("user".into()), until: Some(until), ..AuditFilter::default() },
            Box::new(move |entry| entry.actor == "user" && entry.at < until),
        ),
        (
            AuditFilter { since: Some(since), until: Some(until), ..AuditFilter::default() },
            Box::new(move |entry| entry.at >= since && entry.at < until),
        ),
        (AuditFilter { operation: Some("none/such".into()), ..AuditFilter::default() }, Box::new(|_| false)),
        (
            AuditFilter { actor_id: Some(7), ..AuditFilter::default() },
            Box::new(|entry| entry.actor_id == Some(7)),
        ),
        (
            AuditFilter {
                actor_id: Some(7),
                hidden_actors: HiddenActors::OperatorKeysAndPeople,
                ..AuditFilter::default()
            },
            Box::new(|_| false),
        ),
        (
            AuditFilter {
                actor_id: Some(8),
                hidden_actors: HiddenActors::OperatorKeysAndPeople,
                operation: Some("servers/resume".into()),
                ..AuditFilter::default()
            },
            Box::new(|entry| entry.actor_id == Some(8) && entry.operation == "servers/resume"),
        ),
    ];
    let everything =
        store.list_audit(account, AuditFilter::default(), None, 100).await.expect("the store works").entries;
    assert!(everything.len() >= 6 && everything.windows(2).all(|pair| pair[0].seq > pair[1].seq));
    for (filter, is_wanted) in filters {
        let wanted: Vec<AuditEntry> = everything.iter().filter(|entry| is_wanted(entry)).cloned().collect();
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = store.list_audit(account, filter.clone(), before, 2).await.expect("the store works");
            found.extend(page.entries);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted, "{filter:?}");
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = store.export_audit(account, filter.clone(), after, 2).await.expect("the store works");
            found.extend(page.entries);
            let Some(next) = page.next else { break };
            after = next;
        }
        found.reverse();
        assert_eq!(found, wanted, "{filter:?}, exported");
    }
}

async fn a_filter_that_few_entries_pass_ends_a_page_early(fixture: Fixture) {
    let (account, empty) = (fixture.account.0, if fixture.is_sqlite() { "x''" } else { "''::bytea" });
    fixture
        .execute(&format!(
            "INSERT INTO audit (account_id, seq, at, actor, actor_id, operation, subject, subject_id, hash)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
             SELECT {account}, i, i, CASE i WHEN 3 THEN 'user' ELSE 'account_key' END, 8, 'servers/update', 'server', 1, {empty}
             FROM n"
        ))
        .await;
    let of = |actor: &str| AuditFilter {
        operation: Some("servers/update".into()),
        actor: Some(actor.into()),
        ..AuditFilter::default()
    };
    let store = &fixture.store;
    for (actor, wanted) in [("user", vec![3]), ("server_key", vec![])] {
        let (mut pages, mut before, mut found) = (0, None, Vec::new());
        loop {
            let page =
                store.list_audit(fixture.account, of(actor), before, 10).await.expect("the store works");
            (pages, before) = (pages + 1, page.next);
            found.extend(page.entries.iter().map(|entry| entry.seq));
            if before.is_none() {
                break;
            }
        }
        // A page examines at most 5,000 of the 12,000 entries (`SCANNED_ENTRIES_MAX`).
        assert_eq!((pages, &found), (3, &wanted), "{actor}");
        let (mut pages, mut after, mut found) = (0, 0, Vec::new());
        loop {
            let page =
                store.export_audit(fixture.account, of(actor), after, 10).await.expect("the store works");
            pages += 1;
            found.extend(page.entries.iter().map(|entry| entry.seq));
            let Some(next) = page.next else { break };
            after = next;
        }
        assert_eq!((pages, found), (3, wanted), "{actor}, exported");
    }
}
