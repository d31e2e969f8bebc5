//! Unknown facts about this installation never fail a customer's record.

use postroad_app::domains::check::{
    self, ExpectedRecords, Purpose, RecordCheck, RecordStatus, SendingAddress, Service, ServiceConfig,
    Verdict, zone_fragment,
};
use postroad_testkit::dns_server::{Failure as DnsFailure, RecordType};

use crate::world::{DOMAIN, HOST, SELECTOR_NAME, World, key_one, name, txt_of, verdict};

fn config(sources: &[(&str, &str)]) -> ServiceConfig {
    let source = |(address, helo): &(&str, &str)| SendingAddress {
        address: address.parse().expect("tests have good addresses"),
        helo: name(helo),
    };
    let sources: Vec<SendingAddress> = sources.iter().map(source).collect();
    ServiceConfig { host: name(HOST), uses_system_address: sources.is_empty(), sources, takes_reports: true }
}

/// Checks of a domain with this SPF record, whose other records are right.
async fn checks(world: &World, config: &ServiceConfig, spf: &str) -> Vec<RecordCheck> {
    world.server.txt(DOMAIN, spf).txt(SELECTOR_NAME, &txt_of(key_one()));
    world.server.txt("_dmarc.shop.example", "v=DMARC1; p=none");
    world.checks_with(config).await
}

#[tokio::test]
async fn a_dns_failure_of_our_own_names_gives_no_verdict_on_a_customers_record() {
    let nat = config(&[("10.0.0.5", "nat.post.example"), ("192.0.2.10", "out.post.example")]);
    let public = config(&[("192.0.2.10", "out.post.example")]);
    let chosen = config(&[]);
    for (config, name, record_type) in [
        (&nat, "nat.post.example", RecordType::A),
        (&public, "spf.post.example", RecordType::TXT),
        (&chosen, HOST, RecordType::A),
        (&chosen, HOST, RecordType::AAAA),
    ] {
        // An SPF record that would pass, one that would not, and none.
        for spf in ["v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all", "v=spf1 -all", "hello"] {
            let world = World::new();
            world.server.fail_type(name, record_type, DnsFailure::ServFail);
            let checks = checks(&world, config, spf).await;
            let hint = format!(
                "This service could not find out which addresses it sends from ({record_type} lookup of {name}: the name \
                 server answered SERVFAIL). This is not a verdict; the check is repeated. There is nothing for you to change."
            );
            assert_eq!(verdict(&checks[0]), (RecordStatus::DnsError, Some(hint.as_str())), "{spf}");
            assert_eq!(checks[0].value, "");
            assert!(!zone_fragment(&checks).contains("v=spf1"));
            assert_eq!(Verdict::of(&checks), Verdict::Unknown);
        }
    }
}

#[tokio::test]
async fn private_addresses_are_neither_judged_nor_suggested() {
    // The HELO name has the address that receivers see.
    let world = World::new();
    world.server.a("nat.post.example", [203, 0, 113, 7]).remove("spf.post.example");
    let nat = config(&[("10.0.0.5", "nat.post.example")]);
    let seen = checks(&world, &nat, "v=spf1 ip4:203.0.113.7 -all").await;
    assert_eq!(verdict(&seen[0]), (RecordStatus::Verified, None));
    // The HELO name has no address: only the other source counts.
    let world = World::new();
    let both = config(&[("10.0.0.5", "nat.post.example"), ("192.0.2.10", "out.post.example")]);
    let seen = checks(&world, &both, "v=spf1 ip4:192.0.2.10 -all").await;
    assert_eq!(verdict(&seen[0]), (RecordStatus::Verified, None));
    // Without another source, nothing is known and nothing is suggested.
    let world = World::new();
    let seen = checks(&world, &nat, "v=spf1 mx -all").await;
    let hint = "This service does not know which addresses it sends from, so SPF cannot be judged. Its operator has to give \
                nat.post.example a public address (A, AAAA) or add addresses to a pool.";
    assert_eq!(verdict(&seen[0]), (RecordStatus::Pending, Some(hint)));
    assert_eq!((seen[0].value.as_str(), seen[0].found.as_slice()), ("", &["v=spf1 mx -all".to_owned()][..]));
    // The same holds before the DNS was asked.
    assert!(Service::without_dns(&both).spf_terms().is_empty());
    assert_eq!(Service::without_dns(&config(&[("192.0.2.10", HOST)])).spf_terms(), ["ip4:192.0.2.10"]);
}

#[tokio::test]
async fn the_operator_learns_which_name_lacks_a_public_address() {
    let world = World::new();
    let (dns, nat) = (world.dns(), config(&[("10.0.0.5", "nat.post.example")]));
    let expected = ExpectedRecords::of_installation(&Service::look_up(&dns, &nat).await, &[]);
    world.server.ns(HOST, "ns.post.example");
    let checks = check::check(&dns, &expected).await;
    let hint = "There is no such record yet. Add this A record at nat.post.example.";
    let seen = checks.iter().find(|check| check.name == "nat.post.example").expect("the name is expected");
    assert_eq!(verdict(seen), (RecordStatus::Missing, Some(hint)));
    assert_eq!((seen.purpose, seen.required, seen.value.as_str()), (Purpose::Host, true, ""));
    let zone = zone_fragment(&checks);
    assert!(zone.contains("; no value is known for nat.post.example. A\n"), "{zone}");
    assert!(!zone.contains("10.0.0.5") && !zone.contains("v=spf1"), "{zone}");
}

#[tokio::test]
async fn a_record_whose_macro_asks_for_each_source_address_verifies_with_250_addresses() {
    let addresses: Vec<String> = (0..250).map(|number| format!("198.51.100.{number}")).collect();
    let sources: Vec<(&str, &str)> =
        addresses.iter().map(|address| (address.as_str(), "out.post.example")).collect();
    let world = World::new();
    for address in &addresses {
        world.server.a(&format!("{address}.a.shop.example"), [127, 0, 0, 2]);
    }
    let record = "v=spf1 exists:%{i}.b.shop.example exists:%{i}.a.shop.example -all";
    let seen = checks(&world, &config(&sources), record).await;
    assert_eq!(verdict(&seen[0]), (RecordStatus::Verified, None));
    // A record without macros is evaluated for all addresses, not only for a sample.
    let world = World::new();
    let seen = checks(&world, &config(&sources), "v=spf1 ip4:198.51.100.0/25 a:rest.shop.example -all").await;
    assert_eq!(seen[0].status, RecordStatus::Mismatch, "{:?}", seen[0]);
    let world = World::new();
    world.server.a("rest.shop.example", [198, 51, 100, 1]);
    let seen =
        checks(&world, &config(&sources), "v=spf1 ip4:198.51.100.0/25 a:rest.shop.example/24 -all").await;
    assert_eq!(seen[0].status, RecordStatus::Verified, "{:?}", seen[0]);
}

#[tokio::test]
async fn a_record_beyond_our_limit_of_dns_questions_gets_no_verdict() {
    let world = World::new();
    let addresses: Vec<String> = (0..8).map(|number| format!("198.51.100.{number}")).collect();
    for address in &addresses {
        for (term, host) in (0..4).flat_map(|term| (0..10).map(move |host| (term, host))) {
            let (name, host) =
                (format!("{address}.n{term}.example"), format!("h{host}.{address}.n{term}.example"));
            world.server.mx(&name, 10, &host).a(&host, [203, 0, 113, 1]);
        }
    }
    let sources: Vec<(&str, &str)> =
        addresses.iter().map(|address| (address.as_str(), "out.post.example")).collect();
    let terms: Vec<String> = (0..4).map(|term| format!("mx:%{{i}}.n{term}.example")).collect();
    let seen = checks(&world, &config(&sources), &format!("v=spf1 {} -all", terms.join(" "))).await;
    let hint = "To judge this record, this service would have to ask more DNS questions than its limit allows. This is not a \
                verdict. Fewer `include` and `mx` terms in the SPF record mean fewer questions.";
    assert_eq!(verdict(&seen[0]), (RecordStatus::DnsError, Some(hint)));
}

#[tokio::test]
async fn records_that_cannot_be_read_whole_get_no_suggestion() {
    let public = config(&[("192.0.2.10", "out.post.example")]);
    let terms: Vec<String> = (0..200).map(|number| format!("ip4:198.51.100.{number}/32")).collect();
    let long = format!("v=spf1 {} -all", terms.join(" "));
    assert!(long.len() > 4_096);
    let seen = checks(&World::new(), &public, &long).await;
    let hint = "Your SPF record is too long to be judged here: less than 4096 bytes are read. Shorten it, for example with \
                networks in place of single addresses.";
    assert_eq!(verdict(&seen[0]), (RecordStatus::Pending, Some(hint)));
    assert_eq!(seen[0].value, "");
    assert!(!zone_fragment(&seen).contains("v=spf1"));
    // If the record fits, all its terms are kept.
    let terms: Vec<String> =
        (0..300).map(|number| format!("ip4:1.2.{}.{}", number / 250, number % 250)).collect();
    let many = format!("v=spf1 {} -all", terms.join(" "));
    let seen = checks(&World::new(), &public, &many).await;
    assert_eq!(seen[0].status, RecordStatus::Mismatch);
    assert_eq!(seen[0].value, format!("v=spf1 {} include:spf.post.example -all", terms.join(" ")));
    // Five records are merged; for six, no suggestion is made.
    let world = World::new();
    for number in 1..5 {
        world.server.txt(DOMAIN, &format!("v=spf1 ip4:198.51.100.{number} -all"));
    }
    let seen = checks(&world, &public, "v=spf1 ip4:198.51.100.9 -all").await;
    let spf = seen.iter().find(|check| check.purpose == Purpose::Spf).expect("SPF is always checked");
    assert_eq!(spf.value.matches("ip4:198.51.100.").count(), 5, "{spf:?}");
    world.server.txt(DOMAIN, "v=spf1 ip4:198.51.100.5 -all");
    let seen = world.checks_with(&public).await;
    let hint = "You have 6 SPF records, so receivers ignore all of them. Make them one, with include:spf.post.example before \
                its end.";
    assert_eq!(verdict(&seen[0]), (RecordStatus::Multiple, Some(hint)));
    assert_eq!(seen[0].value, "");
}
