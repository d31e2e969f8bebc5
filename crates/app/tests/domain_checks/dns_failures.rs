//! DNS failures give no verdict; the length of answers and the number of questions are limited.

use std::time::{Duration, Instant};

use postroad_app::domains::check::{
    self, ExpectedRecords, Purpose, RecordStatus, Service, Verdict, zone_fragment,
};
use postroad_testkit::dns_server::{Failure as DnsFailure, RecordType};

use crate::world::{DOMAIN, SELECTOR_NAME, World, key_one, name, txt_of, verdict};

fn no_answer(reason: &str) -> String {
    format!(
        "The DNS did not answer ({reason}). This is not a verdict; the check is repeated. If this persists, tell the operator of the \
         name servers of shop.example."
    )
}

/// Publishes all records that a domain needs.
fn publish(world: &World) {
    world.server.txt(DOMAIN, "v=spf1 include:spf.post.example -all").txt(SELECTOR_NAME, &txt_of(key_one()));
    world.server.txt("_dmarc.shop.example", "v=DMARC1; p=none");
}

#[tokio::test]
async fn a_failing_name_server_gives_no_verdict() {
    for (failure, reason) in [
        (DnsFailure::ServFail, "the name server answered SERVFAIL"),
        // Answers of a lame delegation: the servers do not know the zone.
        (DnsFailure::Refused, "the name server answered REFUSED"),
        (DnsFailure::Referral, "the name server referred to others"),
    ] {
        let world = World::new();
        publish(&world);
        assert_eq!(Verdict::of(&world.checks().await), Verdict::Verified);
        for name in [DOMAIN, SELECTOR_NAME, "_dmarc.shop.example", "rp.shop.example"] {
            world.server.fail(name, failure);
        }
        let checks = world.checks().await;
        let seen = |purpose| {
            let check = checks.iter().find(|check| check.purpose == purpose).unwrap();
            verdict(check)
        };
        let error = RecordStatus::DnsError;
        let hint = |name: &str| no_answer(&format!("TXT lookup of {name}: {reason}"));
        assert_eq!(seen(Purpose::Spf), (error, Some(hint(DOMAIN).as_str())));
        // An existing record may only be unreachable: replacing it by a new one would break the customer's other mail.
        assert_eq!(checks[0].value, "");
        let zone = zone_fragment(&checks);
        assert!(zone.starts_with("; no value is known for shop.example. TXT\n"), "{zone}");
        assert_eq!(seen(Purpose::Dkim), (error, Some(hint(SELECTOR_NAME).as_str())));
        assert_eq!(seen(Purpose::Dmarc), (error, Some(hint("_dmarc.shop.example").as_str())));
        let alias = no_answer(&format!("CNAME lookup of rp.shop.example: {reason}"));
        assert_eq!(seen(Purpose::ReturnPath), (error, Some(alias.as_str())));
        assert_eq!(Verdict::of(&checks), Verdict::Unknown);
    }
}

#[tokio::test]
async fn a_silent_name_server_gives_no_verdict_and_the_check_ends_soon() {
    let mut world = World::new();
    world.timeout = Duration::from_secs(1);
    publish(&world);
    world.server.fail(SELECTOR_NAME, DnsFailure::Silent);
    let started_at = Instant::now();
    let check = world.check(Purpose::Dkim).await;
    assert_eq!(check.status, RecordStatus::DnsError, "{check:?}");
    // Which of two time limits runs out first depends on the machine.
    let hint = check.hint.as_deref().unwrap_or_default();
    let reasons = ["the name server did not answer in time", "no answer within 2 s"];
    let hints = reasons.map(|reason| no_answer(&format!("TXT lookup of {SELECTOR_NAME}: {reason}")));
    assert!(hints.iter().any(|known| known == hint), "{hint}");
    assert!(started_at.elapsed() < Duration::from_secs(30), "{:?}", started_at.elapsed());
}

#[tokio::test]
async fn a_dns_failure_behind_an_include_gives_no_verdict() {
    let world = World::new();
    world.server.txt(DOMAIN, "v=spf1 include:slow.example -all").fail("slow.example", DnsFailure::ServFail);
    let check = world.check(Purpose::Spf).await;
    let hint = no_answer("TXT lookup of slow.example: the name server answered SERVFAIL");
    assert_eq!(verdict(&check), (RecordStatus::DnsError, Some(hint.as_str())));
    assert_eq!(check.found, ["v=spf1 include:slow.example -all"]);
    // The suggested value keeps the existing terms.
    assert_eq!(check.value, "v=spf1 include:slow.example include:spf.post.example -all");
    // A DNS failure of the organisational domain leaves open whether its policy covers this domain.
    let world = World::new().with_domain("news.shop.example");
    world.server.fail("_dmarc.shop.example", DnsFailure::ServFail);
    assert_eq!(world.check(Purpose::Dmarc).await.status, RecordStatus::DnsError);
}

#[tokio::test]
async fn a_cname_loop_at_a_text_record_is_a_mismatch() {
    let world = World::new();
    world
        .server
        .cname("_dmarc.shop.example", "d.shop.example")
        .cname("d.shop.example", "_dmarc.shop.example");
    let check = world.check(Purpose::Dmarc).await;
    let hint = "_dmarc.shop.example leads into a CNAME loop, or through too many CNAMEs. Remove that CNAME.";
    assert_eq!(verdict(&check), (RecordStatus::Mismatch, Some(hint)));
    assert_eq!(check.found, ["d.shop.example", "_dmarc.shop.example"]);
}

#[tokio::test]
async fn a_domain_that_nobody_registered_is_named() {
    let world = World::new().with_domain("news.nobody.example");
    let hint = "nobody.example does not exist in the DNS: it is not registered, or has no name servers. Check the spelling \
                and the registration.";
    for check in world.checks().await {
        assert_eq!(verdict(&check), (RecordStatus::Missing, Some(hint)), "{}", check.name);
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_are_asked_for_over_tcp() {
    let world = World::new();
    publish(&world);
    world.server.fail_type(SELECTOR_NAME, RecordType::TXT, DnsFailure::Truncated);
    assert_eq!(world.check(Purpose::Dkim).await.status, RecordStatus::Verified);
    assert!(world.server.tcp_questions(SELECTOR_NAME, RecordType::TXT) > 0);
}

#[tokio::test]
async fn a_repaired_record_is_seen_at_once() {
    let world = World::new();
    let (dns, config) = (world.dns(), World::config());
    let service = Service::look_up(&dns, &config).await;
    let domain = name(DOMAIN);
    let expected = ExpectedRecords::of(&domain, &service, &[]);
    assert_eq!(check::check(&dns, &expected).await[0].status, RecordStatus::Missing);
    publish(&world);
    assert_eq!(check::check(&dns, &expected).await[0].status, RecordStatus::Verified);
}

#[tokio::test]
async fn long_records_are_shown_shortened() {
    let world = World::new();
    for number in 0..120 {
        world.server.txt(DOMAIN, &format!("v=spf1 {} {number} -all", "x".repeat(400)));
    }
    world
        .server
        .txt(SELECTOR_NAME, &"p=".repeat(20_000))
        .txt("_dmarc.shop.example", &"\u{1b}[31m".repeat(5_000));
    for check in world.checks().await {
        let shown: usize = check.found.iter().map(String::len).sum();
        assert!(check.found.len() <= 5 && shown <= 5 * 2_010, "{}: {shown}", check.name);
        assert!(check.found.iter().all(|text| !text.contains(char::is_control)));
        assert!(check.hint.unwrap_or_default().len() < 80_000);
    }
}

#[tokio::test]
async fn an_spf_record_cannot_cause_endless_lookups() {
    let world = World::new();
    // Every name includes ten others, and has ten mail hosts.
    for level in 0..12 {
        for number in 0..10 {
            let name = format!("n{number}.l{level}.example");
            let includes: Vec<String> =
                (0..10).map(|n| format!("include:n{n}.l{}.example", level + 1)).collect();
            world.server.txt(&name, &format!("v=spf1 mx {} ~all", includes.join(" ")));
            for n in 0..10 {
                let host = format!("mx{n}.{name}");
                world.server.mx(&name, n, &host).a(&host, [198, 51, 100, 1]);
            }
        }
    }
    world.server.txt(DOMAIN, "v=spf1 include:n0.l0.example include:n1.l0.example include:n2.l0.example ~all");
    let started_at = Instant::now();
    let (dns, domain) = (world.dns(), name(DOMAIN));
    let expected = ExpectedRecords::of(&domain, &Service::look_up(&dns, &World::config()).await, &[]);
    let answers = check::look_up(&dns, &expected).await;
    assert!((100..300).contains(&answers.len()), "{}", answers.len());
    let check = &check::judge(&expected, &answers)[0];
    assert_eq!(check.status, RecordStatus::Mismatch, "{check:?}");
    // Counting stops at 64 lookups (`COUNTED_LOOKUPS_MAX`).
    assert!(
        check.hint.as_ref().unwrap().starts_with("Your SPF needs 64 lookups; 10 are allowed."),
        "{check:?}"
    );
    assert!(started_at.elapsed() < Duration::from_secs(30));
}
