//! Real mail clients with default settings: each sends through both TLS ports with both AUTH mechanisms.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use postroad_testkit::NODE_LIBRARIES;
use serde_json::json;

use crate::delivery::inbox::wait_for_mail_to;
use crate::world::{Engine, World};

const RECIPIENTS: &str = "ann@example.com,bob@example.org";

/// How a client sends.
struct ClientOptions<'a> {
    port: String,
    listener: &'a str,
    mechanism: &'a str,
    key: &'a str,
    secret: &'a str,
    ca_file: &'a str,
}

impl ClientOptions<'_> {
    fn arguments(&self) -> [&str; 8] {
        [
            "127.0.0.1",
            &self.port,
            self.listener,
            self.mechanism,
            self.key,
            self.secret,
            self.ca_file,
            RECIPIENTS,
        ]
    }
}

fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    folder.join(name).to_str().unwrap().to_owned()
}

fn run_client(mut command: Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("NODE_PATH", NODE_LIBRARIES)
        .output()
        .unwrap_or_else(|error| panic!("{program} is missing ({error}); `cargo xtask test` installs it"));
    let output_text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let is_missing = output_text.contains("Cannot find module 'nodemailer'")
        || output_text.contains("perl module Net::SSLeay");
    assert!(!is_missing, "a library of {program} is missing; `cargo xtask test` installs it:\n{output_text}");
    assert!(output.status.success(), "{program} failed:\n{output_text}");
}

/// Sends with the client through every listener with every AUTH mechanism, and checks the dev inbox.
async fn send_everywhere(client: fn(&ClientOptions<'_>) -> Command, subject: &str) {
    let world = World::start(Engine::Sqlite);
    let ready = world.daemon.ready();
    // The certificate is self-signed, so it is its own authority.
    let ca_file = world.data_dir().join("dev-certificate.pem");
    for (listener, port) in [("starttls", "starttls_port"), ("tls", "tls_port")] {
        for mechanism in ["PLAIN", "LOGIN"] {
            let options = ClientOptions {
                port: ready["smtp"][port].to_string(),
                listener,
                mechanism,
                key: &world.key,
                secret: ready["api_secret"].as_str().unwrap(),
                ca_file: ca_file.to_str().unwrap(),
            };
            let command = client(&options);
            tokio::task::spawn_blocking(move || run_client(command)).await.unwrap();
            for recipient in RECIPIENTS.split(',') {
                let caught = wait_for_mail_to(&world, recipient).await;
                assert_eq!((&caught["rcpt_to"], &caught["subject"]), (&json!([recipient]), &json!(subject)));
                let path = format!("/dev/messages/{}/raw", caught["id"]);
                let raw = world.client.get(&path).await.expect("the service answers").text();
                assert!(raw.contains(" with ESMTPSA id "), "{listener} {mechanism}: {raw}");
                // `Message-ID` or `Message-Id`.
                assert_eq!(raw.matches("\r\nMessage-I").count(), 1, "{raw}");
                assert!(raw.contains("\r\n..and dots\r\n"), "{raw}");
            }
            let all = world.client.get("/dev/messages").await.expect("the service answers").json();
            assert_eq!(all["messages"].as_array().unwrap().len(), 2, "nobody else got it: {all}");
            world
                .client
                .request("DELETE".parse().unwrap(), "/dev/messages", &[], Bytes::new())
                .await
                .unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn swaks_sends_through_every_listener_with_every_mechanism() {
    let client = |options: &ClientOptions<'_>| {
        let mut swaks = Command::new("swaks");
        let tls = if options.listener == "tls" { "--tls-on-connect" } else { "--tls" };
        swaks
            .args([
                "--server",
                "127.0.0.1",
                "--port",
                &options.port,
                tls,
                "--tls-verify",
                "--tls-ca-path",
                options.ca_file,
            ])
            .args([
                "--auth",
                options.mechanism,
                "--auth-user",
                options.key,
                "--auth-password",
                options.secret,
            ])
            .args([
                "--from",
                "shop@example.test",
                "--to",
                RECIPIENTS,
                "--header",
                "Subject: Greetings of swaks",
            ])
            .args(["--body", "A text.\n.\n..and dots\n"]);
        swaks
    };
    send_everywhere(client, "Greetings of swaks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_smtplib_sends_through_every_listener_with_every_mechanism() {
    let client = |options: &ClientOptions<'_>| {
        let mut python = Command::new("python3");
        python.arg(script("smtplib_send.py")).args(options.arguments());
        python
    };
    send_everywhere(client, "Grüße von smtplib").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodemailer_sends_through_every_listener_with_every_mechanism() {
    let client = |options: &ClientOptions<'_>| {
        let mut node = Command::new("node");
        node.arg(script("nodemailer_send.js")).args(options.arguments());
        node
    };
    send_everywhere(client, "Grüße von nodemailer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_curl_and_smtplib_send_with_a_bare_lf_are_delivered_with_crlf() {
    let world = World::start(Engine::Sqlite);
    let ready = world.daemon.ready();
    let ca_file = world.data_dir().join("dev-certificate.pem").to_str().unwrap().to_owned();
    let file = world.data_dir().join("message.eml");
    std::fs::write(&file, "From: shop@example.test\nSubject: Lines\n\nfirst\n.one\n.\nlast\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let (port, secret) = (ready["smtp"]["starttls_port"].to_string(), ready["api_secret"].as_str().unwrap());

    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--ssl-reqd", "--cacert", &ca_file])
        .args(["--url", &format!("smtp://localhost:{port}"), "--user", &format!("{}:{secret}", world.key)])
        .args(["--mail-from", "shop@example.test", "--mail-rcpt", "curl@example.com", "-T", &file]);
    let mut python = Command::new("python3");
    python.arg(script("smtplib_send_lf.py"));
    python.args([&port, &world.key, secret, &ca_file, "python@example.com", &file]);
    for (command, recipient) in [(curl, "curl@example.com"), (python, "python@example.com")] {
        tokio::task::spawn_blocking(move || run_client(command)).await.unwrap();
        let caught = wait_for_mail_to(&world, recipient).await;
        let path = format!("/dev/messages/{}/raw", caught["id"]);
        let raw = world.client.get(&path).await.expect("the service answers").text();
        assert!(raw.contains("\r\n\r\nfirst\r\n.one\r\n.\r\nlast\r\n"), "{recipient}: {raw:?}");
        assert!(!raw.replace("\r\n", "").contains(['\r', '\n']), "{recipient}: {raw:?}");
    }
}
