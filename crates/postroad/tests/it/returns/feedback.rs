//! Complaints at the addresses of feedback loops, in the forms that large receivers send them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_testkit::{SmtpClient, eventually};
use serde_json::json;

use super::feedback_forms::{comcast, headers_of, microsoft, yahoo};
use super::{SentMessage, bounce_listener, send_and_catch};
use crate::world::{Engine, RAW, World, both_engines, good_but};

const ACCEPTED_REPLY: &str = "250 2.0.0 OK";
const FOREIGN_REPORT_REPLY: &str = "554 5.7.1 The report encloses no message that was sent from here";

/// A message that was sent, and its bytes as the receiver has them.
struct ReceivedMessage {
    sent: SentMessage,
    raw: String,
}

async fn send_and_read(world: &World, recipient: &str) -> ReceivedMessage {
    let sent = send_and_catch(world, recipient).await;
    ReceivedMessage { sent, raw: caught_raw(world, recipient).await }
}

async fn caught_raw(world: &World, recipient: &str) -> String {
    let caught = world.client.get(&format!("/dev/messages/wait?to={recipient}&timeout=20")).await.unwrap();
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught.json()["id"])).await.unwrap();
    String::from_utf8(raw.body.to_vec()).unwrap()
}

/// Host name of the service, from the return path of a message.
fn host(message: &ReceivedMessage) -> &str {
    let (_, domain) = message.sent.return_path.split_once('@').unwrap();
    domain.strip_prefix("rp.").unwrap()
}

/// Mails a report; returns the last reply.
async fn report(world: &World, to: &str, text: &str) -> String {
    let mut client = SmtpClient::connect(bounce_listener(world)).await;
    client.deliver("feedback@isp.example", &[to], text).await
}

/// The status that the next message to the recipient gets.
async fn next_status(world: &World, recipient: &str) -> String {
    let id = world.accepted_id(&good_but(json!({"to": [recipient]}))).await;
    eventually(async || {
        let status = world.expanded(id).await["status"]["status"].as_str().unwrap().to_owned();
        if status == "Pending" {
            return Err(format!("the message to {recipient} is still pending"));
        }
        Ok(status)
    })
    .await
}

fn without_header(raw: &str, name: &str) -> String {
    let start = format!("{}:", name.to_ascii_lowercase());
    let lines = raw.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with(&start));
    lines.collect()
}

/// Changes one digit of the UUID in the Message-ID.
fn with_wrong_message_id(raw: &str) -> String {
    let start = raw.to_ascii_lowercase().find("message-id: <").expect("it has one") + "message-id: <".len();
    let at = start + 35;
    let other = if raw[at..].starts_with('0') { "1" } else { "0" };
    format!("{}{other}{}", &raw[..at], &raw[at + 1..])
}

both_engines!(
    a_report_in_the_form_of_each_receiver_suppresses_only_its_recipient,
    a_complaint_with_only_a_generated_message_id_counts_if_there_was_only_one_recipient,
    forged_complaints_suppress_nobody,
    other_mail_is_refused_at_an_address_for_complaints
);

async fn a_report_in_the_form_of_each_receiver_suppresses_only_its_recipient(world: World) {
    let mut messages = Vec::new();
    for name in ["yahoo", "microsoft", "comcast", "path", "no-complaint"] {
        messages.push(send_and_read(&world, &format!("{name}@example.com")).await);
    }
    let host = host(&messages[0]).to_owned();
    let raw = |at: usize| messages[at].raw.clone();
    let recipient = |at: usize| messages[at].sent.recipient.clone();
    let path = &messages[3].sent.return_path;
    // A receiver that drops headers it does not know, but adds the envelope sender as Return-Path.
    let with_return_path = format!("Return-Path: <{path}>\r\n{}", without_header(&raw(3), "X-Postroad-Id"));
    for (at, to, text) in [
        (0, format!("fbl@{host}"), yahoo(&raw(0), &messages[0].sent.return_path, &recipient(0))),
        (1, format!("fbl@rp.{host}"), microsoft(&raw(1), &recipient(1))),
        (2, format!("FBL@{host}"), comcast(&raw(2), &recipient(2))),
        (3, "fbl@rp.customer.example".to_owned(), headers_of(&with_return_path)),
    ] {
        assert_eq!(report(&world, &to, &text).await, ACCEPTED_REPLY, "{to}\n{text}");
        assert_eq!(next_status(&world, &recipient(at)).await, "Held", "{text}");
    }
    assert_eq!(next_status(&world, &recipient(4)).await, "Sent");
    assert_eq!(world.expanded(messages[0].sent.id).await["status"]["status"], "Sent");
}

// Some receivers keep only the headers that every message has, so the Message-ID is all that identifies the message.
async fn a_complaint_with_only_a_generated_message_id_counts_if_there_was_only_one_recipient(world: World) {
    let host = host(&send_and_read(&world, "first@example.com").await).to_owned();
    let fbl = format!("fbl@{host}");
    let without_postroad_id =
        async |recipient: &str| without_header(&caught_raw(&world, recipient).await, "X-Postroad-Id");
    let complain = async |original: &str, recipient: &str| {
        let path = format!("bounces@{host}");
        let pending_replies =
            [headers_of(original), microsoft(original, recipient), yahoo(original, &path, recipient)]
                .map(async |text| report(&world, &fbl, &text).await);
        let mut replies = Vec::new();
        for reply in pending_replies {
            replies.push(reply.await);
        }
        replies.dedup();
        replies
    };
    world.accepted(&good_but(json!({"to": ["one@example.com"]}))).await;
    assert_eq!(
        complain(&without_postroad_id("one@example.com").await, "one@example.com").await,
        [ACCEPTED_REPLY]
    );
    assert_eq!(next_status(&world, "one@example.com").await, "Held");
    // A message that its sender built without a Message-ID.
    let from = world.daemon.ready()["domain"].as_str().unwrap();
    let data = BASE64_STANDARD.encode(format!("From: a@{from}\r\nTo: built@example.com\r\n\r\nHello\r\n"));
    let raw = json!({"mail_from": format!("a@{from}"), "rcpt_to": ["built@example.com"], "data": data});
    let answer = world.call(RAW, &raw).await;
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(
        complain(&without_postroad_id("built@example.com").await, "built@example.com").await,
        [ACCEPTED_REPLY]
    );
    assert_eq!(next_status(&world, "built@example.com").await, "Held");

    // Both recipients know the Message-ID, so it does not prove which of them complains.
    world.accepted(&good_but(json!({"to": ["two@example.com"], "cc": ["three@example.com"]}))).await;
    assert_eq!(
        complain(&without_postroad_id("two@example.com").await, "two@example.com").await,
        [FOREIGN_REPORT_REPLY]
    );
    // Message-IDs that senders set can be guessed, whatever they look like.
    let own_message_ids =
        ["<order-17@shop.example>", "<0190a5f2-0000-8000-8000-000000000001@rp.postroad.localhost>"];
    for (own, recipient) in own_message_ids.into_iter().zip(["four@example.com", "five@example.com"]) {
        let body = good_but(json!({"to": [recipient], "headers": {"Message-ID": own}}));
        world.accepted(&body).await;
        let original = without_postroad_id(recipient).await;
        assert!(original.contains(own), "{original}");
        assert_eq!(complain(&original, recipient).await, [FOREIGN_REPORT_REPLY]);
    }
    for recipient in ["two@example.com", "three@example.com", "four@example.com", "five@example.com"] {
        assert_eq!(next_status(&world, recipient).await, "Sent", "{recipient}");
    }
}

async fn forged_complaints_suppress_nobody(world: World) {
    let victim = send_and_read(&world, "victim@example.com").await;
    let attackers_message = send_and_read(&world, "attacker@example.net").await;
    let fbl = format!("fbl@{}", host(&victim));
    let address = victim.sent.recipient.as_str();
    let id = victim.sent.return_path.split('@').next().unwrap();
    let mut wrong_id = id.to_owned();
    let last = wrong_id.pop().unwrap();
    wrong_id.push(if last == 'a' { 'b' } else { 'a' });
    let unidentified = without_header(&victim.raw, "X-Postroad-Id");
    let unidentified = with_wrong_message_id(&unidentified);
    let (head, body) = unidentified.split_once("\r\n\r\n").unwrap();
    let wrong_path = format!("{wrong_id}@rp.{}", host(&victim));
    for original in [
        // People other than the recipient may know the address and the content of the message.
        unidentified.clone(),
        format!("X-Postroad-Id: {wrong_id}\r\n{unidentified}"),
        format!("Return-Path: <{wrong_path}>\r\n{unidentified}"),
        format!("X-Postroad-Id: {id}x\r\n{unidentified}"),
        format!("X-Postroad-Id: {}\r\n{unidentified}", "x".repeat(900)),
        // The identifier counts only in the headers of the enclosed message, not in its body.
        format!("{head}\r\n\r\nX-Postroad-Id: {id}\r\n{body}"),
    ] {
        assert_eq!(report(&world, &fbl, &yahoo(&original, &wrong_path, address)).await, FOREIGN_REPORT_REPLY);
        assert_eq!(report(&world, &fbl, &microsoft(&original, address)).await, FOREIGN_REPORT_REPLY);
    }
    let id_outside_original = format!("X-Postroad-Id: {id}\r\n{}", microsoft(&unidentified, address));
    assert_eq!(report(&world, &fbl, &id_outside_original).await, FOREIGN_REPORT_REPLY);
    // A recipient can complain about its own message, but suppresses nobody else by naming others.
    let named = attackers_message.raw.replace("attacker@example.net", address);
    assert_eq!(report(&world, &fbl, &yahoo(&named, &wrong_path, address)).await, ACCEPTED_REPLY);
    assert_eq!(next_status(&world, address).await, "Sent");
    assert_eq!(next_status(&world, "attacker@example.net").await, "Held");
}

async fn other_mail_is_refused_at_an_address_for_complaints(world: World) {
    let message = send_and_read(&world, "jo@example.com").await;
    let fbl = format!("fbl@{}", host(&message));
    let letter = "From: a@b.example\r\nTo: fbl\r\nSubject: Hello\r\n\r\nIs anybody there?\r\n";
    assert_eq!(report(&world, &fbl, letter).await, "554 5.6.0 The mail contains no report");
    let not_spam =
        yahoo(&message.raw, &message.sent.return_path, "jo@example.com").replace("abuse\r\n", "not-spam\r\n");
    assert_eq!(report(&world, &fbl, &not_spam).await, ACCEPTED_REPLY);
    assert_eq!(next_status(&world, "jo@example.com").await, "Sent");
    for name in ["postmaster", "abuse", "Abuse"] {
        let reply = report(&world, &format!("{name}@{}", host(&message)), letter).await;
        assert!(reply.starts_with("550 5.1.1 Nobody reads mail to this address"), "{reply}");
    }
    let complaint = yahoo(&message.raw, &message.sent.return_path, "jo@example.com");
    assert_eq!(report(&world, &format!("abuse@{}", host(&message)), &complaint).await, ACCEPTED_REPLY);
    assert_eq!(next_status(&world, "jo@example.com").await, "Held");
}

async fn configured_addresses_take_complaints(engine: Engine) {
    let envs = [("POSTROAD_FEEDBACK_ADDRESSES", "loops@company.example, abuse@company.example")];
    let world = World::start_with(engine, &envs);
    let message = send_and_read(&world, "jo@example.com").await;
    // The mail has neither a machine-readable part nor Microsoft's header. At the address of a feedback loop, the
    // enclosed message makes it a complaint.
    let text = format!(
        "From: loop@isp.example\r\nSubject: A message\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
         Content-Type: message/rfc822\r\n\r\n{}\r\n--b--\r\n",
        message.raw
    );
    // People write to `abuse@`, too: even if configured, it takes only mail that is recognisably a complaint.
    assert!(report(&world, "abuse@company.example", &text).await.starts_with("550 5.1.1 "));
    assert!(report(&world, "other@company.example", &text).await.starts_with("550 5.7.1 "));
    assert_eq!(report(&world, "Loops@company.example", &text).await, ACCEPTED_REPLY);
    assert_eq!(next_status(&world, "jo@example.com").await, "Held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn complaints_to_a_configured_address_take_effect() {
    configured_addresses_take_complaints(Engine::Sqlite).await;
}
