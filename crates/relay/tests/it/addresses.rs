//! Authentication by the IP address of the client, and the PROXY protocol.

use postroad_model::{CredentialId, Protocol};
use postroad_relay::Settings;
use postroad_testkit::SmtpClient;

use crate::service::{FROM, Service, message_text, settings};

const TO: [&str; 1] = ["ann@example.com"];

fn behind_proxy() -> Settings {
    Settings { proxy_protocol_from: vec!["127.0.0.0/8".parse().unwrap()], ..settings() }
}

#[tokio::test]
async fn a_client_at_a_bound_address_sends_without_auth_on_the_plain_listener_only() {
    let service = Service::start().await;
    let mut client = SmtpClient::connect(service.plain).await;
    assert!(!client.say("EHLO client.example").await.contains("AUTH"));
    let unknown = "530 5.7.0 No credential is bound to your IP address";
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, unknown);
    service.bind_loopback().await;
    let reply = client.deliver(FROM, &TO, &message_text("")).await;
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&reply), "{reply}");
    assert!(!stored.message.send.received_with_ssl);
    assert_eq!(stored.message.send.options.protocol, Protocol::Utf8Smtp);
    let refused = client.deliver(FROM, &TO, "From: ceo@bank.example\r\n\r\n").await;
    assert!(refused.starts_with("550 5.7.1 "), "{refused}");
    for mut client in
        [SmtpClient::connect_tls(service.tls).await, SmtpClient::connect_starttls(service.starttls).await]
    {
        assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
    }
}

#[tokio::test]
async fn the_narrowest_network_counts_and_that_of_a_revoked_key_does_not() {
    let service = Service::start_with(behind_proxy(), 0).await;
    let live = postroad_model::ServerMode::Live;
    service.app.create_server("other".into(), "dev", live, None).await.unwrap();
    service
        .create_key(|key| (key.server, key.address) = ("other".into(), vec!["192.0.2.0/24".parse().unwrap()]))
        .await;
    let narrow = service.create_key(|key| key.address = vec!["192.0.2.7/32".parse().unwrap()]).await;
    assert_eq!((&narrow["scope"], narrow.get("api_key")), (&"address".into(), None));
    let mut replies = Vec::new();
    for revoke in [false, true] {
        if revoke {
            let id = CredentialId(narrow["id"].as_i64().unwrap());
            service.app.revoke_key(id).await.unwrap();
        }
        for address in ["192.0.2.7", "192.0.2.8", "198.51.100.1"] {
            let header = format!("PROXY TCP4 {address} 127.0.0.1 50000 25\r\n");
            let mut client = SmtpClient::dial_with(service.plain, header.as_bytes()).await;
            client.reply().await;
            client.say("EHLO x").await;
            replies.push(client.deliver(FROM, &TO, &message_text("")).await[..9].to_owned());
        }
    }
    // 550 is the reply for the other server, which has no verified domain.
    assert_eq!(replies, ["250 2.0.0", "550 5.7.1", "530 5.7.0", "550 5.7.1", "550 5.7.1", "530 5.7.0"]);
}

#[tokio::test]
async fn both_versions_of_the_proxy_protocol_name_the_client() {
    let service = Service::start_with(behind_proxy(), 0).await;
    service
        .create_key(|key| {
            key.address = vec!["2001:db8::/32".parse().unwrap(), "192.0.2.1/32".parse().unwrap()];
        })
        .await;
    let v2 =
        [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &[192, 0, 2, 1, 127, 0, 0, 1, 1, 1, 0, 25]].concat();
    let v1 = b"PROXY TCP6 2001:db8::5 2001:db8::6 50000 25\r\n";
    for header in [&v2[..], v1] {
        let mut client = SmtpClient::dial_with(service.plain, header).await;
        assert!(client.reply().await.starts_with("220 "));
        client.say("EHLO x").await;
        assert!(client.deliver(FROM, &TO, &message_text("")).await.starts_with("250 "));
    }
    // A listed proxy must send the header.
    let mut without_header = SmtpClient::dial_with(service.plain, b"EHLO client.").await;
    assert_eq!(without_header.reply().await, "");
}

#[tokio::test]
async fn a_proxy_header_of_an_unlisted_peer_is_refused() {
    let service = Service::start().await;
    service.create_key(|key| key.address = vec!["192.0.2.1/32".parse().unwrap()]).await;
    let mut client = SmtpClient::dial_with(service.plain, b"PROXY TCP4 192.0.2.1 127.0.0.1 1 25\r\n").await;
    assert!(client.reply().await.starts_with("220 "));
    assert_eq!(client.reply().await, "500 5.5.1 Command not recognised");
    client.say("EHLO x").await;
    assert_eq!(
        client.say(&format!("MAIL FROM:<{FROM}>")).await,
        "530 5.7.0 No credential is bound to your IP address"
    );
}
