//! Mail to the bounce listener of the real binary: bounces, complaints, reports, and letters to the operator.

mod bounces;
mod complaints;
mod feedback;
mod feedback_forms;
mod operator_mail;
mod outage;
mod refusals;
mod reports;
mod simulator;

use std::net::SocketAddr;

use postroad_testkit::SmtpClient;
use serde_json::json;

use crate::world::{World, good_but};

/// A message that was sent, and the return path it went out with.
pub(crate) struct SentMessage {
    pub(crate) id: i64,
    pub(crate) recipient: String,
    pub(crate) return_path: String,
}

/// Sends a message and waits until it is in the dev inbox.
pub(crate) async fn send_and_catch(world: &World, recipient: &str) -> SentMessage {
    let id = world.accepted_id(&good_but(json!({"to": [recipient]}))).await;
    world.until_status(id, "Sent").await;
    let caught = world.client.get(&format!("/dev/messages/wait?to={recipient}&timeout=20")).await.unwrap();
    let return_path = caught.json()["mail_from"].as_str().expect("it has a return path").to_owned();
    SentMessage { id, recipient: recipient.to_owned(), return_path }
}

pub(crate) fn bounce_listener(world: &World) -> SocketAddr {
    let port = world.daemon.ready()["smtp"]["bounce_port"].as_u64().expect("it listens for bounces");
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
}

/// Mails a text to a return path with an empty sender, as bounces come; returns the last reply.
pub(crate) async fn mail_back(world: &World, return_path: &str, text: &str) -> String {
    let mut client = SmtpClient::connect(bounce_listener(world)).await;
    client.deliver("", &[return_path], text).await
}

/// A delivery status notification (RFC 3464) about one recipient.
pub(crate) fn notification(recipient: &str, action: &str, status: &str, diagnostic: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.example.net\r\nSubject: Your mail\r\nMessage-ID: <{status}-{action}@mx.example.net>\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nSorry.\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n\r\n\
         Final-Recipient: rfc822; {recipient}\r\nAction: {action}\r\nStatus: {status}\r\n\
         Diagnostic-Code: smtp; {diagnostic}\r\n\r\n--b--\r\n"
    )
}
