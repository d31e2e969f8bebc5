//! A domain verifies after its owner follows our suggestions, whatever was published before.

use postroad_app::domains::check::{Purpose, RecordCheck, RecordStatus, Verdict, zone_fragment};
use postroad_testkit::DnsServer;

use crate::world::{DOMAIN, SELECTOR_NAME, World, key_two, txt_of};

#[tokio::test]
async fn suggested_records_verify_when_they_are_published() {
    let long: Vec<String> = (0..40).map(|number| format!("ip4:198.51.100.{number}")).collect();
    let long = format!("v=spf1 {} -all", long.join(" "));
    let many: Vec<String> = (0..14).map(|number| format!("include:n{number}.example")).collect();
    let many = format!("v=spf1 {} -all", many.join(" "));
    let published: [&[&str]; 17] = [
        &[],
        &["v=spf1 -all"],
        &["v=spf1 mx a:gone.example -all"],
        &["v=spf1 include:gone.example ~all"],
        &["v=spf1 redirect=n1.example"],
        &["v=spf1 redirect=gone.example"],
        &["v=spf1 +all"],
        &["v=spf1 ipv4:192.0.2.1 -all"],
        &["v=spf1 nonsense include:n1.example redirect=n2.example"],
        &["v=spf1include:n1.example ~all"],
        &["v=spf1 exists:%{i}.a.example exists:%{i}.b.example exists:%{i}.c.example -all"],
        &["v=spf1 a:192.0.2.77,include:n1.example; -all"],
        &["v=spf1 a:x1.example a:x2.example a:x3.example a:x4.example -all"],
        &["v=spf1 ip4:198.51.100.1 -all", "v=spf1 include:n1.example ?all", "v=spf1 redirect=n2.example"],
        &["v=spf1 -ip4:192.0.2.0/24 ~all"],
        &[&long],
        &[&many],
    ];
    for has_include in [true, false] {
        for records_before in published {
            let world = World::new();
            if !has_include {
                world.server.remove("spf.post.example");
            }
            for number in 0..14 {
                world.server.txt(&format!("n{number}.example"), "v=spf1 ip4:203.0.113.1 -all");
            }
            for record in records_before {
                world.server.txt(DOMAIN, record);
            }
            world.server.txt(SELECTOR_NAME, &txt_of(key_two()));
            let zone = zone_fragment(&world.checks().await);
            republish(&world.server, &zone);
            let checks = world.checks().await;
            assert_eq!(Verdict::of(&checks), Verdict::Verified, "{records_before:?}\n{zone}\n{checks:#?}");
            assert!(checks.iter().all(|check| check.status == RecordStatus::Verified), "{records_before:?}");
            // Terms that were published before are kept.
            let spf = checks.iter().find(|check| check.purpose == Purpose::Spf).unwrap();
            for term in ["n1.example", "ip4:198.51.100.1 "] {
                let was_there = records_before.iter().any(|record| record.contains(term));
                assert!(!was_there || spf.value.contains(term), "{records_before:?}: {}", spf.value);
            }
        }
    }
}

/// Replaces the published records by those of the zone, as the customer would.
fn republish(server: &DnsServer, zone: &str) {
    server.remove(DOMAIN).remove(SELECTOR_NAME).ns(DOMAIN, "ns.shop.example").zone(zone);
}

#[tokio::test]
async fn a_zone_has_short_strings_and_complete_names() {
    let world = World::new();
    let zone = zone_fragment(&world.checks().await);
    for line in zone.lines() {
        let strings = line.split('"').skip(1).step_by(2);
        assert!(strings.clone().all(|text| text.len() <= 255), "{line}");
        let name = line.split(' ').next().unwrap();
        assert!(name.ends_with("shop.example."), "{line}");
    }
    let (first, rest) = zone.split_once('\n').unwrap();
    assert_eq!(first, r#"shop.example. 3600 IN TXT "v=spf1 include:spf.post.example ~all""#);
    assert!(rest.contains("\nrp.shop.example. 3600 IN CNAME rp.post.example.\n"));
    // The key is longer than one string.
    assert!(rest.starts_with(&format!("{SELECTOR_NAME}. 3600 IN TXT \"v=DKIM1; k=rsa; p=")));
    assert!(rest.split('\n').next().unwrap().contains("\" \""));
}

#[tokio::test]
async fn a_zone_shows_records_that_are_in_place_as_comments() {
    let world = World::new().with_domain("news.shop.example");
    world.server.a("news.shop.example", [198, 51, 100, 1]);
    world.server.txt("news.shop.example", "v=spf1 +all").txt("_dmarc.shop.example", "v=DMARC1; p=reject");
    world.server.cname("rp.news.shop.example", "rp.post.example");
    let zone = zone_fragment(&world.checks().await);
    for line in [
        "; replaces the SPF record that is there: a name has only one",
        "news.shop.example. 3600 IN TXT \"v=spf1 include:spf.post.example ?all\"",
        // A policy at this name would override that of the domain above.
        "; not needed, the policy of the domain above counts: _dmarc.news.shop.example. 3600 IN TXT \"v=DMARC1; p=none; \
         rua=mailto:dmarc-reports@rp.post.example\"",
        "; in place: rp.news.shop.example. 3600 IN CNAME rp.post.example.",
        "track.news.shop.example. 3600 IN CNAME track.post.example.",
    ] {
        assert!(zone.lines().any(|known| known == line), "{line} is not in\n{zone}");
    }
}

#[tokio::test]
async fn text_of_a_published_record_stays_on_its_line_in_a_zone() {
    let world = World::new();
    let policy = "v=DMARC1; p=none; x=\"; y=\\; evil.example. 1 IN A 192.0.2.66";
    world.server.txt("_dmarc.shop.example", policy);
    let check = world.check(Purpose::Dmarc).await;
    assert_eq!(check.status, RecordStatus::Verified);
    let zone = zone_fragment(&[RecordCheck { status: RecordStatus::Missing, ..check.clone() }]);
    assert_eq!(zone.lines().filter(|line| !line.starts_with(';')).count(), 1, "{zone}");
    let broken = RecordCheck { value: "a\nb".to_owned(), ..check };
    assert!(zone_fragment(&[broken]).ends_with("IN TXT \"a\\010b\"\n"));
    world.server.remove("_dmarc.shop.example").zone(&zone);
    assert_eq!(world.check(Purpose::Dmarc).await.value, policy);
}
