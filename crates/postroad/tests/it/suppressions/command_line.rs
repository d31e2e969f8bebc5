//! `postroad admin suppression`, beside a running service and without one.

use serde_json::{Value, json};

use super::{GET, call_ok, list_addresses};
use crate::world::{World, both_engines};

both_engines!(
    suppressions_are_added_listed_and_removed,
    files_of_any_length_are_imported_and_exported,
    errors_of_files_are_explained
);

async fn suppressions_are_added_listed_and_removed(world: World) {
    let added = world.admin(&[
        "suppression",
        "add",
        "Ann@Example.com",
        "--server",
        "dev",
        "--reason",
        "complaint",
        "--details",
        "by phone",
        "--expires-at",
        "2099-01-01T00:00:00Z",
    ]);
    assert_eq!((&added["status"], &added["address"]), (&json!("added"), &json!("ann@example.com")));
    world.admin(&["suppression", "add", "bob@example.com", "--server", "dev"]);
    let again = world.admin(&["suppression", "add", "bob@example.com", "--server", "dev"]);
    assert_eq!((&again["status"], &again["reason"]), (&json!("exists"), &json!("manual")));
    let found = call_ok(&world, GET, &json!({"address": "ann@example.com"})).await;
    assert_eq!(
        (&found["reason"], &found["expires_at"]),
        (&json!("complaint"), &json!("2099-01-01T00:00:00Z"))
    );
    let list = world.admin(&["suppression", "list", "--server", "dev", "--limit", "1"]);
    assert_eq!((list.as_array().unwrap().len(), &list[0]["address"]), (1, &json!("bob@example.com")));
    let list = world.admin(&["suppression", "list", "--server", "dev", "--reason", "complaint"]);
    assert_eq!((list.as_array().unwrap().len(), &list[0]["details"]), (1, &json!("by phone")));
    world.admin(&["suppression", "remove", "ANN@example.com", "--server", "dev"]);
    assert_eq!(list_addresses(&world).await, ["bob@example.com"]);
    let cases: [(&[&str], &str); 5] = [
        (
            &["remove", "ann@example.com", "--server", "dev"],
            "`ann@example.com` is not suppressed on the server `dev`",
        ),
        (&["remove", "ann", "--server", "dev"], "`address` is not valid"),
        (&["add", "ann", "--server", "dev"], "`address` is not valid"),
        (&["add", "a@example.com", "--server", "dev", "--expires-at", "2001-01-01T00:00:00Z"], "in the past"),
        (&["list", "--server", "nobody"], "there is no server `nobody`"),
    ];
    for (args, expected) in cases {
        let (success, out, err) = world.admin_output(&[&["suppression"], args].concat());
        assert!(!success && out.is_empty(), "{args:?}: {out}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

async fn files_of_any_length_are_imported_and_exported(world: World) {
    let mut world = world;
    let file = |name: &str| world.folder.path().join(name).to_str().unwrap().to_owned();
    let (list, copy) = (file("list.csv"), file("copy.csv"));
    let mut lines = vec!["address,details".to_owned()];
    lines.extend((0..2_500).map(|n| format!("user{n:04}@example.com,\"line {n}\"")));
    lines.extend(["nobody,".to_owned(), "user0000@example.com,again".to_owned()]);
    std::fs::write(&list, lines.join("\n")).unwrap();
    let (success, out, err) = world.admin_output(&["suppression", "import", &list, "--server", "dev"]);
    assert!(!success && err.contains("1 of 2502 lines were not imported"), "{err}");
    let imported: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        imported,
        json!({
            "lines": 2_502, "added": 2_500, "exists": 1, "failed": 1,
            "errors": [{"line": 2_502, "message": "`address` is not valid: an address needs an @ between a local part and a domain"}],
        })
    );
    let written = world.admin(&["suppression", "export", &copy, "--server", "dev"]);
    assert_eq!(written, json!({"exported": 2_500, "file": copy}));
    let text = std::fs::read_to_string(&copy).unwrap();
    assert_eq!(text.lines().count(), 2_501, "one header");
    assert!(text.starts_with("address,reason,details,origin_message_id,created_at,expires_at\nuser0000@example.com,manual,line 0,,20"));
    assert!(text.lines().last().unwrap().starts_with("user2499@example.com,manual,line 2499,,20"));
    // Without a running service, the command works on the store itself.
    assert!(world.daemon.terminate().success());
    let imported = world.admin(&["suppression", "import", &copy, "--server", "dev"]);
    assert_eq!(
        (&imported["exists"], &imported["added"], &imported["failed"]),
        (&json!(2_500), &json!(0), &json!(0))
    );
    let (success, out, err) = world.admin_output(&["suppression", "export", "-", "--server", "dev"]);
    assert!(success && serde_json::from_str::<Value>(&out).is_err(), "{err}");
    assert_eq!(out, text);
}

async fn errors_of_files_are_explained(world: World) {
    let file = world.folder.path().join("latin.csv");
    std::fs::write(&file, b"address\nm\xfcller@example.com\n").unwrap();
    let (success, _, err) =
        world.admin_output(&["suppression", "import", file.to_str().unwrap(), "--server", "dev"]);
    assert!(!success && err.contains("it is not UTF-8 text"), "{err}");
    let (success, _, err) =
        world.admin_output(&["suppression", "import", "/nowhere/list.csv", "--server", "dev"]);
    assert!(!success && err.contains("cannot read /nowhere/list.csv"), "{err}");
    let copy = world.folder.path().join("copy.csv");
    let (success, _, err) =
        world.admin_output(&["suppression", "export", copy.to_str().unwrap(), "--server", "nobody"]);
    assert!(!success && err.contains("there is no server `nobody`"), "{err}");
    assert!(!copy.exists());
}
