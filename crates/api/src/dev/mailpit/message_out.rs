//! One message in Mailpit's JSON, with its headers, files and bodies.

use std::fmt::Write as _;

use aws_lc_rs::digest::{self, Algorithm};
use postroad_app::AttachmentView;
use postroad_model::Timestamp;
use serde_json::{Map, Value, json};

use super::group::Group;
use super::list_out::{address, addresses};
use super::parsed_message::ParsedMessage;

pub(super) fn message_json(group: &Group) -> Value {
    let parsed = ParsedMessage::new(group);
    let (first, view, people) = (group.first(), parsed.view(), parsed.correspondents());
    let date = parsed.header("date").and_then(Timestamp::parse_rfc2822).unwrap_or(first.received_at);
    let files = |is_inline: bool| -> Value {
        let numbered = view.attachments.iter().zip(1..);
        let wanted = numbered.filter(|(file, _)| file.content_id.is_some() == is_inline);
        wanted.map(|(file, number)| file_json(file, number)).collect()
    };
    json!({
        "ID": group.id().to_string(),
        "MessageID": first.message_id,
        "From": people.from.as_ref().map(address),
        "To": addresses(&people.to),
        "Cc": addresses(&people.cc),
        "Bcc": addresses(&parsed.bcc()),
        "ReplyTo": addresses(&people.reply_to),
        "ReturnPath": first.mail_from,
        "Subject": first.subject,
        "ListUnsubscribe": list_unsubscribe(&parsed),
        "Date": date.to_rfc3339_millis(),
        "Tags": [],
        "Username": "",
        "Text": view.plain_body.as_deref().unwrap_or_default(),
        "HTML": view.html_body.as_deref().unwrap_or_default(),
        "Size": first.raw.len(),
        "Inline": files(true),
        "Attachments": files(false),
    })
}

fn file_json(file: &AttachmentView, number: usize) -> Value {
    json!({
        "PartID": number.to_string(),
        "FileName": file.filename,
        "ContentType": file.content_type,
        "ContentID": file.content_id.as_deref().unwrap_or_default(),
        "Size": file.content.len(),
        "Checksums": {
            "MD5": "",
            "SHA1": hex_digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &file.content),
            "SHA256": hex_digest(&digest::SHA256, &file.content),
        },
    })
}

fn hex_digest(algorithm: &'static Algorithm, content: &[u8]) -> String {
    let mut hex = String::new();
    for byte in digest::digest(algorithm, content).as_ref() {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
    }
    hex
}

/// RFC 2369 section 2: the header has URLs in angle brackets.
fn list_unsubscribe(parsed: &ParsedMessage<'_>) -> Value {
    let header = parsed.header("list-unsubscribe").unwrap_or_default();
    let links: Vec<&str> =
        header.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0.trim())).collect();
    json!({
        "Header": header,
        "Links": links,
        "Errors": "",
        "HeaderPost": parsed.header("list-unsubscribe-post").unwrap_or_default(),
    })
}

/// Header values by name; names are capitalised as in `Message-Id`.
pub(super) fn headers(parsed: &ParsedMessage<'_>) -> Value {
    let named = parsed.view().headers.iter().map(|(name, values)| (canonical(name), json!(values)));
    Value::Object(named.collect::<Map<String, Value>>())
}

fn canonical(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(capitalised).collect::<Vec<_>>().join("-")
}

/// Content of a file by its `PartID`.
pub(super) fn file_content(parsed: &ParsedMessage<'_>, part_id: &str) -> Option<Vec<u8>> {
    let number: usize = part_id.parse().ok()?;
    Some(parsed.view().attachments.get(number.checked_sub(1)?)?.content.clone())
}

pub(super) fn body(parsed: &ParsedMessage<'_>, is_html: bool) -> String {
    let view = parsed.view();
    let body = if is_html { &view.html_body } else { &view.plain_body };
    body.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_are_written_as_mailpit_does() {
        assert_eq!(canonical("message-id"), "Message-Id");
        assert_eq!(canonical("x-a--b"), "X-A--B");
        assert_eq!(canonical("dkim-signature"), "Dkim-Signature");
    }
}
