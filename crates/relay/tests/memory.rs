//! An SMTP message takes at most three times its own bytes of memory, plus 1 MB (`Limits`).
//!
//! A counting allocator measures the whole process, with both ends of the connection. Therefore this is a separate test
//! binary with a single test.

#![cfg(test)]

#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "it/service.rs"]
mod service;

use peak_alloc::PeakAlloc;
use postroad_testkit::{SmtpClient, random_bytes, random_text};
use service::{FROM, Service, settings};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Approximate size of a compressible message.
const BYTES: usize = 1 << 20;
/// Incompressible content is measured with more bytes, so that the fixed part of the rule hides no excess.
const RANDOM_BYTES: usize = 6 << 20;
/// Memory that a message may take beside three times its size.
const FIXED_BYTES: usize = 1 << 20;

#[tokio::test]
async fn a_message_by_smtp_takes_at_most_three_times_its_bytes_and_a_megabyte() {
    let mut excesses = measure(BYTES, messages().into_iter().map(String::into_bytes).collect()).await;
    excesses.extend(measure(RANDOM_BYTES, random_messages()).await);
    assert!(excesses.is_empty(), "{excesses:#?}");
}

/// Submits the messages, of about `bytes` bytes each, and describes those that take too much memory. The first message
/// only fills caches.
async fn measure(bytes: usize, messages: Vec<Vec<u8>>) -> Vec<String> {
    // The buffer for the largest message is allocated at once; untouched pages take no memory but are counted
    // here.
    let settings = postroad_relay::Settings { message_bytes_max: bytes + (256 << 10), ..settings() };
    let service = Service::start_with(settings, 0).await;
    service.bind_loopback().await;
    let mut client = SmtpClient::connect(service.plain).await;
    let mut excesses = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        client.say(&format!("MAIL FROM:<{FROM}>")).await;
        client.say("RCPT TO:<ann@example.com>").await;
        let reply = client.say("DATA").await;
        assert!(reply.starts_with("354 "), "{at}: {reply}");
        client.send(message).await;
        let reply = client.say(".").await;
        // A refused message takes less memory than a stored one.
        let is_random = bytes == RANDOM_BYTES;
        assert!(reply.starts_with('2') || (!is_random && reply.starts_with('5')), "{at}: {reply}");
        let peak_bytes = ALLOCATOR.peak_usage().saturating_sub(before);
        if at > 0 && peak_bytes > 3 * message.len() + FIXED_BYTES {
            let start = String::from_utf8_lossy(&message[..60]);
            excesses.push(format!("{start:?}: {peak_bytes} bytes for {}; {reply}", message.len()));
        }
    }
    excesses
}

/// Incompressible messages: raw bytes, and text.
fn random_messages() -> Vec<Vec<u8>> {
    let head = format!("From: {FROM}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n").into_bytes();
    let mut bytes = head.clone();
    for line in random_bytes(RANDOM_BYTES / 103 * 100).chunks_mut(100) {
        line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b'x');
        // A line must not start with a dot.
        bytes.push(b'x');
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(b"\r\n");
    }
    let texts = ["\r\n", "\n"].map(|line_end| {
        let text = random_text(RANDOM_BYTES - 1_000, line_end);
        [&head[..], text.as_bytes(), b"\r\n"].concat()
    });
    [vec![[&head[..], b"warm-up\r\n"].concat(), bytes], texts.into()].concat()
}

/// Compressible messages. Each ends with a line end.
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
    // Bare LFs that take `BYTES` bytes once they are converted to CRLF.
    messages.push(format!("{from}\r\n{}\r\n", "\n".repeat(BYTES / 2)));
    messages
}

fn filled(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}
