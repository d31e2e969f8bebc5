//! Mail to `postmaster@` and `abuse@` at the service's host name reaches the operator.

use postroad_testkit::SmtpClient;
use serde_json::json;

use super::feedback_forms::yahoo;
use super::{bounce_listener, send_and_catch};
use crate::world::{Engine, World, both_engines, good_but};

const OPERATOR: &str = "ops@company.example";
const LETTER: &str = "From: Ann <ann@stranger.example>\r\nTo: postmaster@postroad.localhost\r\nSubject: Your mail\r\n\
    Date: Mon, 16 Nov 2026 10:00:00 +0000\r\nMessage-ID: <letter@stranger.example>\r\n\r\nIt looks odd.\r\n";

async fn send_letter(world: &World, to: &str, text: &str) -> String {
    let mut client = SmtpClient::connect(bounce_listener(world)).await;
    client.deliver("ann@stranger.example", &[to], text).await
}

/// Messages in the operator's mailbox: envelope sender and text of each.
async fn mailbox(world: &World) -> Vec<(String, String)> {
    let listed = world.client.get("/dev/messages?limit=500").await.unwrap().json();
    let mut found = Vec::new();
    for message in listed["messages"].as_array().unwrap() {
        if message["rcpt_to"] == json!([OPERATOR]) {
            let raw = world.client.get(&format!("/dev/messages/{}/raw", message["id"])).await.unwrap();
            let raw = String::from_utf8(raw.body.to_vec()).unwrap();
            found.push((message["mail_from"].as_str().unwrap().to_owned(), raw));
        }
    }
    found
}

fn start_with_operator(engine: Engine) -> World {
    World::start_with(engine, &[("POSTROAD_FEEDBACK_FORWARD_TO", OPERATOR)])
}

both_engines!(
    letters_to_the_postmaster_reach_the_operator_once,
    complaints_to_abuse_take_effect_and_letters_about_mail_are_forwarded
);

async fn letters_to_the_postmaster_reach_the_operator_once(engine: Engine) {
    let world = start_with_operator(engine);
    assert_eq!(send_letter(&world, "postmaster@postroad.localhost", LETTER).await, "250 2.0.0 OK");
    let wait = format!("/dev/messages/wait?to={OPERATOR}&timeout=20");
    assert_eq!(world.client.get(&wait).await.unwrap().status, 200);
    let (mail_from, raw) = mailbox(&world).await.remove(0);
    assert_eq!(mail_from, "", "with an empty sender it cannot bounce");
    assert!(raw.contains("Delivered-To: postmaster@postroad.localhost\r\n"), "{raw}");
    assert!(raw.contains(LETTER), "{raw}");

    // If the mailbox sends the letter back, it is refused, which ends the loop.
    let reply = send_letter(&world, "Postmaster@postroad.localhost", &raw).await;
    assert_eq!(reply, "554 5.4.6 The message is in a mail loop");
    // Other addresses are still refused.
    assert!(send_letter(&world, "webmaster@postroad.localhost", LETTER).await.starts_with("550 5.7.1 "));
}

async fn complaints_to_abuse_take_effect_and_letters_about_mail_are_forwarded(engine: Engine) {
    let world = start_with_operator(engine);
    let angry = send_and_catch(&world, "angry@example.com").await;
    let caught = world.client.get("/dev/messages/wait?to=angry@example.com&timeout=20").await.unwrap();
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught.json()["id"])).await.unwrap();
    let raw = String::from_utf8(raw.body.to_vec()).unwrap();
    // A person who encloses the message wants an answer; it is not a complaint of a feedback loop.
    let enclosed = format!(
        "From: ann@stranger.example\r\nSubject: What is this?\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n\
             Please explain.\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n{raw}\r\n--b--\r\n"
    );
    assert_eq!(send_letter(&world, "abuse@postroad.localhost", &enclosed).await, "250 2.0.0 OK");
    let foreign = yahoo("From: x@else.example\r\n\r\nBuy!\r\n", "x@else.example", "angry@example.com");
    assert_eq!(send_letter(&world, "abuse@rp.postroad.localhost", &foreign).await, "250 2.0.0 OK");
    let wait =
        format!("/dev/messages/wait?to={OPERATOR}&subject=FW: Your order&timeout=20").replace(' ', "%20");
    assert_eq!(world.client.get(&wait).await.unwrap().status, 200);
    let next = world.accepted_id(&good_but(json!({"to": ["angry@example.com"]}))).await;
    world.until_status(next, "Sent").await;

    let complaint = yahoo(&raw, &angry.return_path, "angry@example.com");
    assert_eq!(send_letter(&world, "abuse@postroad.localhost", &complaint).await, "250 2.0.0 OK");
    let next = world.accepted_id(&good_but(json!({"to": ["angry@example.com"]}))).await;
    world.until_status(next, "Held").await;
    let delivered_to_counts: Vec<usize> =
        mailbox(&world).await.iter().map(|(_, raw)| raw.matches("Delivered-To: ").count()).collect();
    assert_eq!(delivered_to_counts, [1, 1], "the letter and the foreign report");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sixty_first_letter_in_a_row_is_refused_temporarily() {
    let world = start_with_operator(Engine::Sqlite);
    let mut client = SmtpClient::connect(bounce_listener(&world)).await;
    let mut replies = Vec::new();
    for _ in 0..61 {
        replies.push(client.deliver("ann@stranger.example", &["abuse@postroad.localhost"], LETTER).await);
    }
    assert!(replies[..60].iter().all(|reply| reply == "250 2.0.0 OK"), "{replies:?}");
    assert!(replies[60].starts_with("451 4.3.2 "), "{replies:?}");
}
