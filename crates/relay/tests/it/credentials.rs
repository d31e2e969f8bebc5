//! Authentication: AUTH PLAIN and LOGIN, and every way a key can be invalid.

use postroad_app::admin::NewKey;
use postroad_model::{CredentialId, Scope};
use postroad_testkit::SmtpClient;

use crate::service::{FROM, Service, auth_plain, encode, message_text};

const BAD: &str = "535 5.7.8 Authentication credentials invalid";
const SUSPENDED: &str = "554 5.7.1 The mail server has been suspended";

#[tokio::test]
async fn auth_plain_and_auth_login_succeed_with_and_without_an_initial_response() {
    let service = Service::start().await;
    let (key, secret) = (encode(&service.key), encode(&service.secret));
    let plain = encode(&format!("\0{}\0{}", service.key, service.secret));
    let with_authorization_id = encode(&format!("{0}\0{0}\0{1}", service.key, service.secret));
    for lines in [
        vec![format!("AUTH PLAIN {plain}")],
        vec!["AUTH PLAIN".to_owned(), plain],
        vec![format!("auth plain {with_authorization_id}")],
        vec!["AUTH LOGIN".to_owned(), key.clone(), secret.clone()],
        vec![format!("AUTH LOGIN {key}"), secret],
    ] {
        let mut client = SmtpClient::connect_tls(service.tls).await;
        let mut reply = String::new();
        for line in &lines {
            assert!(reply.is_empty() || reply.starts_with("334"), "{reply}");
            reply = client.say(line).await;
        }
        assert_eq!(reply, "235 2.7.0 Authentication succeeded", "{}", lines[0]);
    }
}

#[tokio::test]
async fn no_message_is_accepted_before_tls_and_auth() {
    let service = Service::start().await;
    let mut client = SmtpClient::connect(service.starttls).await;
    let greeting = client.say("EHLO client.example").await;
    assert!(greeting.contains("STARTTLS") && !greeting.contains("AUTH"), "{greeting}");
    let must = "530 5.7.0 Must issue a STARTTLS command first";
    assert_eq!(client.say(&auth_plain(&service.key, &service.secret)).await, must);
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, must);

    let mut client = SmtpClient::connect_starttls(service.starttls).await;
    let greeting = client.say("EHLO client.example").await;
    for offered in [
        "PIPELINING",
        "SIZE 26214400",
        "8BITMIME",
        "SMTPUTF8",
        "ENHANCEDSTATUSCODES",
        "CHUNKING",
        "DSN",
        "AUTH PLAIN LOGIN",
    ] {
        assert!(greeting.contains(offered), "{greeting}");
    }
    assert!(!greeting.contains("STARTTLS"), "{greeting}");
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
    assert_eq!(client.say("RCPT TO:<ann@example.com>").await, "503 5.5.1 Say MAIL first");
    assert_eq!(client.say("DATA").await, "503 5.5.1 Say MAIL first");
}

#[tokio::test]
async fn wrong_credentials_all_get_the_same_reply() {
    let service = Service::start().await;
    let revoked = service.create_key(|key| key.name = "later revoked".into()).await;
    let field = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap().to_owned();
    let (revoked_key, revoked_secret) = (field(&revoked, "api_key"), field(&revoked, "api_secret"));
    let id = CredentialId(revoked["id"].as_i64().unwrap());
    service.app.revoke_key(id).await.unwrap();
    let elsewhere = service.create_key(|key| key.allow = vec!["192.0.2.0/24".parse().unwrap()]).await;
    let (elsewhere_key, elsewhere_secret) = (field(&elsewhere, "api_key"), field(&elsewhere, "api_secret"));
    for (key, secret) in [
        (service.key.as_str(), "wrong"),
        (&service.key, ""),
        (&service.key, &service.key),
        ("unknown", &service.secret),
        (&service.key, &revoked_secret),
        (&revoked_key, &revoked_secret),
        (&elsewhere_key, &elsewhere_secret),
    ] {
        let mut client = SmtpClient::connect_tls(service.tls).await;
        assert_eq!(client.say(&auth_plain(key, secret)).await, BAD);
        assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
    }
}

#[tokio::test]
async fn a_key_with_the_read_scope_may_not_send() {
    let service = Service::start().await;
    let made = service.create_key(|key| key.scope = Scope::Read).await;
    let auth = auth_plain(made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
    let mut client = SmtpClient::connect_tls(service.tls).await;
    assert_eq!(client.say(&auth).await, "535 5.7.8 The key has the scope read and may not send");
    let made = service.create_key(|key| key.scope = Scope::Send).await;
    let auth = auth_plain(made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
    assert!(client.say(&auth).await.starts_with("235 "));
}

#[tokio::test]
async fn a_suspension_and_a_revocation_reach_sessions_that_are_open() {
    let service = Service::start().await;
    let mut client = service.client().await;
    assert!(client.deliver(FROM, &["ann@example.com"], &message_text("")).await.starts_with("250 "));
    service.app.suspend_server("dev", Some("test".into())).await.unwrap();
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, SUSPENDED);
    let mut other = SmtpClient::connect_tls(service.tls).await;
    assert_eq!(other.say(&auth_plain(&service.key, &service.secret)).await, SUSPENDED);
    service.app.suspend_server("dev", None).await.unwrap();
    assert!(client.deliver(FROM, &["ann@example.com"], &message_text("")).await.starts_with("250 "));
    let id = service.store.list_credentials(None).await.unwrap()[0].id;
    service.app.revoke_key(id).await.unwrap();
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, BAD);
}

#[tokio::test]
async fn maintenance_refuses_mail_by_smtp_too() {
    let service = Service::start().await;
    let mut client = service.client().await;
    service.app.set_maintenance(true).await.unwrap();
    let refusal = "451 4.3.2 The service is under maintenance, try again later";
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, refusal);
    service.app.set_maintenance(false).await.unwrap();
    assert!(client.deliver(FROM, &["ann@example.com"], &message_text("")).await.starts_with("250 "));
}

#[tokio::test]
async fn a_client_that_guesses_secrets_is_disconnected_and_good_keys_keep_working() {
    let service = Service::start().await;
    let wrong = auth_plain(&service.key, "wrong");
    let mut client = SmtpClient::connect_tls(service.tls).await;
    assert_eq!(client.say(&wrong).await, BAD);
    assert_eq!(client.say(&wrong).await, BAD);
    assert_eq!(client.say(&wrong).await, BAD);
    assert_eq!(client.reply().await, "421 4.7.0 Too many failed authentications, closing the connection");
    assert_eq!(client.reply().await, "");
    // More failures from this address. `log_in` is called directly, because the relay delays its replies to failures.
    let peer = postroad_app::Peer { address: [127, 0, 0, 1].into(), tls: true };
    for _ in 0..200 {
        assert!(service.app.log_in(&service.key, "wrong", peer).await.is_err());
    }
    let mut client = SmtpClient::connect_tls(service.tls).await;
    let reply = client.say(&wrong).await;
    assert_eq!(reply, "421 4.7.0 Too many failed authentications, closing the connection");
    assert_eq!(client.reply().await, "");
    service.client().await;
}

#[tokio::test]
async fn a_client_authenticates_with_the_login_of_a_key() {
    let service = Service::start().await;
    let made = service.create_key(|key| key.login = Some("Shop@Example.com".into())).await;
    assert_eq!(made["login"], "shop@example.com");
    let (key, secret) = (made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
    let log_in = async |user: &str, password: &str| {
        SmtpClient::connect_tls(service.tls).await.say(&auth_plain(user, password)).await
    };
    let good = "235 2.7.0 Authentication succeeded";
    assert_eq!(log_in("SHOP@example.com", secret).await, good);
    assert_eq!(log_in(key, secret).await, good, "the key still works");
    assert_eq!(log_in("shop@example.com", &service.secret).await, BAD, "another key's secret");
    assert_eq!(log_in("other@example.com", secret).await, BAD);

    let again = NewKey { login: Some("shop@EXAMPLE.com".into()), ..Service::plain_key() };
    let refused = service.app.create_key(again).await.unwrap_err();
    assert_eq!(refused.to_string(), "a key with the login shop@example.com exists already");
    let odd = NewKey { login: Some("shop".into()), ..Service::plain_key() };
    assert!(service.app.create_key(odd).await.is_err());

    let id = made["id"].as_i64().unwrap();
    let rotated = service.app.rotate_key(CredentialId(id), 3_600).await.unwrap();
    assert_eq!(rotated["login"], "shop@example.com");
    let new_secret = rotated["api_secret"].as_str().unwrap();
    assert_eq!(log_in("shop@example.com", new_secret).await, good);
    assert_eq!(log_in("shop@example.com", secret).await, good, "the old secret works for a grace period");
    let listed = service.app.list_keys(None).await.unwrap();
    let logins = listed.as_array().unwrap().iter().filter(|key| key["login"] == "shop@example.com").count();
    assert_eq!(logins, 1);

    let new_id = rotated["id"].as_i64().unwrap();
    service.app.revoke_key(CredentialId(new_id)).await.unwrap();
    assert_eq!(log_in("shop@example.com", new_secret).await, BAD);
    service.create_key(|key| key.login = Some("shop@example.com".into())).await;
}
