//! The dev inbox over HTTP, filled over SMTP.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use postroad_api::{Api, HttpServer, Mode, Settings};
use postroad_delivery::{Inbox, InboxServer};
use postroad_testkit::{Client, ManualClock, Reply, SmtpClient, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::service::{Service, open_app};

/// A running API with a dev inbox, and the SMTP server that fills the inbox.
struct World {
    address: SocketAddr,
    client: Client,
    inbox: Inbox,
    smtp_address: SocketAddr,
    _server: HttpServer,
    _smtp: InboxServer,
    _folder: TempDir,
}

impl World {
    async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    async fn start_with(settings: Settings) -> Self {
        let folder = TempDir::new().unwrap();
        let inbox = Inbox::new(Arc::new(ManualClock::default()));
        let (smtp, smtp_address) = InboxServer::start(inbox.clone()).await.unwrap();
        let api = Api::new(open_app(&folder).await.0, settings).with_inbox(inbox.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = HttpServer::start(&api, listener, None, Mode::Serve);
        let client = Client::new(&format!("http://{address}"));
        Self { address, client, inbox, smtp_address, _server: server, _smtp: smtp, _folder: folder }
    }

    async fn deliver(&self, to: &[&str], text: &str) {
        let reply = SmtpClient::connect(self.smtp_address).await.deliver("rp@example.org", to, text).await;
        assert!(reply.starts_with("250 "), "{reply}");
    }

    async fn get(&self, path: &str) -> Reply {
        self.client.get(path).await.unwrap()
    }

    async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.client.request(method, path, headers, Bytes::new()).await.unwrap()
    }

    /// Waits until `count` callers wait for a message.
    async fn until_waiting(&self, count: usize) {
        let wanted = format!("waiting: {count},");
        eventually(async || {
            let inbox = format!("{:?}", self.inbox);
            if inbox.contains(&wanted) { Ok(()) } else { Err(format!("not `{wanted}`: {inbox}")) }
        })
        .await;
    }

    async fn ids(&self, path: &str) -> Vec<u64> {
        let list = self.get(path).await.json();
        list["messages"].as_array().unwrap().iter().map(|message| message["id"].as_u64().unwrap()).collect()
    }
}

/// Status and code of an error answer.
fn problem(reply: &Reply) -> (u16, String) {
    let body = reply.json();
    assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
    (reply.status, body["code"].as_str().unwrap().to_owned())
}

const MULTIPART: &str = "From: Shop <shop@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nX-Tag: one\r\nX-Tag: two\r\n\
MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHällo\r\n\
--b\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>\r\n\
--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\
Content-Transfer-Encoding: base64\r\n\r\nQUJD\r\n--b--";

#[tokio::test]
async fn messages_are_listed_newest_first_one_entry_for_each_recipient() {
    let world = World::start().await;
    assert_eq!(world.get("/dev/messages").await.json(), json!({"messages": []}));
    world.deliver(&["ann@example.net", "Bob@Example.net"], MULTIPART).await;
    let list = world.get("/dev/messages?limit=500").await;
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json; charset=utf-8")));
    let entry = |id: u64, to: &str| {
        json!({
            "id": id,
            "mail_from": "rp@example.org",
            "rcpt_to": [to],
            "subject": "Grüße",
            "size": MULTIPART.len() + 2,
            "received_at": "2026-11-15T00:00:00Z",
        })
    };
    assert_eq!(list.json(), json!({"messages": [entry(2, "Bob@Example.net"), entry(1, "ann@example.net")]}));
    assert_eq!(world.ids("/dev/messages?limit=1").await, [2]);
    assert_eq!(problem(&world.get("/dev/messages?limit=many").await), (400, "BadQuery".into()));
}

#[tokio::test]
async fn one_message_is_shown_decoded_and_as_it_was_sent() {
    let world = World::start().await;
    world.deliver(&["ann@example.net"], MULTIPART).await;
    let shown = world.get("/dev/messages/1").await.json();
    assert_eq!(shown["rcpt_to"], json!(["ann@example.net"]));
    assert_eq!(shown["headers"]["x-tag"], json!(["one", "two"]));
    assert_eq!(shown["headers"]["subject"], json!(["Grüße"]));
    assert_eq!(shown["plain_body"], "Hällo");
    assert_eq!(shown["html_body"], "<p>Hello</p>");
    assert_eq!(
        shown["attachments"],
        json!([{"filename": "a.pdf", "content_type": "application/pdf", "size": 3}])
    );
    let raw = world.get("/dev/messages/1/raw").await;
    assert_eq!((raw.status, raw.header("content-type")), (200, Some("message/rfc822")));
    assert_eq!(raw.body, format!("{MULTIPART}\r\n").as_bytes());
    for unknown in ["/dev/messages/2", "/dev/messages/2/raw", "/dev/messages/x", "/dev/messages/-1"] {
        assert_eq!(problem(&world.get(unknown).await), (404, "MessageNotFound".into()), "{unknown}");
    }
    assert_eq!(problem(&world.get("/dev/nothing").await), (404, "UnknownEndpoint".into()));
}

#[tokio::test]
async fn delete_empties_the_inbox() {
    let world = World::start().await;
    world.deliver(&["ann@example.net"], "one").await;
    let emptied = world.request(Method::DELETE, "/dev/messages", &[]).await;
    assert_eq!((emptied.status, emptied.json()), (200, json!({"deleted": 1})));
    assert_eq!(world.get("/dev/messages").await.json(), json!({"messages": []}));
    assert_eq!(world.get("/dev/messages/1").await.status, 404);
    world.deliver(&["ann@example.net"], "two").await;
    assert_eq!(world.ids("/dev/messages").await, [2]);
}

#[tokio::test]
async fn a_wait_is_answered_when_a_matching_message_arrives() {
    let world = World::start().await;
    let waiting = {
        let client = world.client.clone();
        tokio::spawn(async move {
            client
                .get("/dev/messages/wait?to=ANN+shop@example.net&subject=order%207&timeout=20")
                .await
                .unwrap()
        })
    };
    world.until_waiting(1).await;
    world.deliver(&["ann+shop@example.net"], "Subject: Your order 8\r\n\r\n").await;
    world.deliver(&["ann+shop@example.net"], "Subject: Your order 7\r\n\r\n7").await;
    let found = waiting.await.unwrap();
    assert_eq!((found.status, &found.json()["id"]), (200, &json!(2)));
    assert_eq!(found.json()["plain_body"], "7\r\n");
    // If messages are already there, the newest is returned at once.
    let newest: Value = world.get("/dev/messages/wait?timeout=0").await.json();
    assert_eq!(newest["subject"], "Your order 7");
}

#[tokio::test]
async fn a_wait_without_a_message_is_a_404_and_a_wrong_query_a_400() {
    let world = World::start().await;
    world.deliver(&["ann@example.net"], "Subject: hi\r\n\r\n").await;
    let path = "/dev/messages/wait?to=bob@example.net&timeout=0.05";
    assert_eq!(problem(&world.get(path).await), (404, "TimeIsUp".into()));
    for path in
        ["/dev/messages/wait?to=ann", "/dev/messages/wait?subjekt=x", "/dev/messages/wait?timeout=long"]
    {
        assert_eq!(problem(&world.get(path).await), (400, "BadQuery".into()), "{path}");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_wait() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let request = "GET /dev/messages/wait?timeout=120 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    world.until_waiting(1).await;
    drop(stream);
    world.until_waiting(0).await;
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let world = World::start().await;
    world.deliver(&["ann@example.net"], "hi").await;
    for host in ["rebound.example", "127.0.0.1.example.com", "localhost.example.com:80"] {
        for (method, path) in [
            (Method::GET, "/dev/messages"),
            (Method::GET, "/dev/messages/1/raw"),
            (Method::DELETE, "/dev/messages"),
        ] {
            let reply = world.request(method, path, &[("host", host)]).await;
            assert_eq!(problem(&reply), (403, "ForeignHost".into()), "{host}");
        }
    }
    for host in ["localhost:8080", "[::1]:80", "127.0.0.1"] {
        assert_eq!(
            world.request(Method::GET, "/dev/messages", &[("host", host)]).await.status,
            200,
            "{host}"
        );
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        let reply = world.request(Method::DELETE, "/dev/messages", &[("origin", origin)]).await;
        assert_eq!(problem(&reply), (403, "ForeignOrigin".into()), "{origin}");
    }
    assert_eq!(world.ids("/dev/messages").await, [1]);
    let own = world.request(Method::DELETE, "/dev/messages", &[("origin", "http://127.0.0.1:3000")]).await;
    assert_eq!(own.status, 200);
    for method in [Method::POST, Method::PUT] {
        assert_eq!(problem(&world.request(method, "/dev/messages", &[]).await), (405, "WrongMethod".into()));
    }
    assert_eq!(
        problem(&world.request(Method::DELETE, "/dev/messages/1", &[]).await),
        (405, "WrongMethod".into())
    );
}

#[tokio::test]
async fn callers_on_other_machines_are_refused() {
    let settings = Settings { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() };
    let world = World::start_with(settings).await;
    for path in ["/dev/messages", "/dev/messages/wait?timeout=0", "/dev/messages/1/raw"] {
        let reply = world.request(Method::GET, path, &[("x-forwarded-for", "192.0.2.7")]).await;
        assert_eq!(problem(&reply), (403, "NotLocal".into()), "{path}");
    }
    assert_eq!(world.request(Method::GET, "/dev/messages", &[]).await.status, 200);
}

#[tokio::test]
async fn without_an_inbox_its_paths_are_not_found() {
    let service = Service::start().await;
    let reply = service.client.get("/dev/messages").await.unwrap();
    assert_eq!((reply.status, reply.text().contains("/api/v1/")), (404, true));
}
