//! The DNS records of the installation itself.

use postroad_app::domains::check::{
    self, DkimRecord, ExpectedRecords, Purpose, RecordCheck, RecordStatus, RecordType, Service, Verdict,
    zone_fragment,
};
use postroad_testkit::DnsServer;
use postroad_testkit::dns_server::Failure;

use crate::world::{HOST, V4, V6, World, key_one, verdict};

/// A DNS in which the host's zone exists but has none of our records.
fn empty_world() -> World {
    let world = World::new();
    for name in [HOST, "spf.post.example", "track.post.example", "rp.post.example"] {
        world.server.remove(name);
    }
    world.server.ns(HOST, "ns.post.example");
    world
}

async fn checks(world: &World) -> Vec<RecordCheck> {
    let dns = world.dns();
    let service = Service::look_up(&dns, &World::config()).await;
    let public_spki_der = key_one().public_spki_der().to_vec();
    let key = DkimRecord { selector: "pr-host".to_owned(), public_spki_der, required: true };
    check::check(&dns, &ExpectedRecords::of_installation(&service, &[key])).await
}

async fn check(zone: impl FnOnce(&DnsServer), name: &str, record_type: RecordType) -> RecordCheck {
    let world = empty_world();
    zone(&world.server);
    let found =
        checks(&world).await.into_iter().find(|check| check.name == name && check.record_type == record_type);
    found.unwrap_or_else(|| panic!("no {} record of {name} is expected", record_type.as_str()))
}

#[tokio::test]
async fn all_records_of_an_empty_zone_are_missing_with_a_hint() {
    let checks = checks(&empty_world()).await;
    let listed: Vec<String> = checks
        .iter()
        .map(|check| {
            let required = if check.required { "required" } else { "optional" };
            let value = if check.purpose == Purpose::Dkim { "(key)" } else { &check.value };
            format!("{required} {} {} {value}", check.name, check.record_type.as_str())
        })
        .collect();
    let expected = [
        "required post.example A 192.0.2.10",
        "required out.post.example A 192.0.2.10",
        "required out.post.example AAAA 2001:db8::10",
        "required 10.2.0.192.in-addr.arpa PTR out.post.example",
        "required 0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR out.post.example",
        "required rp.post.example MX 10 post.example",
        "required rp.post.example TXT v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all",
        "required spf.post.example TXT v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all",
        "required pr-host._domainkey.post.example TXT (key)",
        "required _dmarc.post.example TXT v=DMARC1; p=none; rua=mailto:dmarc-reports@rp.post.example",
        "optional track.post.example CNAME post.example",
        "optional *._report._dmarc.rp.post.example TXT v=DMARC1",
        "optional _smtp._tls.rp.post.example TXT v=TLSRPTv1; rua=mailto:tls-reports@rp.post.example",
        "optional _mta-sts.rp.post.example TXT v=STSv1; id=1",
        "optional mta-sts.rp.post.example CNAME post.example",
    ];
    assert_eq!(listed, expected);
    for check in &checks {
        assert_eq!(check.status, RecordStatus::Missing, "{check:?}");
        assert!(check.hint.is_some());
    }
}

#[tokio::test]
async fn a_printed_zone_verifies_when_it_is_published() {
    let world = empty_world();
    let zone = zone_fragment(&checks(&world).await);
    assert!(zone.contains(
        "\n; ask whoever gave you the address:\n; 10.2.0.192.in-addr.arpa. 3600 IN PTR out.post.example.\n"
    ));
    world.server.zone(&zone);
    world.server.ptr(V4, "out.post.example").ptr(V6, "out.post.example");
    let checks = checks(&world).await;
    for check in &checks {
        assert_eq!(verdict(check), (RecordStatus::Verified, None), "{check:?}");
    }
    assert_eq!(Verdict::of(&checks), Verdict::Verified);
}

#[tokio::test]
async fn ptr_names_have_to_resolve_back_to_source_addresses() {
    let name = "10.2.0.192.in-addr.arpa";
    let seen = check(|_| {}, name, RecordType::Ptr).await;
    let hint = "Ask whoever gave you 192.0.2.10 to set its reverse DNS (PTR) to out.post.example.";
    assert_eq!(verdict(&seen), (RecordStatus::Missing, Some(hint)));

    let hoster = |server: &DnsServer| drop_ref(server.ptr(V4, "static-10.hoster.example"));
    let seen = check(hoster, name, RecordType::Ptr).await;
    let hint = "192.0.2.10 is named static-10.hoster.example, but no such name has this address. Ask whoever gave you \
                192.0.2.10 to set its reverse DNS (PTR) to out.post.example.";
    assert_eq!(verdict(&seen), (RecordStatus::Mismatch, Some(hint)));

    let confirmed = |server: &DnsServer| {
        drop_ref(server.ptr(V4, "static-10.hoster.example").a("static-10.hoster.example", V4));
    };
    let seen = check(confirmed, name, RecordType::Ptr).await;
    let hint = "192.0.2.10 is named static-10.hoster.example and greets as out.post.example. That works; receivers like it \
                better when both are the same.";
    assert_eq!(verdict(&seen), (RecordStatus::Verified, Some(hint)));

    let other = |server: &DnsServer| drop_ref(server.a("out.post.example", [198, 51, 100, 1]));
    let seen = check(other, "out.post.example", RecordType::A).await;
    let hint = "Mail leaves from 192.0.2.10 and greets as out.post.example, which has other addresses. Add 192.0.2.10 to \
                them, or greet with another name.";
    assert_eq!(verdict(&seen), (RecordStatus::Mismatch, Some(hint)));
}

#[tokio::test]
async fn the_mx_of_the_return_path_has_to_lead_here() {
    let name = "rp.post.example";
    let elsewhere = |server: &DnsServer| drop_ref(server.mx(name, 10, "mx.other.example"));
    let seen = check(elsewhere, name, RecordType::Mx).await;
    let hint = "Bounces go to another mail server. Change the MX record to: 10 post.example";
    assert_eq!(verdict(&seen), (RecordStatus::Mismatch, Some(hint)));
    assert_eq!(seen.found, ["10 mx.other.example"]);
    let same = |server: &DnsServer| {
        drop_ref(server.mx(name, 5, "in.post.example").a("in.post.example", V4).a(HOST, V4));
    };
    assert_eq!(verdict(&check(same, name, RecordType::Mx).await), (RecordStatus::Verified, None));
}

#[tokio::test]
async fn the_mx_of_the_return_path_gets_no_verdict_while_addresses_are_unknown() {
    let name = "rp.post.example";
    for unknown in ["in.post.example", HOST] {
        let zone = |server: &DnsServer| {
            server.mx(name, 5, "in.post.example").a("in.post.example", V4).a(HOST, V4);
            drop_ref(server.fail(unknown, Failure::ServFail));
        };
        let seen = check(zone, name, RecordType::Mx).await;
        assert_eq!(seen.status, RecordStatus::DnsError, "{seen:?}");
    }
}

#[tokio::test]
async fn the_included_spf_record_does_not_include_itself() {
    let incomplete =
        |server: &DnsServer| drop_ref(server.txt("spf.post.example", "v=spf1 ip4:192.0.2.10 -all"));
    let seen = check(incomplete, "spf.post.example", RecordType::Txt).await;
    let hint = "Your SPF record does not allow this service's address 2001:db8::10. Change it to: v=spf1 ip4:192.0.2.10 \
                ip6:2001:db8::10 -all";
    assert_eq!(verdict(&seen), (RecordStatus::Mismatch, Some(hint)));
    let whole = |server: &DnsServer| {
        drop_ref(
            server
                .txt("spf.post.example", "v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all")
                .txt("rp.post.example", "v=spf1 -all"),
        );
    };
    let seen = check(whole, "rp.post.example", RecordType::Txt).await;
    assert_eq!(seen.value, "v=spf1 include:spf.post.example -all");
}

#[tokio::test]
async fn policies_are_recognised_by_their_version() {
    let name = "_smtp._tls.rp.post.example";
    for (text, status, hint) in [
        ("v=TLSRPTv1; rua=https://reports.example/", RecordStatus::Verified, None),
        (
            "v=TLSRPTv1;",
            RecordStatus::Mismatch,
            Some(
                "The tag rua= is missing. Change the record to: v=TLSRPTv1; rua=mailto:tls-reports@rp.post.example",
            ),
        ),
        (
            "v=TLSRPT; rua=mailto:a@b.example",
            RecordStatus::Mismatch,
            Some(
                "The record has to begin with v=TLSRPTv1. Replace it by: v=TLSRPTv1; rua=mailto:tls-reports@rp.post.example",
            ),
        ),
    ] {
        let seen = check(|server| drop_ref(server.txt(name, text)), name, RecordType::Txt).await;
        assert_eq!(verdict(&seen), (status, hint), "{text}");
    }
    let two = |server: &DnsServer| {
        drop_ref(
            server
                .txt("_mta-sts.rp.post.example", "v=STSv1; id=1")
                .txt("_mta-sts.rp.post.example", "v=STSv1; id=2"),
        );
    };
    let seen = check(two, "_mta-sts.rp.post.example", RecordType::Txt).await;
    let hint = "There are several records where one is allowed. Keep only: v=STSv1; id=1";
    assert_eq!(verdict(&seen), (RecordStatus::Multiple, Some(hint)));
}

#[tokio::test]
async fn a_proxy_before_the_tracking_host_is_fine() {
    let proxy = |server: &DnsServer| drop_ref(server.a(HOST, V4).a("track.post.example", [198, 51, 100, 1]));
    let seen = check(proxy, "track.post.example", RecordType::Cname).await;
    let hint = "track.post.example leads elsewhere than post.example. That is right only if a proxy there passes requests on.";
    assert_eq!(verdict(&seen), (RecordStatus::Verified, Some(hint)));
}

/// Drops the reference that a chain of calls on the server returns.
fn drop_ref(_: &DnsServer) {}
