//! `postroad dev`: ready line, curl command, restart, two services at once.

use std::process::Stdio;

use postroad_testkit::{Daemon, daemon};
use serde_json::json;

use crate::world::{Engine, MESSAGE, SEND, World, both_engines, good, good_but, program};

both_engines!(
    standard_output_has_only_the_ready_line,
    starting_dev_again_keeps_the_data_and_revokes_the_previous_key,
    the_dev_page_shows_the_inbox_and_names_the_api,
    a_second_process_on_the_same_data_is_kept_out
);

async fn standard_output_has_only_the_ready_line(world: World) {
    let mut world = world;
    let ready = world.daemon.ready().clone();
    let keys: Vec<&String> = ready.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "url",
            "api_key",
            "api_secret",
            "account_api_key",
            "operator_api_key",
            "sign_in_url",
            "domain",
            "pid",
            "smtp"
        ]
    );
    assert_eq!(ready["domain"], "example.test");
    assert_eq!(ready["pid"], world.daemon.pid());
    assert!(ready["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    world.accepted(&good()).await;
    assert!(world.daemon.terminate().success());
    assert_eq!(world.daemon.more_output(), Vec::<String>::new());
}

async fn starting_dev_again_keeps_the_data_and_revokes_the_previous_key(engine: Engine) {
    let mut world = World::start_first(engine, &[]);
    let id = world.accepted_id(&good()).await;
    let old_key = world.key.clone();
    assert!(world.daemon.terminate().success());
    world.restart();
    assert_ne!(world.key, old_key);
    let answer = world.call(MESSAGE, &json!({ "id": id })).await;
    assert_eq!(answer["data"]["id"], id);
    let answer = world.call_as(&old_key, MESSAGE, &json!({ "id": id })).await;
    assert_eq!(answer["data"]["code"], "InvalidServerAPIKey");
    let keys = world.admin(&["key", "list", "--server", "dev"]);
    let names: Vec<&str> = keys.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dev", "dev"]);
    let ended: Vec<bool> = keys.as_array().unwrap().iter().map(|key| key["revoked_at"].is_string()).collect();
    assert_eq!(ended, [true, false]);
    assert_eq!(world.admin(&["server", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(world.admin(&["domain", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
}

async fn the_dev_page_shows_the_inbox_and_names_the_api(world: World) {
    let page = world.client.get("/dev/").await.unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for part in ["Postroad is running", "Nothing was caught yet", "/dev/messages", "/api/v1/openapi.json"] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    let subject = "<script>alert(1)</script> & \"quotes\"";
    world.accepted(&good_but(json!({ "subject": subject, "to": ["someone@example.com"] }))).await;
    assert_eq!(world.client.get("/dev/messages/wait?timeout=30").await.unwrap().status, 200);
    for path in ["/dev", "/dev/"] {
        let page = world.client.get(path).await.unwrap();
        let text = page.text();
        assert!(
            text.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;"),
            "{path}: {text}"
        );
        assert!(text.contains("someone@example.com") && text.contains("href=\"/dev/messages/1\""), "{text}");
        assert!(!text.contains("<script"), "{text}");
        assert!(
            page.header("content-security-policy")
                .is_some_and(|policy| policy.contains("default-src 'none'"))
        );
    }
    // A foreign page whose host name leads here (DNS rebinding) cannot read the inbox.
    let foreign = world.request("GET", "/dev/", &[("Host", "evil.example")], "").await;
    assert_eq!(foreign.status, 403);
}

async fn a_second_process_on_the_same_data_is_kept_out(world: World) {
    let output = daemon::command(program(), &[])
        .args(["dev", "--json", "--http-port", "0", "--data-dir"])
        .arg(world.data_dir())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("in use by another postroad process"), "{text}");
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
}

#[test]
fn the_curl_line_works_when_pasted() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut child = daemon::command(program(), &[])
        .args(["dev", "--http-port", "0", "--data-dir"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut text = String::new();
    while !text.contains("It works.") {
        text.push_str(&lines.next().expect("the welcome goes on").unwrap());
        text.push('\n');
    }
    for needed in ["API key", "API secret", "http://127.0.0.1:", "example.test", "Inbox  ", "/dev/messages"] {
        assert!(text.contains(needed), "{text}");
    }
    let curl = &text[text.find("curl ").expect("a curl line")..];
    let output = std::process::Command::new("sh").args(["-c", &format!("{curl} -s")]).output().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.contains(r#""status":"success""#), "{answer} {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_port_in_use_is_explained() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::TempDir::new().unwrap();
    let output = daemon::command(program(), &[])
        .args(["dev", "--json", "--http-port", &port, "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(&port) && text.contains("--http-port 0"), "{text}");
}

#[test]
fn two_dev_services_run_side_by_side() {
    let folders = [tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap()];
    let start = |folder: &tempfile::TempDir| {
        let data_dir = folder.path().to_str().unwrap();
        Daemon::start(program(), ["dev", "--json", "--http-port", "0", "--data-dir", data_dir], &[])
    };
    let [one, other] = folders.each_ref().map(start);
    assert_ne!(one.ready()["url"], other.ready()["url"]);
}
