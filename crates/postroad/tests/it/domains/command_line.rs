//! The commands of `postroad admin domain`.

use postroad_testkit::{DnsServer, eventually};
use serde_json::json;

use super::{publish, start};
use crate::world::{Engine, World, both_engines};

both_engines!(
    domains_are_managed_on_the_command_line,
    records_point_to_the_host_name_that_the_operator_sets,
    changes_made_while_the_service_is_stopped_emit_their_events_after_the_restart,
    records_are_printed_as_a_zone_file_and_verify_once_it_is_published
);

async fn domains_are_managed_on_the_command_line(engine: Engine) {
    let (world, dns) = start(engine);
    let file = world.folder.path().join("key.pem");
    std::fs::write(&file, include_str!("own_key.pem")).unwrap();
    let file = file.to_str().unwrap();
    let create =
        ["domain", "create", "shop.example", "--server", "dev", "--private-key", file, "--selector", "old1"];
    let created = world.admin(&create);
    assert_eq!((&created["server"], &created["dkim"][0]["selector"]), (&json!("dev"), &json!("old1")));
    let (success, _, error) = world.admin_output(&create);
    assert!(!success && error.contains("exists already"), "{error}");
    world.admin(&["domain", "create", "shop.example", "--account", "dev"]);
    let (success, _, error) = world.admin_output(&["domain", "records", "shop.example"]);
    assert!(!success && error.contains("--server NAME or --account NAME"), "{error}");
    assert_eq!(world.admin(&["domain", "list", "--account", "dev"]).as_array().unwrap().len(), 1);

    publish(&dns, &created);
    let verified = world.admin(&["domain", "verify", "shop.example", "--server", "dev"]);
    assert_eq!((&verified["verified_by"], &verified["dkim"][0]["state"]), (&json!("dns"), &json!("active")));
    let rotated = world.admin(&["domain", "rotate-dkim", "shop.example", "--server", "dev"]);
    assert_eq!(rotated["dkim"][1]["state"], "pending");
    let of_account = ["domain", "set-verified", "shop.example", "--account", "dev"];
    assert_eq!(world.admin(&of_account)["verified_by"], "operator");
    let taken_back = world.admin(&[&of_account[..], &["--no"]].concat());
    assert_eq!((&taken_back["verified"], &taken_back["verified_by"]), (&json!(false), &json!(null)));
    let deleted = world.admin(&["domain", "delete", "shop.example", "--account", "dev"]);
    assert_eq!(deleted, json!({"name": "shop.example", "deleted": true}));
    assert_eq!(world.admin(&["domain", "records", "shop.example"])["server"], "dev");
}

// Customers' records point to the installation's host name, which can differ from the host name of the node.
async fn records_point_to_the_host_name_that_the_operator_sets(engine: Engine) {
    let (world, dns) = start(engine);
    dns.a("mail.example", [192, 0, 2, 7]);
    let value = |domain: &serde_json::Value, purpose: &str| {
        let records = domain["records"].as_array().unwrap();
        records.iter().find(|record| record["purpose"] == purpose).unwrap()["value"].clone()
    };
    let created = world.domains("create", &json!({"name": "shop.example"})).await;
    assert_eq!(value(&created, "return_path"), "rp.postroad.localhost");
    assert_eq!(world.admin(&["domain", "set-host", "Mail.Example."]), json!({"host": "mail.example"}));
    let renamed = world.domains("get", &json!({"name": "shop.example"})).await;
    assert_eq!(value(&renamed, "return_path"), "rp.mail.example");
    assert_eq!(value(&renamed, "tracking"), "track.mail.example");
    assert_eq!(world.admin(&["domain", "records", "--installation"])["name"], "mail.example");
    // The SPF value depends on the record that the domain has, so it is known after a check.
    publish(&dns, &world.domains("verify", &json!({"name": "shop.example"})).await);
    let verified = world.until_domain("shop.example", |domain| domain["verified"] == true).await;
    assert_eq!(verified["return_path"], "rp.shop.example", "{verified:#}");
    let (success, _, error) = world.admin_output(&["domain", "set-host", "not a name"]);
    assert!(!success && error.contains("not a name"), "{error}");
}

async fn changes_made_while_the_service_is_stopped_emit_their_events_after_the_restart(engine: Engine) {
    let (mut world, dns) = start(engine);
    let created = world.domains("create", &json!({"name": "shop.example"})).await;
    publish(&dns, &created);
    assert!(world.daemon.terminate().success());
    let verified = world.admin(&["domain", "verify", "shop.example"]);
    assert_eq!(verified["verified_by"], "dns", "{verified:#}");
    world.restart();
    let event = eventually(async || {
        let events = world.call("/api/v1/events/list", &json!({"types": ["domain.verified"]})).await;
        events["data"]["items"].get(0).cloned().ok_or(events)
    })
    .await;
    assert_eq!(event["data"]["domain"]["name"], "shop.example");
}

async fn records_are_printed_as_a_zone_file_and_verify_once_it_is_published(engine: Engine) {
    let dns = DnsServer::start();
    dns.a("post.example", [192, 0, 2, 1]);
    let name_server = dns.address().to_string();
    let envs = [("POSTROAD_DNS_NAMESERVERS", name_server.as_str()), ("POSTROAD_HOSTNAME", "post.example")];
    let world = World::start_first(engine, &envs);
    let records = world.admin(&["domain", "records", "--installation"]);
    let status = |purpose: &str| {
        let all = records["records"].as_array().unwrap();
        all.iter().find(|record| record["purpose"] == purpose).unwrap()["status"].clone()
    };
    assert_eq!((records["name"].as_str(), status("host")), (Some("post.example"), json!("verified")));
    assert_eq!((status("bounces"), status("spf")), (json!("missing"), json!("missing")));
    let zone_of =
        |args: &[&str]| world.admin(&[&["domain"], args].concat())["zone"].as_str().unwrap().to_owned();
    let zone = zone_of(&["records", "--installation", "--zone"]);
    dns.zone(&zone);
    let after = world.admin(&["domain", "records", "--installation"]);
    for record in after["records"].as_array().unwrap().iter().filter(|record| record["type"] != "PTR") {
        assert_eq!(record["status"], "verified", "{record:#}");
    }

    world.admin(&["domain", "create", "shop.example", "--server", "dev"]);
    let zone = zone_of(&["zone", "shop.example"]);
    dns.zone(&zone);
    assert_eq!(zone, zone_of(&["records", "shop.example", "--zone"]));
    let verified = world.admin(&["domain", "verify", "shop.example"]);
    assert_eq!(verified["verified_by"], "dns", "{zone}\n{verified:#}");
}
