//! Input of clients to our SMTP listeners, cut into pieces. The first byte of an input is the size of a piece.

use std::sync::Arc;

use postroad_model::{DomainName, is_crlf};
use postroad_smtp::HeloName;
use postroad_smtp::server::{AuthPolicy, BareLf, Event, ServerConfig, ServerSession};

use super::{Target, texts};

/// Maximum number of output bytes per input byte: enough for replies of a few lines. A server that
/// writes more could be misused as an amplifier.
const OUTPUT_PER_INPUT_MAX: usize = 600;

pub(super) const TARGET: Target = Target {
    name: "smtp-server",
    run,
    seeds,
    frames: &[
        "{}",
        "\u{1}EHLO x\r\n{}",
        "\u{8}EHLO x\r\nMAIL FROM:<a@example.org>{}\r\n",
        "\u{20}EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<{}>\r\n",
        "\u{40}EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n{}",
        "\u{3}EHLO x\r\nAUTH PLAIN {}\r\n",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "\u{10}EHLO client.example\r\nAUTH PLAIN AGtleQBzZWNyZXQ=\r\nMAIL FROM:<a@example.org> SIZE=100 BODY=8BITMIME SMTPUTF8\r\n\
         RCPT TO:<b@example.net> NOTIFY=NEVER\r\nDATA\r\nSubject: x\r\n\r\n..dot\r\n.\r\nQUIT\r\n",
        "\u{5}HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.net>\r\nBDAT 5\r\nhelloBDAT 4 LAST\r\n\r\n\r\nRSET\r\nNOOP\r\nVRFY a\r\n",
        "\u{7f}EHLO x\r\nSTARTTLS\r\nEHLO x\r\nAUTH LOGIN\r\na2V5\r\nc2VjcmV0\r\n",
        "\u{2}EHLO x\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<b@d.e>\r\nDATA\r\nx\n.\nMAIL FROM:<evil@b.c>\r\n.\r\n",
    ])
}

fn run(bytes: &[u8]) {
    for bare_lf in [BareLf::Refused, BareLf::Normalised] {
        run_with(bytes, bare_lf);
    }
}

fn run_with(bytes: &[u8], bare_lf: BareLf) {
    let Some((piece_bytes, rest)) = bytes.split_first() else { return };
    let host = DomainName::parse("mail.example.test").expect("the constant is a domain name");
    let config = ServerConfig {
        starttls: true,
        auth: AuthPolicy::Anywhere,
        bare_lf,
        ..ServerConfig::new(HeloName::from(host))
    };
    let mut session = ServerSession::new(Arc::new(config));
    let (mut output_bytes, mut message) = (0, Vec::new());
    for piece in rest.chunks(usize::from(*piece_bytes).max(1)) {
        session.feed(piece);
        while let Some(event) = session.next_event() {
            match event {
                Event::StartTls => session.tls_established(),
                Event::Data(piece) => message.extend_from_slice(&piece),
                Event::Dropped(_) | Event::Abandoned | Event::Message(_) => message.clear(),
                Event::EndOfData => {
                    assert!(is_crlf(&message), "a message with a bare CR or LF was accepted");
                    session.accept();
                }
                Event::Closed(_) => return,
                _ => session.accept(),
            }
        }
        output_bytes += session.take_output().len();
        assert!(
            output_bytes <= OUTPUT_PER_INPUT_MAX * (rest.len() + 10),
            "{output_bytes} for {}",
            rest.len()
        );
    }
}
