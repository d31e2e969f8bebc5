//! Reports about domains: stored once, summed up, newest first.

use std::time::Duration;

use postroad_model::{DomainName, Timestamp};
use postroad_store::{DomainOwner, DomainReport, ReportKind, StoreError};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    reports_are_kept_once_and_summed_up,
    only_domains_of_servers_are_known,
    expired_reports_are_removed_and_a_domain_with_too_many_loses_the_oldest,
    next_owner_of_a_domain_does_not_see_its_old_reports,
);

const ALWAYS: (Timestamp, Timestamp) = (Timestamp::from_micros(0), Timestamp::from_micros(i64::MAX));

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect("a name")
}

fn own_domain() -> DomainName {
    name("mail.example.test")
}

fn report(domain: &str, kind: ReportKind, id: &str, total: u64, passed: u64) -> DomainReport {
    DomainReport {
        domain: name(domain),
        kind,
        organisation: "isp.example".into(),
        report_id: id.to_owned(),
        begin: Timestamp::from_micros(1_000_000),
        end: Timestamp::from_micros(2_000_000 + total.min(9) as i64),
        total,
        passed,
        details: "{}".into(),
    }
}

async fn add(fixture: &Fixture, reports: Vec<DomainReport>) -> Result<u64, StoreError> {
    fixture.store.add_domain_reports(reports).await
}

async fn reports_are_kept_once_and_summed_up(fixture: Fixture) {
    let domain = "rp.mail.example.test";
    let first = report(domain, ReportKind::Dmarc, "1", 3, 2);
    assert_eq!(add(&fixture, vec![first.clone(), first.clone()]).await.expect("the store works"), 1);
    assert_eq!(add(&fixture, vec![first.clone()]).await.expect("the store works"), 0);
    let second = report(domain, ReportKind::Dmarc, "2", 5, 5);
    // Absurd numbers in a stranger's reports do not break the sums.
    let absurd = report(domain, ReportKind::Tls, "1", u64::MAX, u64::MAX);
    let another = report(domain, ReportKind::Tls, "2", u64::MAX, 0);
    let more = vec![second.clone(), absurd, another, report("mail.example.test", ReportKind::Tls, "1", 4, 1)];
    assert_eq!(add(&fixture, more).await.expect("the store works"), 4);
    let sums = fixture.store.sum_up_domain_reports(None).await.expect("the store works");
    let shown: Vec<(&str, ReportKind, u64)> =
        sums.iter().map(|sum| (sum.domain.as_str(), sum.kind, sum.reports)).collect();
    let expected = [
        ("mail.example.test", ReportKind::Tls, 1),
        (domain, ReportKind::Dmarc, 2),
        (domain, ReportKind::Tls, 2),
    ];
    assert_eq!(shown, expected);
    assert_eq!((sums[1].total, sums[1].passed, sums[1].begin), (8, 7, first.begin));
    let one = fixture.store.sum_up_domain_reports(Some(own_domain())).await.expect("the store works");
    assert_eq!(one, sums[..1]);
    let listed = fixture.store.list_domain_reports(name(domain), 10).await.expect("the store works");
    assert_eq!(listed.len(), 4);
    assert_eq!(listed[2..], [second, first], "the newest first");
}

async fn only_domains_of_servers_are_known(fixture: Fixture) {
    let new = fixture.new_domain("news.shop.example");
    fixture.store.create_domain(new).await.expect("the store works");
    let names = ["news.shop.example", "shop.example", "ews.shop.example"].map(name).to_vec();
    let known = fixture.store.list_known_domains(names).await.expect("the store works");
    assert_eq!(known, [name("news.shop.example")]);
    assert_eq!(fixture.store.list_known_domains(Vec::new()).await.expect("the store works"), []);
}

async fn expired_reports_are_removed_and_a_domain_with_too_many_loses_the_oldest(fixture: Fixture) {
    let about = |id: &str| report("mail.example.test", ReportKind::Dmarc, id, 1, 1);
    assert_eq!(add(&fixture, vec![about("old")]).await.expect("the store works"), 1);
    fixture.clock.advance(Duration::from_hours(401 * 24));
    for start in (0..10_000).step_by(250) {
        let many = (start..start + 250).map(|number| about(&number.to_string())).collect();
        assert_eq!(add(&fixture, many).await.expect("the store works"), 250);
        fixture.clock.advance(Duration::from_secs(1));
    }
    let sums = || async { fixture.store.sum_up_domain_reports(None).await.expect("the store works") };
    // When the limit was reached, the hundred oldest reports were deleted.
    assert_eq!(sums().await[0].reports, 9_901);
    assert_eq!(fixture.store.remove_old_domain_reports().await.expect("the store works").rows, 0);
    fixture.clock.advance(Duration::from_hours(401 * 24));
    let mut removed = 0;
    loop {
        let step = fixture.store.remove_old_domain_reports().await.expect("the store works");
        removed += step.rows;
        if !step.has_more {
            break;
        }
    }
    assert_eq!(removed, 9_901);
    assert_eq!(sums().await, []);
}

async fn next_owner_of_a_domain_does_not_see_its_old_reports(fixture: Fixture) {
    let store = &fixture.store;
    let mut ids = Vec::new();
    for (server, domain) in [
        (fixture.server, "one.example"),
        (fixture.other_server, "one.example"),
        (fixture.server, "two.example"),
    ] {
        let mut new = fixture.new_domain(domain);
        new.owner = DomainOwner::Server(server);
        ids.push(store.create_domain(new).await.expect("the store works").id);
        add(&fixture, vec![report(domain, ReportKind::Dmarc, "1", 3, 2)]).await.expect("it is ours");
    }
    let left = async || {
        let sums = store.sum_up_domain_reports(None).await.expect("the store works");
        sums.iter().map(|sum| sum.domain.clone()).collect::<Vec<_>>()
    };
    let since =
        |created_at| store.list_domain_reports_between(name("one.example"), created_at, ALWAYS, None, 10);
    let first = store.find_domain_by_id(ids[0]).await.expect("the store works").expect("it is there");
    assert_eq!(since(first.created_at).await.expect("the store works").len(), 1);
    for id in &ids[..2] {
        store.delete_domain(*id, fixture.now()).await.expect("the store works");
    }
    // The reports are removed by age; an owner who adds the name meanwhile does not see them.
    assert_eq!(left().await, ["one.example", "two.example"]);
    fixture.clock.advance(Duration::from_secs(1));
    let next = store.create_domain(fixture.new_domain("one.example")).await.expect("the store works");
    assert!(since(next.created_at).await.expect("the store works").is_empty());
    store.delete_domain(next.id, fixture.now()).await.expect("the store works");
    // Reports of domains that are deleted with their server are removed together with the server.
    store.set_server_deleted(fixture.server, Some(fixture.now())).await.expect("the store works");
    while store.purge_deleted(fixture.now()).await.expect("the store works") {}
    assert_eq!(left().await, ["one.example"]);
}
