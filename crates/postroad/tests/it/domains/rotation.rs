//! New DKIM keys: made here or brought along.

use std::time::Duration;

use serde_json::{Value, json};

use super::{publish, start, verdicts};
use crate::world::both_engines;

fn states(domain: &Value) -> Vec<&str> {
    domain["dkim"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect()
}

fn selectors(domain: &Value) -> Vec<String> {
    let keys = domain["dkim"].as_array().unwrap();
    keys.iter().map(|key| key["selector"].as_str().unwrap().to_owned()).collect()
}

both_engines! {
    async fn every_message_verifies_while_the_key_is_rotated(engine: Engine) {
        let (world, dns) = start(engine);
        let name = json!({"name": "shop.example"});
        publish(&dns, &world.domains("create", &name).await);
        world.until_domain("shop.example", |domain| domain["verified"] == true).await;
        let rotated = world.domains("rotate_dkim", &name).await;
        assert_eq!(states(&rotated), ["active", "pending"]);
        assert_eq!(rotated["verified"], true);
        let mut messages = Vec::new();
        let send = async |number: usize| {
            world.sent_from("hello@shop.example", &format!("r{number}@example.net")).await.0
        };
        messages.push(send(0).await);
        publish(&dns, &rotated);
        // Mail goes out all the while the new record is found and the new key takes over.
        let mut number = 1;
        let rotated = loop {
            let domain = world.domains("verify", &name).await;
            messages.push(send(number).await);
            number += 1;
            if states(&domain) == ["retiring", "active"] {
                break domain;
            }
            assert!(number < 200, "{domain:#}");
            tokio::time::sleep(Duration::from_millis(400)).await;
        };
        for last in number..number + 5 {
            messages.push(send(last).await);
        }
        let selectors = selectors(&rotated);
        let signed_by = |message: &[u8], selector: &str| String::from_utf8_lossy(message).contains(&format!("s={selector};"));
        assert!(signed_by(&messages[0], &selectors[0]) && signed_by(messages.last().unwrap(), &selectors[1]));
        for (number, message) in messages.iter().enumerate() {
            assert_eq!(verdicts(message, &rotated), [true], "{number}");
        }
    }

    async fn a_key_and_a_selector_can_be_brought_along(engine: Engine) {
        let (world, dns) = start(engine);
        let own = include_str!("own_key.pem");
        let bring = |key: &str, selector: &str| json!({"name": "old.example", "private_key": key, "selector": selector});
        let created = world.domains("create", &bring(own, "postal-Ab12")).await;
        assert_eq!(selectors(&created), ["postal-ab12"]);
        assert_eq!(created["records"][1]["name"], "postal-ab12._domainkey.old.example");
        publish(&dns, &created);
        let verified = world.until_domain("old.example", |domain| domain["verified"] == true).await;
        let (message, _) = world.sent_from("hello@old.example", "bob@example.net").await;
        assert_eq!(verdicts(&message, &verified), [true]);
        for (key, selector, pointer) in
            [("no key", "good", "/private_key"), (own, "not a selector", "/selector"), (own, "postal-ab12", "/selector")]
        {
            let answer = world.call("/api/v1/domains/rotate_dkim", &bring(key, selector)).await;
            assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{answer}");
        }
        let shown = serde_json::to_string(&verified).unwrap();
        assert!(!shown.contains("PRIVATE") && !world.daemon.stderr_text().contains("PRIVATE KEY"));
    }
}
