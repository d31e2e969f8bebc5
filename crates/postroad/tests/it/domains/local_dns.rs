//! The DNS server of `postroad dev`: on one machine, a domain is verified, sends mail, and loses its records.

use bytes::Bytes;
use serde_json::json;

use super::{status, verdicts};
use crate::world::{World, both_engines};

both_engines!(a_domain_is_verified_by_publishing_its_records_in_dev);

async fn a_domain_is_verified_by_publishing_its_records_in_dev(world: World) {
    world.domains("create", &json!({"name": "shop.example"})).await;
    let unknown = world.request("POST", "/dev/dns/unknown.example", &[], Bytes::new()).await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("DomainNotFound")));
    let published = world.request("POST", "/dev/dns/shop.example", &[], Bytes::new()).await.json();
    assert_eq!(published["published"].as_array().unwrap().len(), 5, "{published}");
    let verified = world.domains("verify", &json!({"name": "shop.example"})).await;
    assert_eq!(
        (&verified["verified"], &verified["verified_by"]),
        (&json!(true), &json!("dns")),
        "{verified:#}"
    );
    for purpose in ["spf", "dkim", "dmarc", "return_path", "tracking"] {
        assert_eq!(status(&verified, purpose), "verified", "{verified:#}");
    }
    let (message, mail_from) = world.send_from("hello@shop.example", "bob@example.net").await;
    assert_eq!(verdicts(&message, &verified), [true]);
    assert!(mail_from.ends_with("@rp.shop.example"), "{mail_from}");
    let removed = world.request("DELETE", "/dev/dns/shop.example", &[], Bytes::new()).await.json();
    assert_eq!(removed["removed"], 5);
    let failing = world.until_domain("shop.example", |domain| domain["failing_since"].is_string()).await;
    assert_eq!((&failing["verified"], status(&failing, "spf")), (&json!(true), "missing"));
}
