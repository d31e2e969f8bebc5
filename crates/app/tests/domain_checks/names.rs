//! Domains as people enter them, and the source addresses that receivers see.

use postroad_app::domains::check::{Purpose, SendingAddress, Service, ServiceConfig};

use crate::world::{HOST, V4, V6, World, name};

#[tokio::test]
async fn capitals_dots_and_umlauts_lead_to_the_same_names() {
    for (entered, domain) in [
        ("Shop.Example.", "shop.example"),
        ("  shop.example ", "shop.example"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("XN--Bcher-KVA.example.", "xn--bcher-kva.example"),
    ] {
        let world = World::new().with_domain(entered);
        let checks = world.checks().await;
        let name_of = |purpose| checks.iter().find(|check| check.purpose == purpose).unwrap().name.clone();
        assert_eq!(name_of(Purpose::Spf), domain);
        assert_eq!(name_of(Purpose::Dkim), format!("pr-one._domainkey.{domain}"));
        assert_eq!(name_of(Purpose::Dmarc), format!("_dmarc.{domain}"));
        assert_eq!(name_of(Purpose::ReturnPath), format!("rp.{domain}"));
    }
}

#[tokio::test]
async fn the_spf_terms_name_the_addresses_that_receivers_see() {
    let world = World::new();
    let addresses = async |sources: Vec<SendingAddress>| {
        let config = ServiceConfig {
            host: name(HOST),
            uses_system_address: sources.is_empty(),
            sources,
            takes_reports: false,
        };
        Service::look_up(&world.dns(), &config).await.spf_address_terms()
    };
    // If the operating system chooses the source address, the addresses of the host name count.
    assert_eq!(addresses(Vec::new()).await, [format!("ip4:{V4}"), format!("ip6:{V6}")]);
    // Behind address translation, the addresses of the HELO name count.
    world.server.a("nat.post.example", [203, 0, 113, 7]);
    let source =
        |address: &str, helo: &str| SendingAddress { address: address.parse().unwrap(), helo: name(helo) };
    let sources = vec![
        source("10.1.2.3", "nat.post.example"),
        source("100.64.0.1", "unknown.post.example"),
        source("198.51.100.9", "nat.post.example"),
    ];
    // A private address whose HELO name has no address is left out: receivers see another address, which is unknown.
    assert_eq!(addresses(sources).await, ["ip4:198.51.100.9", "ip4:203.0.113.7"]);
    // A HELO name with a private address does not help either.
    world.server.a("inside.post.example", [10, 1, 2, 4]);
    assert!(addresses(vec![source("10.1.2.4", "inside.post.example")]).await.is_empty());
}
