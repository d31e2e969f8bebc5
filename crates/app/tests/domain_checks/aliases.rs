//! CNAMEs by which a customer's return path and tracking host point to our names.

use postroad_app::domains::check::{Purpose, RecordStatus};
use postroad_testkit::dns_server::{Failure, RecordType};

use crate::world::{V4, V6, World, verdict};

async fn check(
    zone: impl FnOnce(&World),
    purpose: Purpose,
    status: RecordStatus,
    found: &[&str],
    hint: Option<&str>,
) {
    let world = World::new();
    zone(&world);
    let check = world.check(purpose).await;
    assert_eq!(verdict(&check), (status, hint));
    assert_eq!(check.found, found);
}

#[tokio::test]
async fn aliases_are_followed() {
    use Purpose::{ReturnPath, Tracking};
    let direct = |world: &World| {
        world
            .server
            .cname("rp.shop.example", "RP.Post.Example")
            .cname("track.shop.example", "track.post.example");
    };
    check(direct, ReturnPath, RecordStatus::Verified, &["rp.post.example"], None).await;
    check(direct, Tracking, RecordStatus::Verified, &["track.post.example"], None).await;
    let chain = |world: &World| {
        world
            .server
            .cname("rp.shop.example", "mail.shop.example")
            .cname("mail.shop.example", "rp.post.example");
    };
    check(chain, ReturnPath, RecordStatus::Verified, &["mail.shop.example", "rp.post.example"], None).await;
    // Our own name may be an alias, too: only we can change that.
    let own_alias = |world: &World| {
        world.server.cname("track.shop.example", "track.post.example");
        world.server.remove("track.post.example").cname("track.post.example", "post.example");
    };
    check(own_alias, Tracking, RecordStatus::Verified, &["track.post.example", "post.example"], None).await;
    // A wildcard that leads to our name is fine.
    let wildcard = |world: &World| {
        world.server.cname("*.shop.example", "rp.post.example");
    };
    check(wildcard, ReturnPath, RecordStatus::Verified, &["rp.post.example"], None).await;
}

#[tokio::test]
async fn wrong_aliases_are_distinguished() {
    let status = RecordStatus::Mismatch;
    let hint = "rp.shop.example points to elsewhere.example. Change it to rp.post.example.";
    let elsewhere = |world: &World| {
        world.server.cname("rp.shop.example", "elsewhere.example");
    };
    check(elsewhere, Purpose::ReturnPath, status, &["elsewhere.example"], Some(hint)).await;
    let hint = "The value has your domain at its end: your DNS panel appends it. Enter rp.post.example. with a dot at the \
                end.";
    let appended = |world: &World| {
        world.server.cname("rp.shop.example", "rp.post.example.shop.example");
    };
    check(appended, Purpose::ReturnPath, status, &["rp.post.example.shop.example"], Some(hint)).await;
    let hint =
        "rp.shop.example leads into a CNAME loop, or through too many CNAMEs. Change it to rp.post.example.";
    let cname_loop = |world: &World| {
        world.server.cname("rp.shop.example", "b.shop.example").cname("b.shop.example", "rp.shop.example");
    };
    check(cname_loop, Purpose::ReturnPath, status, &["b.shop.example", "rp.shop.example"], Some(hint)).await;
    let hint = "A wildcard record (*.shop.example) answers for rp.shop.example. Add a CNAME record at rp.shop.example \
                itself; it takes precedence over the wildcard.";
    let wildcard = |world: &World| {
        world.server.cname("*.shop.example", "web.shop.example").a("web.shop.example", [198, 51, 100, 1]);
    };
    check(wildcard, Purpose::ReturnPath, status, &["web.shop.example"], Some(hint)).await;
    let wildcard = |world: &World| {
        world.server.a("*.shop.example", [198, 51, 100, 1]);
    };
    check(wildcard, Purpose::ReturnPath, status, &["198.51.100.1"], Some(hint)).await;
}

#[tokio::test]
async fn addresses_instead_of_an_alias_are_enough_for_links_only() {
    let addresses = |world: &World| {
        world.server.a("rp.shop.example", V4).a("track.shop.example", V4);
    };
    let hint = "track.shop.example has the addresses of track.post.example, which works until they change. A CNAME to \
                track.post.example would follow them.";
    check(addresses, Purpose::Tracking, RecordStatus::Verified, &["192.0.2.10"], Some(hint)).await;
    let hint = "rp.shop.example has an address (A or AAAA) instead of an alias. Replace it by a CNAME to rp.post.example; \
                if your DNS provider offers a proxy for the name, switch it off.";
    check(addresses, Purpose::ReturnPath, RecordStatus::Mismatch, &["192.0.2.10"], Some(hint)).await;
    let proxy = |world: &World| {
        world.server.a("track.shop.example", [198, 51, 100, 1]);
    };
    let hint = "track.shop.example has an address (A or AAAA) instead of an alias. Replace it by a CNAME to \
                track.post.example; if your DNS provider offers a proxy for the name, switch it off.";
    check(proxy, Purpose::Tracking, RecordStatus::Mismatch, &["198.51.100.1"], Some(hint)).await;
}

#[tokio::test]
async fn addresses_get_no_verdict_while_the_addresses_of_our_host_are_unknown() {
    let hint = |record_type: &str| {
        format!(
            "The DNS did not answer ({record_type} lookup of track.post.example: the name server answered SERVFAIL). This is \
             not a verdict; the check is repeated. If this persists, tell the operator of the name servers of track.post.example."
        )
    };
    let all = |world: &World| {
        world.server.a("track.shop.example", V4).fail("track.post.example", Failure::ServFail);
    };
    check(all, Purpose::Tracking, RecordStatus::DnsError, &[], Some(&hint("A"))).await;
    let some = |world: &World| {
        world.server.a("track.shop.example", V4).aaaa("track.shop.example", V6);
        world.server.fail_type("track.post.example", RecordType::AAAA, Failure::ServFail);
    };
    check(some, Purpose::Tracking, RecordStatus::DnsError, &[], Some(&hint("AAAA"))).await;
}

#[tokio::test]
async fn a_missing_alias_is_looked_for_at_the_doubled_name_that_dns_panels_make() {
    let hint = "There is no such record yet. Add this CNAME record at rp.shop.example.";
    check(|_| {}, Purpose::ReturnPath, RecordStatus::Missing, &[], Some(hint)).await;
    let doubled = |world: &World| {
        world.server.cname("rp.shop.example.shop.example", "rp.post.example");
    };
    let hint = "The name has the domain twice: your DNS panel appends it. Enter rp as the name.";
    check(doubled, Purpose::ReturnPath, RecordStatus::Missing, &[], Some(hint)).await;
}
