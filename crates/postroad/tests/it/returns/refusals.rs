//! The bounce listener accepts only mail for its own addresses.

use postroad_testkit::SmtpClient;

use super::{bounce_listener, mail_back, notification, send_and_catch};
use crate::world::{World, both_engines};

const REFUSED: &str = "550 5.7.1 Relay access denied: no mail is accepted for this address";

/// The return path with another character at position `at`.
fn with_changed_character(return_path: &str, at: usize) -> String {
    let mut bytes = return_path.as_bytes().to_vec();
    bytes[at] = if bytes[at].eq_ignore_ascii_case(&b'a') { b'b' } else { b'a' };
    String::from_utf8(bytes).unwrap()
}

both_engines!(
    a_return_path_with_one_changed_character_is_refused,
    nothing_is_relayed,
    the_bounce_listener_offers_starttls_but_no_auth
);

async fn a_return_path_with_one_changed_character_is_refused(world: World) {
    let sent = send_and_catch(&world, "jo@example.com").await;
    let text = notification("jo@example.com", "failed", "5.1.1", "550 5.1.1 User unknown");
    let at_sign = sent.return_path.find('@').unwrap();
    for at in [0, at_sign - 16, at_sign - 8, at_sign - 1] {
        assert_eq!(
            mail_back(&world, &with_changed_character(&sent.return_path, at), &text).await,
            REFUSED,
            "{at}"
        );
    }
    assert_eq!(world.expanded(sent.id).await["status"]["status"], "Sent");
    // Relays may change the letter case of an address.
    let uppercase = sent.return_path.to_ascii_uppercase();
    assert_eq!(mail_back(&world, &uppercase, &text).await, "250 2.0.0 OK");
    assert_eq!(world.expanded(sent.id).await["status"]["status"], "Bounced");
}

async fn nothing_is_relayed(world: World) {
    let sent = send_and_catch(&world, "jo@example.com").await;
    let (local_part, domain) = sent.return_path.split_once('@').unwrap();
    let mut client = SmtpClient::connect(bounce_listener(&world)).await;
    for recipient in [
        "victim@example.net".to_owned(),
        format!("victim@{domain}"),
        format!("victim%example.net@{domain}"),
        format!("example.net!victim@{domain}"),
        format!("\"victim@example.net\"@{domain}"),
        format!("\"{}\"@{domain}", sent.return_path),
        format!("{local_part}%{domain}@{domain}"),
        format!("{}@{domain}", sent.return_path.replace('@', "%")),
        format!("{local_part}+tag@{domain}"),
        format!("{local_part}@example.net"),
        format!("{local_part}@{}", domain.strip_prefix("rp.").unwrap()),
        format!("{local_part}@sub.{domain}"),
        format!("{local_part}@x{domain}"),
        format!("{local_part}@[127.0.0.1]"),
        format!("@{domain}:victim@example.net"),
        format!("@example.net:{}", sent.return_path),
        local_part.to_owned(),
    ] {
        for from in ["", "shop@example.test", sent.return_path.as_str()] {
            assert!(client.say(&format!("MAIL FROM:<{from}>")).await.starts_with("250 "));
            let reply = client.say(&format!("RCPT TO:<{recipient}>")).await;
            assert!(reply.starts_with('5'), "{recipient}: {reply}");
            assert!(client.say("DATA").await.starts_with("554 "), "{recipient}");
            client.say("RSET").await;
        }
    }
    // The domain looks like a customer's return-path domain, but does not belong to the domain that sent this message.
    let foreign = format!("{local_part}@{domain}.example.net");
    let text = notification("jo@example.com", "failed", "5.1.1", "550 5.1.1 User unknown");
    let refused = mail_back(&world, &foreign, &text).await;
    assert!(refused.starts_with("550 "), "{refused}");
    assert_eq!(world.expanded(sent.id).await["status"]["status"], "Sent");
    // A good recipient does not make another one acceptable.
    assert!(client.say("MAIL FROM:<>").await.starts_with("250 "));
    assert!(client.say(&format!("RCPT TO:<{}>", sent.return_path)).await.starts_with("250 "));
    assert_eq!(client.say("RCPT TO:<victim@example.net>").await, REFUSED);
}

async fn the_bounce_listener_offers_starttls_but_no_auth(world: World) {
    let sent = send_and_catch(&world, "jo@example.com").await;
    let mut client = SmtpClient::connect(bounce_listener(&world)).await;
    let greeting = client.say("EHLO mx.example.net").await;
    assert!(greeting.contains("STARTTLS") && greeting.contains("SIZE 10485760"), "{greeting}");
    assert!(!greeting.contains("AUTH") && !greeting.contains("DSN"), "{greeting}");
    assert!(client.say("AUTH PLAIN AGEAYg==").await.starts_with('5'));
    assert!(client.say("MAIL FROM:<> SIZE=10485761").await.starts_with("552 5.3.4 "));
    let mut client = SmtpClient::connect_starttls(bounce_listener(&world)).await;
    assert!(!client.say("EHLO mx.example.net").await.contains("AUTH"));
    let text = notification("jo@example.com", "failed", "5.1.1", "550 5.1.1 User unknown");
    assert_eq!(client.deliver("daemon@mx.example.net", &[&sent.return_path], &text).await, "250 2.0.0 OK");
    world.until_status(sent.id, "Bounced").await;
}
