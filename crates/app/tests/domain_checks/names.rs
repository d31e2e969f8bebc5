//! Domains as people enter them.

use postroad_app::domains::check::Purpose;

use crate::world::World;

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
        let name = |purpose| checks.iter().find(|check| check.purpose == purpose).unwrap().name.clone();
        assert_eq!(name(Purpose::Spf), domain);
        assert_eq!(name(Purpose::Dkim), format!("pr-one._domainkey.{domain}"));
        assert_eq!(name(Purpose::Dmarc), format!("_dmarc.{domain}"));
        assert_eq!(name(Purpose::ReturnPath), format!("rp.{domain}"));
    }
}
