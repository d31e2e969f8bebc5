//! `postroad serve`: links on a customer's own host, from the domain's creation to the click.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::{Client, Method};
use postroad_testkit::postgres::Database;
use postroad_testkit::{Daemon, DnsServer, TestCertificate, daemon, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use super::{FIREFOX, paths_in, wait_past_scanner_window};
use crate::domains::{publish, status};
use crate::world::{Engine, both_engines, envelope, good_but, program};

const HTML: &str = "<p>Your order: <a href='https://example.com/order?n=7'>here</a></p>";

/// The service with HTTPS. Links of the domain `shop.example` are opened at `port`.
struct HttpsService {
    daemon: Daemon,
    client: Client,
    key: String,
    dns: DnsServer,
    certificate: TestCertificate,
    port: u16,
    // Dropped after the daemon, which uses them.
    _folder: TempDir,
    _database: Option<Database>,
}

impl HttpsService {
    async fn start(engine: Engine, certificate_names: &[&str]) -> Self {
        Self::start_with(engine, TestCertificate::for_names(certificate_names)).await
    }

    async fn start_with(engine: Engine, certificate: TestCertificate) -> Self {
        let folder = TempDir::new().unwrap();
        let dns = DnsServer::start();
        dns.a("mail.example.net", [192, 0, 2, 1]).a("track.mail.example.net", Ipv4Addr::LOCALHOST);
        dns.ns("shop.example", "ns.shop.example");
        // The configuration needs the port before the service listens, so connections are passed on to the service.
        let public_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = public_listener.local_addr().unwrap().port();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("cert.pem"), &certificate.certificate_pem).unwrap();
        std::fs::write(path("key.pem"), &certificate.key_pem).unwrap();
        std::fs::write(path("ca.pem"), &certificate.ca_pem).unwrap();
        let config = format!(
            "data_dir = \"{}\"\nhostname = \"mail.example.net\"\n\
             [http]\nlisten = \"127.0.0.1:0\"\nhttps_listen = \"127.0.0.1:0\"\n\
             [tls]\ncertificate = \"{}\"\nkey = \"{}\"\n\
             [dns]\nnameservers = [\"{}\"]\n\
             [delivery]\ncatch_all = \"on\"\n\
             [domains]\ncheck_interval = \"1s\"\ncheck_interval_max = \"1s\"\n\
             [tracking]\nallow = [\"127.0.0.0/8\"]\nca_file = \"{}\"\nhost_port = {port}\n",
            path("data"),
            path("cert.pem"),
            path("key.pem"),
            dns.address(),
            path("ca.pem"),
        );
        std::fs::write(path("postroad.toml"), config).unwrap();
        let database = (engine == Engine::Postgres).then(Database::create);
        let envs: Vec<(&str, &str)> =
            database.iter().map(|database| ("POSTROAD_DATABASE", database.url())).collect();
        let file = path("postroad.toml");
        let daemon = Daemon::start(program(), ["serve", "--json", "--config", &file], &envs);
        let address = |name: &str| -> SocketAddr { daemon.ready()[name].as_str().unwrap().parse().unwrap() };
        tokio::spawn(forward_connections(public_listener, address("https")));
        let admin = |args: &[&str]| -> Value {
            let mut command = daemon::command(program(), &envs);
            let output =
                command.arg("admin").args(args).args(["--json", "--config", &file]).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        admin(&["account", "create", "a"]);
        admin(&["server", "create", "s", "--account", "a"]);
        let key = admin(&["key", "create", "--server", "s"])["api_key"].as_str().unwrap().to_owned();
        let client = Client::new(&format!("http://{}", address("http")));
        Self { daemon, client, key, dns, certificate, port, _folder: folder, _database: database }
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        let reply = self.client.post_json(&format!("/api/v1/{path}"), Some(&self.key), body).await.unwrap();
        let answer = envelope(&reply);
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// Creates the domain and publishes its DNS records except the tracking record, which is returned.
    async fn create_domain(&self) -> Value {
        let created = self.call("domains/create", &json!({"name": "shop.example"})).await;
        let (tracking, others): (Vec<Value>, Vec<Value>) = created["records"]
            .as_array()
            .unwrap()
            .iter()
            .cloned()
            .partition(|record| record["purpose"] == "tracking");
        publish(&self.dns, &json!({ "records": others }));
        self.until_domain(|domain| domain["verified"] == true).await;
        tracking[0].clone()
    }

    /// Waits until automatic checks have found a state of the domain for which `is_so` holds.
    async fn until_domain(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(async || {
            let domain = self.call("domains/get", &json!({"name": "shop.example"})).await;
            if is_so(&domain) { Ok(domain) } else { Err(format!("{domain:#}")) }
        })
        .await
    }

    /// Overview page of the server, as the operator sees it.
    async fn overview_page(&self) -> String {
        let token = self.daemon.ready()["set_up_url"].as_str().unwrap().split_once("token=").unwrap().1;
        let form =
            format!("token={token}&account=Operator&email=op@example.net&password=a+road+of+seven+posts");
        let headers =
            [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
        let reply = self.client.request(Method::POST, "/set_up", &headers, form.into()).await.unwrap();
        let cookie = reply.header("set-cookie").unwrap_or_else(|| panic!("{}", reply.text()));
        let headers = [("cookie", cookie.split(';').next().unwrap())];
        let server = self.call("server/get", &json!({})).await["id"].as_i64().unwrap();
        let path = format!("/servers/{server}");
        self.client.request(Method::GET, &path, &headers, Vec::new().into()).await.unwrap().text()
    }

    /// Sends a tracked message; returns its id, and the first link as the recipient has it.
    async fn link_of_message(&self, to: &str) -> (i64, String) {
        let body = good_but(json!({
            "from": "hello@shop.example", "to": [to], "html_body": HTML, "track": {"clicks": true},
        }));
        let sent = self.call("send/message", &body).await;
        let caught = self.client.get(&format!("/dev/messages/wait?to={to}&timeout=20")).await.unwrap().json();
        let raw = self.client.get(&format!("/dev/messages/{}/raw", caught["id"])).await.unwrap();
        let html = postroad_mail::view(&raw.body).html_body.unwrap();
        let link = html.split(['"', '\'']).find(|part| part.contains("/c/")).expect("a link").to_owned();
        (sent["messages"][to]["id"].as_i64().unwrap(), link)
    }
}

/// Passes connections on to the service.
async fn forward_connections(listener: TcpListener, to: SocketAddr) {
    while let Ok((mut from_outside, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut to_service) = TcpStream::connect(to).await {
                // A side that closes is not an error.
                drop(tokio::io::copy_bidirectional(&mut from_outside, &mut to_service).await);
            }
        });
    }
}

both_engines!(
    links_lead_to_the_customer_host_once_its_record_is_verified,
    links_stay_on_our_host_while_the_customer_host_has_no_certificate,
    the_overview_warns_that_the_certificate_of_a_customer_host_expires_soon
);

async fn links_lead_to_the_customer_host_once_its_record_is_verified(engine: Engine) {
    let service = HttpsService::start(engine, &["localhost", "track.shop.example"]).await;
    let record = service.create_domain().await;
    let (_, link) = service.link_of_message("early@example.org").await;
    assert!(link.starts_with("https://track.mail.example.net/c/"), "there is no CNAME yet: {link}");

    service.dns.cname("track.shop.example", "track.elsewhere.example");
    let is_wrong = |domain: &Value| status(domain, "tracking") == "mismatch";
    service.until_domain(is_wrong).await;
    let (_, link) = service.link_of_message("wrong@example.org").await;
    assert!(link.starts_with("https://track.mail.example.net/c/"), "the CNAME leads elsewhere: {link}");

    let (name, value) = (record["name"].as_str().unwrap(), record["value"].as_str().unwrap());
    assert_eq!((name, value), ("track.shop.example", "track.mail.example.net"));
    service.dns.remove(name).cname(name, value);
    let verified = service.until_domain(|domain| domain["tracking_host"] == "track.shop.example").await;
    assert_eq!(status(&verified, "tracking"), "verified");
    let host = format!("track.shop.example:{}", service.port);
    // All nodes learn of the host before links lead there.
    let next_number = AtomicUsize::new(0);
    let (id, link) = eventually(async || {
        let to = format!("ann{}@example.org", next_number.fetch_add(1, Ordering::Relaxed));
        let (id, link) = service.link_of_message(&to).await;
        if link.starts_with(&format!("https://{host}/c/")) { Ok((id, link)) } else { Err(link) }
    })
    .await;

    wait_past_scanner_window().await;
    let browser = Client::https(&format!("https://localhost:{}", service.port), &service.certificate.ca_pem);
    let path = paths_in(&link, "/c/").remove(0);
    let headers = [("Host", host.as_str()), FIREFOX];
    let reply = browser.request(Method::GET, &path, &headers, Vec::new().into()).await.unwrap();
    assert_eq!((reply.status, reply.header("location")), (302, Some("https://example.com/order?n=7")));
    let counts = eventually(async || {
        let counts = service.call("analytics/message", &json!({ "id": id })).await;
        if counts["clicked"] == 1 {
            Ok(counts)
        } else {
            Err(format!("{counts}: {}", service.daemon.stderr_text()))
        }
    })
    .await;
    assert_eq!(counts["unique_clicked"], 1, "{counts}");
    let page =
        browser.request(Method::GET, "/api/v1/openapi.json", &headers, Vec::new().into()).await.unwrap();
    assert_eq!(page.status, 404, "the host serves links and nothing else");
}

async fn links_stay_on_our_host_while_the_customer_host_has_no_certificate(engine: Engine) {
    let service = HttpsService::start(engine, &["localhost", "track.mail.example.net"]).await;
    let record = service.create_domain().await;
    service.dns.cname("track.shop.example", record["value"].as_str().unwrap());
    let is_verified = |domain: &Value| status(domain, "tracking") == "verified";
    let domain = service.until_domain(is_verified).await;
    assert_eq!(domain["tracking_host"], "track.mail.example.net", "{domain:#}");
    let (_, link) = service.link_of_message("ann@example.org").await;
    assert!(link.starts_with("https://track.mail.example.net/c/"), "{link}");
    let hint = hint_of(&domain, "tracking");
    assert!(
        hint.starts_with(
            "The record is right, but track.shop.example does not answer over HTTPS (the TLS handshake failed"
        ) && hint.ends_with("has to serve track.shop.example over HTTPS, with a certificate that names it."),
        "{hint}"
    );
    let page = service.overview_page().await;
    assert!(page.contains("Links in mail from shop.example do not lead to its own host"), "{page}");
}

async fn the_overview_warns_that_the_certificate_of_a_customer_host_expires_soon(engine: Engine) {
    let soon = SystemClock.now().plus(Duration::from_hours(5 * 24));
    let certificate = TestCertificate::valid_until(&["localhost", "track.shop.example"], soon);
    let service = HttpsService::start_with(engine, certificate).await;
    let record = service.create_domain().await;
    service.dns.cname("track.shop.example", record["value"].as_str().unwrap());
    let domain = service.until_domain(|domain| domain["tracking_host"] == "track.shop.example").await;
    assert_eq!(hint_of(&domain, "tracking"), "");
    service.link_of_message("ann@example.org").await;
    let page = service.overview_page().await;
    assert!(page.contains("The certificate of track.shop.example expires at <time"), "{page}");
    // The node's own listeners use the same certificate, which the operator renews.
    assert!(page.contains("The TLS certificate of mail.example.net expires at <time"), "{page}");
}

fn hint_of(domain: &Value, purpose: &str) -> String {
    let records = domain["records"].as_array().unwrap();
    let record = records.iter().find(|record| record["purpose"] == purpose).unwrap();
    record["hint"].as_str().unwrap_or_default().to_owned()
}
