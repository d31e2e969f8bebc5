//! No text in any field can add a header or a part, even if the caller checked nothing.

use postroad_model::Mailbox;
use proptest::prelude::*;

use crate::samples::{File, Sample, mailbox};

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\0".to_owned()),
        Just("\u{85}\u{2028}".to_owned()),
        Just("Bcc: evil@evil.test".to_owned()),
        Just("\r\nBcc: evil@evil.test\r\n\r\n".to_owned()),
        Just("=?utf-8?q?=0D=0ABcc:_evil@evil.test?=".to_owned()),
        Just("=?utf-8?b?DQpCY2M6IGV2aWxAZXZpbC50ZXN0?=".to_owned()),
        Just("\"".to_owned()),
        Just("; x=y".to_owned()),
        Just("x".repeat(1_500)),
        "\\PC{0,10}",
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// Names of the header fields of the message and of its attachment, in order.
fn field_names(message: &str) -> Vec<String> {
    let body = message.find("\r\n--=_").unwrap();
    let head = |text: &str| -> Vec<String> {
        let lines = text.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        lines.map(|line| line.split(':').next().unwrap().to_owned()).collect()
    };
    let attachment = message[body..].split("\r\n--=_").nth(2).unwrap();
    let attachment = attachment.split_once("\r\n").unwrap().1.split("\r\n\r\n").next().unwrap();
    [head(message.split("\r\n\r\n").next().unwrap()), head(attachment)].concat()
}

proptest! {
    #[test]
    fn every_message_has_exactly_the_headers_it_should(
        subject in hostile_text(),
        name in hostile_text(),
        date in hostile_text(),
        message_id in hostile_text(),
        header in (hostile_text(), hostile_text()),
        file_name in hostile_text(),
        content_type in hostile_text(),
        content_id in hostile_text(),
    ) {
        let somebody = Mailbox { name: Some(name), ..mailbox("a@example.com") };
        let sample = Sample {
            from: somebody.clone(),
            sender: Some(Mailbox { address: mailbox("b@example.com").address, ..somebody.clone() }),
            reply_to: vec![somebody.clone(), somebody.clone()],
            to: vec![somebody.clone()],
            cc: vec![somebody],
            subject,
            date,
            message_id,
            headers: vec![("X-Good".into(), header.1.clone()), header],
            files: vec![File {
                name: file_name,
                content_type: format!("application/x{content_type}"),
                content: vec![1, 2, 3],
                content_id: Some(format!("c{content_id}")),
            }],
            ..Sample::plain("Hi")
        };
        let message = String::from_utf8(sample.compose()).unwrap();
        prop_assert_eq!(message.matches('\n').count(), message.matches("\r\n").count());
        prop_assert_eq!(message.matches('\r').count(), message.matches("\r\n").count());
        prop_assert!(message.split("\r\n").all(|line| line.len() <= 998), "{}", message);
        prop_assert!(!message.contains('\0'));
        // The caller's header with a random name: written if the name is valid, else left out.
        let names = field_names(&message);
        let wanted = [
            "Date", "From", "Sender", "To", "Cc", "Reply-To", "Subject", "Message-ID", "X-Good", "MIME-Version",
            "Content-Type", "Content-Type", "Content-Disposition", "Content-ID", "Content-Transfer-Encoding",
        ];
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        if sample.headers[1].0.bytes().all(|b| b.is_ascii_graphic() && b != b':')
            && (1..=76).contains(&sample.headers[1].0.len())
        {
            prop_assert_eq!(names.remove(9), sample.headers[1].0.as_str());
        }
        prop_assert_eq!(names, wanted, "{}", message);
    }
}
