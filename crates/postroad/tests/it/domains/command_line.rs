//! `postroad admin domain …`.

use serde_json::json;

use super::{publish, start};
use crate::world::both_engines;

both_engines! {
    async fn domains_are_managed_on_the_command_line(engine: Engine) {
        let (world, dns) = start(engine);
        let file = world.folder.path().join("key.pem");
        std::fs::write(&file, include_str!("own_key.pem")).unwrap();
        let file = file.to_str().unwrap();
        let create = ["domain", "create", "shop.example", "--server", "dev", "--private-key", file, "--selector", "old1"];
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
}
