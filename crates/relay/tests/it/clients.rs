//! Mail clients that people use, as they come: each sends through both doors with both mechanisms.

use std::path::Path;
use std::process::Command;

use postroad_model::Protocol;
use postroad_testkit::NODE_LIBRARIES;

use crate::service::Service;

const RECIPIENTS: &str = "ann@example.com,bob@example.org";

/// What a client is told.
struct Order<'a> {
    port: String,
    door: &'a str,
    mechanism: &'a str,
    key: &'a str,
    secret: &'a str,
    ca_file: &'a str,
}

impl Order<'_> {
    fn words(&self) -> [&str; 8] {
        ["127.0.0.1", &self.port, self.door, self.mechanism, self.key, self.secret, self.ca_file, RECIPIENTS]
    }
}

fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    folder.join(name).to_str().unwrap().to_owned()
}

fn run(mut command: Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("NODE_PATH", NODE_LIBRARIES)
        .output()
        .unwrap_or_else(|error| panic!("{program} is missing ({error}); `cargo xtask test` installs it"));
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let is_missing =
        said.contains("Cannot find module 'nodemailer'") || said.contains("perl module Net::SSLeay");
    assert!(!is_missing, "a library of {program} is missing; `cargo xtask test` installs it:\n{said}");
    assert!(output.status.success(), "{program} failed:\n{said}");
}

/// Sends through every door by every mechanism.
async fn sends_everywhere(client: fn(&Order<'_>) -> Command, subject: &str) {
    let service = Service::start().await;
    let ca_file = service.folder.path().join("ca.pem");
    for (door, address) in [("starttls", service.starttls), ("tls", service.tls)] {
        for mechanism in ["PLAIN", "LOGIN"] {
            let order = Order {
                port: address.port().to_string(),
                door,
                mechanism,
                key: &service.key,
                secret: &service.secret,
                ca_file: ca_file.to_str().unwrap(),
            };
            let command = client(&order);
            tokio::task::spawn_blocking(move || run(command)).await.unwrap();
            let stored = service.stored().await;
            let recipients: Vec<&str> = stored.iter().map(|stored| stored.message.rcpt_to.as_str()).collect();
            assert_eq!(recipients.join(","), RECIPIENTS, "{door} {mechanism}");
            let send = &stored[0].message.send;
            assert_eq!(send.subject, subject, "{door} {mechanism}");
            assert!(send.received_with_ssl);
            assert_eq!(send.options.protocol, Protocol::Esmtpsa);
            assert_eq!(stored[0].text.matches("Message-I").count(), 1, "{}", stored[0].text);
            assert!(stored[0].text.contains("\r\n..and dots\r\n"), "{}", stored[0].text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn swaks_sends() {
    let client = |order: &Order<'_>| {
        let mut swaks = Command::new("swaks");
        let tls = if order.door == "tls" { "--tls-on-connect" } else { "--tls" };
        swaks
            .args([
                "--server",
                "127.0.0.1",
                "--port",
                &order.port,
                tls,
                "--tls-verify",
                "--tls-ca-path",
                order.ca_file,
            ])
            .args(["--auth", order.mechanism, "--auth-user", order.key, "--auth-password", order.secret])
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
    sends_everywhere(client, "Greetings of swaks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_smtplib_sends() {
    let client = |order: &Order<'_>| {
        let mut python = Command::new("python3");
        python.arg(script("smtplib_send.py")).args(order.words());
        python
    };
    sends_everywhere(client, "Grüße von smtplib").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodemailer_sends() {
    let client = |order: &Order<'_>| {
        let mut node = Command::new("node");
        node.arg(script("nodemailer_send.js")).args(order.words());
        node
    };
    sends_everywhere(client, "Grüße von nodemailer").await;
}
