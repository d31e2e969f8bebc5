//! Replies of other mail servers to our client, cut into pieces. The first byte of an input is the size of a piece.

use bytes::Bytes;
use postroad_model::{DomainName, EmailAddress};
use postroad_smtp::{Body, ClientConfig, ClientSession, EndCause, Event, HeloName, OutgoingMessage};

use super::{Target, texts};

const OUTPUT_BYTES_MAX: usize = 16 << 10;
/// Messages offered in one session.
const MESSAGES_PER_SESSION: usize = 2;

pub(super) const TARGET: Target = Target {
    name: "smtp-client",
    run,
    seeds: || {
        texts(&[
            "\u{7f}220 mx ESMTP\r\n250-mx\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n250 ok\r\n250 ok\r\n\
             354 go\r\n250 2.0.0 queued\r\n250 ok\r\n550 5.1.1 no such user\r\n503 no\r\n221 bye\r\n",
            "\u{9}220-mx\r\n220 hi\r\n250-mx\r\n250-CHUNKING\r\n250 STARTTLS\r\n220 go\r\n250 mx\r\n250 ok\r\n250 ok\r\n250 ok\r\n",
            "\u{3}554 5.7.1 go away\r\n",
            "\u{5}220 mx\r\n502 no\r\n250 mx\r\n421 4.3.2 busy\r\n",
        ])
    },
    frames: &["{}", "\u{40}220 {}\r\n", "\u{40}220 mx\r\n250-{}\r\n", "\u{40}220 mx\r\n250 mx\r\n550-{}\r\n"],
};

fn run(bytes: &[u8]) {
    let Some((piece_bytes, rest)) = bytes.split_first() else { return };
    let host = DomainName::parse("out.example.test").expect("the constant is a domain name");
    let mut session = ClientSession::new(ClientConfig::new(HeloName::from(host)));
    let mut messages_left = MESSAGES_PER_SESSION;
    let mut output = Vec::new();
    for piece in rest.chunks(usize::from(*piece_bytes).max(1)) {
        session.feed(piece);
        if !react(&mut session, &mut messages_left, &mut output) {
            return;
        }
    }
    session.connection_ended(EndCause::EndOfStream);
    react(&mut session, &mut messages_left, &mut output);
}

/// Reacts as delivery would. Returns `false` when the session has ended.
fn react(session: &mut ClientSession, messages_left: &mut usize, output: &mut Vec<u8>) -> bool {
    loop {
        output.clear();
        let mut made_progress = session.fill_output(output, OUTPUT_BYTES_MAX) > 0;
        while let Some(event) = session.next_event() {
            made_progress = true;
            match event {
                Event::StartTls => session.tls_established(),
                Event::Ready if *messages_left > 0 => {
                    *messages_left -= 1;
                    session.send(message()).expect("a ready session takes a message");
                }
                Event::Ready => session.quit().expect("a ready session can quit"),
                Event::Closed(_) => return false,
                Event::Outcome(_) | Event::Finishing => {}
            }
        }
        if !made_progress {
            return true;
        }
    }
}

fn message() -> OutgoingMessage {
    let address = |text| EmailAddress::parse(text).expect("the constant is an address");
    OutgoingMessage {
        mail_from: Some(address("a@rp.example.test")),
        rcpt_to: address("b@example.net"),
        body: Body::parse(vec![Bytes::from_static(b"Subject: x\r\n\r\n.one\r\n")]).expect("proper lines"),
        has_utf8_header: false,
    }
}
