//! Compares our verdicts with the verdicts of mail-auth, an independent implementation.

use mail_auth::common::parse::TxtRecordParser as _;
use mail_auth::common::verify::DomainKey;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{MessageAuthenticator, SpfResult};
use postroad_app::domains::check::{Purpose, RecordStatus};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::world::{DOMAIN, SELECTOR_NAME, V4, V6, World, key_one, txt_of};

const TERMS: [&str; 31] = [
    "ip4:192.0.2.10",
    "ip4:192.0.2.0/24",
    "ip4:198.51.100.1",
    "ip6:2001:db8::10",
    "ip6:2001:db8::/32",
    "ip6:2001:db8:1::/48",
    "-ip4:192.0.2.10",
    "?ip6:2001:db8::10",
    "a",
    "a/24//64",
    "a:host.example",
    "~a:host.example",
    "mx",
    "mx:host.example/24//64",
    "include:v4.example",
    "include:v6.example",
    "-include:v4.example",
    "include:both.example",
    "include:deep1.example",
    "include:neutral.example",
    "include:gone.example",
    "include:broken.example",
    "include:turned.example",
    "exists:%{i}.ok.example",
    "exists:%{ir}.%{v}.list.example",
    "exists:%{d}.ok.example",
    "-all",
    "~all",
    "redirect=both.example",
    "redirect=turned.example",
    "redirect=gone.example",
];

fn publish(world: &World) {
    let server = &world.server;
    server.txt("v4.example", "v=spf1 ip4:192.0.2.10 -all").txt("v6.example", "v=spf1 ip6:2001:db8::10 -all");
    server.txt("both.example", "v=spf1 include:v4.example include:v6.example -all");
    server.txt("neutral.example", "v=spf1 ?ip4:192.0.2.10 ?all").txt("broken.example", "v=spf1 ip4:x -all");
    server.txt("turned.example", "v=spf1 redirect=both.example");
    for level in 1..12 {
        server
            .txt(&format!("deep{level}.example"), &format!("v=spf1 include:deep{}.example -all", level + 1));
    }
    server.txt("deep12.example", "v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all");
    for name in [DOMAIN, "host.example"] {
        server.a(name, [192, 0, 2, 10]).aaaa(name, V6).mx(name, 10, "mx.example");
    }
    server.a("mx.example", [192, 0, 2, 77]).aaaa("mx.example", V6);
    server.a("192.0.2.10.ok.example", [127, 0, 0, 1]).a("shop.example.ok.example", [127, 0, 0, 1]);
    server.a("10.2.0.192.in-addr.list.example", [127, 0, 0, 1]);
}

/// Whether mail-auth lets both addresses pass.
async fn passes_mail_auth(world: &World) -> bool {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = world.server.address().port();
    }
    let server = NameServerConfig::new(world.server.address().ip(), true, connections);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let verifier =
        MessageAuthenticator::new(config, ResolverOpts::default()).expect("a name server is given");
    for address in [V4.into(), V6.into()] {
        let sender = format!("postmaster@{DOMAIN}");
        let parameters =
            SpfParameters::verify_mail_from(address, "out.post.example", "mx.receiver.example", &sender);
        if verifier.verify_spf(parameters).await.result() != SpfResult::Pass {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn spf_is_verified_exactly_if_it_passes_mail_auth() {
    let mut rng = StdRng::seed_from_u64(7208);
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..150 {
        let world = World::new();
        publish(&world);
        let count = rng.random_range(1..6);
        let terms: Vec<&str> = TERMS.choose_multiple(&mut rng, count).copied().collect();
        // mail-auth counts no void lookups, takes one of two records, and forgets the outer qualifier when a nested
        // include passes. No combination of terms leads to one of these differences.
        let record = format!("v=spf1 {}", terms.join(" "));
        world.server.txt(DOMAIN, &record);
        let ours = world.check(Purpose::Spf).await;
        let theirs = passes_mail_auth(&world).await;
        assert_eq!(ours.status == RecordStatus::Verified, theirs, "{record}: {ours:?}");
        if theirs { passed += 1 } else { refused += 1 }
    }
    assert!(passed > 20 && refused > 20, "{passed} passed, {refused} refused");
}

#[tokio::test]
async fn dkim_keys_that_verify_can_be_read_by_receivers() {
    let base64 = txt_of(key_one()).split_once("p=").expect("a record has a key").1.to_owned();
    let (start, end) = base64.split_at(100);
    for record in [
        txt_of(key_one()),
        format!("p={base64}"),
        format!("v=DKIM1;k=rsa;h=sha1:sha256;s=email;t=s;n=a note;p={base64};"),
        format!("v=DKIM1; k=rsa; p={start} {end}"),
        format!("v=DKIM1; k=rsa; p={start}\r\n\t{end}"),
        "v=DKIM1; k=rsa; p=".to_owned(),
        format!("v=DKIM1; k=rsa; p={start}"),
        format!("\"v=DKIM1; k=rsa; p={start}\" \"{end}\""),
        format!("v=DKIM1\\; k=rsa\\; p={base64}"),
    ] {
        let world = World::new();
        world.server.txt(SELECTOR_NAME, &record);
        let is_verified = world.check(Purpose::Dkim).await.status == RecordStatus::Verified;
        let is_read = DomainKey::parse(record.as_bytes()).is_ok();
        assert!(!is_verified || is_read, "{record}");
        if record.contains(['"', '\\']) {
            assert!(!is_read, "receivers read {record}");
        }
    }
}
