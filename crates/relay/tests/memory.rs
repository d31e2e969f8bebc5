//! A message by SMTP takes at most three times its own bytes of memory, and 1 MB (`Limits`). Measured by a counting allocator
//! that both ends of the connection share, so this is a test binary of its own with a single test.

#![cfg(test)]

#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "it/service.rs"]
mod service;

use peak_alloc::PeakAlloc;
use postroad_testkit::SmtpClient;
use service::{FROM, Service, settings};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BYTES: usize = 1 << 20;
const FIXED_BYTES: usize = 1 << 20;

#[tokio::test]
async fn a_message_by_smtp_takes_three_times_its_bytes_and_a_megabyte() {
    // The place for the largest message is taken whole; what is not written to is no memory, but it is counted here.
    let settings = postroad_relay::Settings { message_bytes_max: BYTES + (256 << 10), ..settings() };
    let service = Service::start_with(settings, 0).await;
    service.bind_loopback().await;
    let mut client = SmtpClient::connect(service.plain).await;
    let mut too_much = Vec::new();
    for (at, message) in messages().iter().enumerate() {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        client.say(&format!("MAIL FROM:<{FROM}>")).await;
        client.say("RCPT TO:<ann@example.com>").await;
        let reply = client.say("DATA").await;
        assert!(reply.starts_with("354 "), "{at}: {reply}");
        client.send(message.as_bytes()).await;
        let reply = client.say(".").await;
        assert!(reply.starts_with(['2', '5']), "{at}: {reply}");
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        // The first one fills memories that stay.
        if at > 0 && taken > 3 * message.len() + FIXED_BYTES {
            let start = &message[..message.floor_char_boundary(60)];
            too_much.push(format!("{start:?}: {taken} bytes for {}; {reply}", message.len()));
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}

/// Each ends with a line end.
fn messages() -> Vec<String> {
    let from = format!("From: {FROM}\r\n");
    let mut messages = vec![format!("{from}\r\nwarm-up\r\n"), filled("x\r\n")];
    for field in ["From", "Sender", "Resent-From", "Subject", "To"] {
        for piece in ["x:;,\r\n ", "a@b.c,\r\n ", "=?utf-8?q?a=40b.example?=\r\n ", "é\r\n "] {
            let first = if field == "From" { "" } else { &from };
            messages.push(format!("{first}{field}: {}x\r\n\r\nx\r\n", filled(piece)));
        }
    }
    for header in ["a:", "To: é@x.example", "X-Metadata-A: 1", "X-Test-Mode: 1", "X-Postroad-Tag:", "Bcc: x"]
    {
        messages.push(format!("{from}{}\r\nx\r\n", filled(&format!("{header}\r\n"))));
    }
    for piece in ["\r\n", "..\r\n", "a line that is clean\r\n", "--b\r\n", "a line\n"] {
        let head = format!("{from}Content-Type: multipart/mixed; boundary=b\r\n");
        messages.push(format!("{head}\r\n{}\r\n", filled(piece)));
    }
    // As many as become a message of that size.
    messages.push(format!("{from}\r\n{}\r\n", "\n".repeat(BYTES / 2)));
    messages
}

fn filled(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}
