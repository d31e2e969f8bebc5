//! Composed messages can be parsed again.

use postroad_mail::{AttachmentView, view};
use proptest::prelude::*;

use crate::samples::{File, Sample, image};

/// Text with all the characters that have a meaning somewhere in a message.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-zA-Z0-9 .,;:<>@()\"'\\\\=?_-]{0,30}",
        2 => "\\PC{0,20}",
        1 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just(" ".repeat(40)),
        1 => Just("=?utf-8?".to_owned()),
        1 => Just("x".repeat(1_200)),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn single_line(text: &str) -> String {
    text.replace(char::is_control, " ").trim().to_owned()
}

fn files() -> impl Strategy<Value = Vec<File>> {
    let one = ("[a-zäöü \"\\\\;=%'*.]{0,60}", proptest::collection::vec(any::<u8>(), 0..300), any::<bool>())
        .prop_map(|(name, content, is_inline)| {
            let mut file = image(&format!("n{name}.bin"), "id@x");
            file.content = content;
            file.content_id = file.content_id.filter(|_| is_inline);
            file
        });
    proptest::collection::vec(one, 0..4)
}

#[test]
fn subjects_keep_their_outer_spaces_and_what_looks_encoded() {
    for (input, wanted) in [
        (" a ", " a "),
        ("=?utf-8?q?a", "=?utf-8?q?a"),
        // A text that the client encoded twice is decoded once.
        ("=?utf-8?b?PT91dGYtOD9xP3g/PQ==?=", "=?utf-8?q?x?="),
    ] {
        let seen = view(&Sample { subject: input.into(), ..Sample::plain("Hi") }.compose());
        assert!(
            seen.headers.contains(&("subject".into(), vec![wanted.into()])),
            "{input} {:?}",
            seen.headers
        );
    }
}

proptest! {
    #[test]
    fn the_view_of_a_composed_message_shows_its_input(
        plain in proptest::option::of(text()),
        html in proptest::option::of(text()),
        subject in text(),
        header in text(),
        files in files(),
    ) {
        // Avoid encoded words, because they are decoded on purpose.
        let subject = single_line(&subject).replace("=?", "=");
        let header = single_line(&header).replace("=?", "=");
        let sample = Sample {
            plain: plain.clone(),
            html: html.clone(),
            subject: subject.clone(),
            headers: vec![("X-Test".into(), header.clone())],
            files: files.clone(),
            ..Sample::plain("")
        };
        let bytes = sample.compose();
        prop_assert!(bytes.split(|b| *b == b'\n').all(|line| line.len() <= 999));
        let seen = view(&bytes);

        // A single part gets a last line break if it has none.
        let is_same = |seen: &Option<String>, input: &Option<String>| match (seen, input) {
            (Some(seen), Some(input)) => {
                let (seen, input) = (with_lf(seen), with_lf(input));
                seen == input || seen.strip_suffix('\n') == Some(&input)
            }
            (seen, input) => seen.is_none() == input.is_none(),
        };
        if html.is_some() || plain.is_some() {
            prop_assert!(is_same(&seen.plain_body, &plain), "{:?} {:?}", seen.plain_body, plain);
            prop_assert!(is_same(&seen.html_body, &html), "{:?} {:?}", seen.html_body, html);
        }
        let value = |name: &str| seen.headers.iter().find(|(n, _)| n == name).map(|(_, values)| values[0].as_str());
        prop_assert_eq!(value("subject"), Some(&*subject), "{}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(value("x-test"), Some(&*header), "{}", String::from_utf8_lossy(&bytes));

        let as_view = |file: &File| AttachmentView {
            filename: file.name.clone(),
            content_type: file.content_type.clone(),
            content_id: file.content_id.clone(),
            content: file.content.clone(),
        };
        let (inline, attached): (Vec<&File>, Vec<&File>) =
            files.iter().partition(|file| file.content_id.is_some() && html.is_some());
        let wanted: Vec<AttachmentView> = inline.into_iter().chain(attached).map(as_view).collect();
        prop_assert_eq!(&seen.attachments, &wanted, "{}", String::from_utf8_lossy(&bytes));
    }
}
