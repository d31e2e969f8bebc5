//! `postroad serve`: tracking has its own host names, which serve nothing else.

use std::net::SocketAddr;

use postroad_testkit::http::raw_to_end;
use postroad_testkit::{Daemon, daemon, eventually};
use tempfile::TempDir;

use crate::world::program;

async fn status(address: SocketAddr, host: &str, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = raw_to_end(address, request.as_bytes()).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tracking_hosts_serve_neither_api_nor_health_even_after_their_domain_is_deleted() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("postroad.toml");
    let data_dir = folder.path().join("data");
    let text = format!(
        "data_dir = {:?}\nhostname = \"mail.example.net\"\n[http]\nlisten = \"127.0.0.1:0\"\n",
        data_dir.to_str().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let service = Daemon::start(program(), ["serve", "--json", "--config", &file], &[]);
    let admin = |args: &[&str]| {
        let output = daemon::command(program(), &[])
            .arg("admin")
            .args(args)
            .args(["--json", "--config", &file])
            .output();
        assert!(output.unwrap().status.success(), "{args:?}");
    };
    let address: SocketAddr = service.ready()["http"].as_str().unwrap().parse().unwrap();
    // The tokens are not valid, and a tracking host serves nothing but tracked links.
    for path in ["/c/x", "/o/x", "/u/x", "/", "/health", "/api/v1/openapi.json", "/ready"] {
        assert_eq!(status(address, "track.mail.example.net", path).await, 404, "{path}");
        assert_eq!(status(address, "TRACK.mail.example.net:443", path).await, 404, "{path}");
    }
    assert_eq!(status(address, "mail.example.net", "/api/v1/openapi.json").await, 200);
    assert_eq!(status(address, "mail.example.net", "/health").await, 200);
    assert_eq!(status(address, "track.example.org", "/health").await, 200, "no domain has this host yet");
    let policy = "/.well-known/mta-sts.txt";
    assert_eq!(status(address, "mail.example.net", policy).await, 404);
    let request =
        format!("GET {policy} HTTP/1.1\r\nHost: mta-sts.rp.mail.example.net\r\nConnection: close\r\n\r\n");
    let answer = String::from_utf8(raw_to_end(address, request.as_bytes()).await.unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("content-type: text/plain"), "{answer}");
    assert!(
        answer.ends_with("version: STSv1\r\nmode: enforce\r\nmx: mail.example.net\r\nmax_age: 604800\r\n"),
        "{answer}"
    );
    admin(&["account", "create", "a"]);
    admin(&["server", "create", "s", "--account", "a"]);
    admin(&["domain", "create", "example.org", "--server", "s"]);
    admin(&["domain", "set-tracking", "example.org", "--host", "track.example.org"]);
    assert_eq!(
        status(address, "track.example.org", "/health").await,
        200,
        "an unverified domain does not take over a host: anybody can add one"
    );
    admin(&["domain", "set-verified", "example.org"]);
    let until_tracking_host = async |host: &str| {
        let poll = async || match status(address, host, "/health").await {
            404 => Ok(()),
            other => Err(format!("the new host name is not seen: {other}")),
        };
        eventually(poll).await;
    };
    until_tracking_host("track.example.org").await;
    assert_eq!(status(address, "mail.example.net", "/health").await, 200);
    // Links in sent mail still lead to the host of the deleted domain, which stays a tracking host. Once the host of
    // the second domain has been seen, the deletion before it has been seen too.
    admin(&["domain", "delete", "example.org"]);
    admin(&["domain", "create", "other.example", "--server", "s"]);
    admin(&["domain", "set-tracking", "other.example", "--host", "track.other.example"]);
    admin(&["domain", "set-verified", "other.example"]);
    until_tracking_host("track.other.example").await;
    assert_eq!(status(address, "track.example.org", "/health").await, 404);
}
