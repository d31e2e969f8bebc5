//! Transport of the HTTP API: HTTPS, redirects, methods, forms, request ids and maintenance.

use postroad_testkit::http::{Client, Reply};
use postroad_testkit::{Daemon, TestCertificate, daemon, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{
    DELIVERIES, MESSAGE, RAW, SEND, World, both_engines, checked_envelope, envelope, good, program,
};

both_engines!(
    get_put_and_patch_requests_are_accepted_like_post,
    the_json_may_be_in_a_form_field_or_query_parameter_named_params,
    valid_request_ids_are_returned,
    maintenance_closes_the_api_until_it_is_over,
    the_openapi_document_is_served
);

async fn get_put_and_patch_requests_are_accepted_like_post(world: World) {
    for method in ["GET", "PUT", "PATCH", "POST"] {
        let json = [("Content-Type", "application/json")];
        let sent = envelope(&world.request(method, SEND, &json, good().to_string()).await);
        assert_eq!(sent["status"], "success", "{method}");
        let id = json!({"id": sent["data"]["messages"]["someone@example.com"]["id"]}).to_string();
        for path in [MESSAGE, DELIVERIES] {
            assert_eq!(envelope(&world.request(method, path, &json, id.clone()).await)["status"], "success");
        }
        let raw = envelope(&world.request(method, RAW, &json, "{}").await);
        assert_eq!(raw["data"]["message"], "`rcpt_to` parameter is required but is missing");
    }
}

async fn the_json_may_be_in_a_form_field_or_query_parameter_named_params(world: World) {
    let encoded = good().to_string().bytes().map(|b| format!("%{b:02X}")).collect::<Vec<_>>().concat();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let sent = envelope(&world.request("POST", SEND, &form, format!("a=b&params={encoded}")).await);
    assert_eq!(sent["status"], "success");
    let multipart = [("Content-Type", "multipart/form-data; boundary=xyz")];
    let body =
        format!("--xyz\r\nContent-Disposition: form-data; name=\"params\"\r\n\r\n{}\r\n--xyz--\r\n", good());
    assert_eq!(envelope(&world.request("POST", SEND, &multipart, body).await)["status"], "success");
    // As `curl -d '{…}'` sends it without a content type option.
    assert_eq!(envelope(&world.request("POST", SEND, &form, good().to_string()).await)["status"], "success");
    let query = format!("{SEND}?params={encoded}");
    assert_eq!(envelope(&world.request("GET", &query, &[], "").await)["status"], "success");
    assert_eq!(envelope(&world.request("POST", SEND, &[], good().to_string()).await)["status"], "success");
}

async fn valid_request_ids_are_returned(world: World) {
    let reply = world.request("POST", SEND, &[("X-Request-Id", "my-id_1.2")], good().to_string()).await;
    assert_eq!(reply.header("x-request-id"), Some("my-id_1.2"));
    let reply = world.request("POST", SEND, &[("X-Request-Id", "has spaces")], good().to_string()).await;
    assert_ne!(reply.header("x-request-id"), Some("has spaces"));
}

async fn maintenance_closes_the_api_until_it_is_over(world: World) {
    world.admin(&["maintenance", "on"]);
    let reply = world.post(SEND, &good()).await;
    assert_eq!(reply.status, 503);
    assert!(reply.header("retry-after").is_some());
    let answer = checked_envelope(&reply);
    assert_eq!(answer["status"], "error");
    assert_eq!(answer["data"]["code"], "Maintenance");
    assert_eq!(world.client.get("/ready").await.unwrap().status, 503);
    assert_eq!(world.client.get("/health").await.unwrap().status, 200);
    world.admin(&["maintenance", "off"]);
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
    assert_eq!(world.client.get("/ready").await.unwrap().status, 200);
}

async fn the_openapi_document_is_served(world: World) {
    let reply = world.client.get("/api/v1/openapi.json").await.unwrap();
    assert_eq!(reply.status, 200);
    let document: Value = reply.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for path in [SEND, RAW, MESSAGE, DELIVERIES] {
        assert!(document["paths"][path]["post"].is_object(), "{path}");
    }
}

/// `postroad serve` with HTTPS on loopback and plain HTTP on all addresses.
struct HttpsService {
    daemon: Daemon,
    folder: TempDir,
    certificate: TestCertificate,
}

impl HttpsService {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let certificate = TestCertificate::for_localhost();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("cert.pem"), &certificate.certificate_pem).unwrap();
        std::fs::write(path("key.pem"), &certificate.key_pem).unwrap();
        let config = format!(
            "data_dir = \"{}\"\n[http]\nlisten = \"0.0.0.0:0\"\nhttps_listen = \"127.0.0.1:0\"\n\
             [tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            path("data"),
            path("cert.pem"),
            path("key.pem")
        );
        std::fs::write(path("postroad.toml"), config).unwrap();
        let daemon = Daemon::start(program(), ["serve", "--json", "--config", &path("postroad.toml")], &[]);
        Self { daemon, folder, certificate }
    }

    fn port(&self, name: &str) -> u16 {
        self.daemon.ready()[name].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    async fn https(&self, ca_pem: &str) -> Result<Reply, postroad_testkit::http::RequestError> {
        Client::https(&format!("https://localhost:{}", self.port("https")), ca_pem).get("/health").await
    }

    fn admin(&self, args: &[&str]) -> Value {
        let config = self.folder.path().join("postroad.toml");
        let output = daemon::command(program(), &[])
            .arg("admin")
            .args(args)
            .args(["--json", "--config"])
            .arg(config)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn https_requests_are_served_and_public_http_requests_are_redirected() {
    let service = HttpsService::start();
    service.admin(&["account", "create", "a"]);
    service.admin(&["server", "create", "s", "--account", "a"]);
    service.admin(&["domain", "create", "example.test", "--server", "s"]);
    service.admin(&["domain", "set-verified", "example.test", "--server", "s"]);
    let key = service.admin(&["key", "create", "--server", "s"])["api_key"].as_str().unwrap().to_owned();
    let https = service.port("https");
    let client = Client::https(&format!("https://localhost:{https}"), &service.certificate.ca_pem);
    let sent = envelope(&client.post_json(SEND, Some(&key), &good()).await.unwrap());
    assert_eq!(sent["status"], "success", "{sent}");
    let id = &sent["data"]["messages"]["someone@example.com"]["id"];
    let read =
        client.post_json(MESSAGE, Some(&key), &json!({"id": id, "_expansions": ["details"]})).await.unwrap();
    assert_eq!(read.json()["data"]["details"]["received_with_ssl"], true);

    let plain = Client::new(&format!("http://127.0.0.1:{}", service.port("http")));
    let headers = [("Host", "mail.example.com:8025"), ("X-Server-API-Key", key.as_str())];
    let reply =
        plain.request("POST".parse().unwrap(), &format!("{SEND}?a=b"), &headers, "{}".into()).await.unwrap();
    assert_eq!(reply.status, 308);
    assert_eq!(
        reply.header("location"),
        Some(format!("https://mail.example.com:{https}{SEND}?a=b").as_str())
    );
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_loaded_on_sighup() {
    let service = HttpsService::start();
    let renewed = TestCertificate::for_localhost();
    assert!(service.https(&service.certificate.ca_pem).await.is_ok());
    assert!(service.https(&renewed.ca_pem).await.is_err());
    std::fs::write(service.folder.path().join("cert.pem"), &renewed.certificate_pem).unwrap();
    std::fs::write(service.folder.path().join("key.pem"), &renewed.key_pem).unwrap();
    service.daemon.signal("HUP");
    eventually(async || match service.https(&renewed.ca_pem).await {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(format!("the new certificate is not used: {error}; {}", service.daemon.stderr_text()))
        }
    })
    .await;
}
