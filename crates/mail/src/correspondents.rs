//! Sender, recipients and reply addresses of a message by its headers, for Mailpit's API.
//!
//! Accepts any bytes, and parses them as mail programs do. Checks of who may send use the strict parser in
//! `address_list` instead.

use mail_parser::parsers::MessageStream;
use mail_parser::{Address, HeaderValue};

use crate::header_block::HeaderBlock;

/// Longer headers are cut.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of addresses of one header that are read.
const ADDRESSES_MAX: usize = 1_000;

/// An address with the name of its owner; the name may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedAddress {
    pub name: String,
    pub address: String,
}

/// The addresses in a message's headers; of a repeated header, the addresses of the first instance that has any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correspondents {
    pub from: Option<NamedAddress>,
    pub to: Vec<NamedAddress>,
    pub cc: Vec<NamedAddress>,
    pub reply_to: Vec<NamedAddress>,
}

pub fn correspondents(bytes: &[u8]) -> Correspondents {
    let mut found = Correspondents::default();
    for field in HeaderBlock::new(bytes) {
        if field.is("From") && found.from.is_none() {
            found.from = parse(field.value).into_iter().next();
        } else if field.is("To") && found.to.is_empty() {
            found.to = parse(field.value);
        } else if field.is("Cc") && found.cc.is_empty() {
            found.cc = parse(field.value);
        } else if field.is("Reply-To") && found.reply_to.is_empty() {
            found.reply_to = parse(field.value);
        }
    }
    found
}

fn parse(value: &[u8]) -> Vec<NamedAddress> {
    let mut line = value[..value.len().min(HEADER_BYTES_MAX)].to_vec();
    // The parser requires a line break at the end of the header.
    line.push(b'\n');
    let HeaderValue::Address(list) = MessageStream::new(&line).parse_address() else { return Vec::new() };
    let addresses = match list {
        Address::List(addresses) => addresses,
        Address::Group(groups) => groups.into_iter().flat_map(|group| group.addresses).collect(),
    };
    let named = addresses.into_iter().filter_map(|entry| {
        Some(NamedAddress {
            name: entry.name.unwrap_or_default().into_owned(),
            address: entry.address?.into_owned(),
        })
    });
    named.take(ADDRESSES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_groups_expanded() {
        let message = b"From: =?utf-8?q?J=C3=BCrgen?= <j@example.com>\r\nTo: a@example.net,\r\n \"Doe, Jane\" <b@example.net>\r\n\
            Cc: friends: c@example.net, d@example.net;\r\nReply-To: undisclosed-recipients:;\r\nTo: late@example.net\r\n\r\n";
        let named = |name: &str, address: &str| NamedAddress { name: name.into(), address: address.into() };
        let found = correspondents(message);
        assert_eq!(found.from, Some(named("Jürgen", "j@example.com")));
        assert_eq!(found.to, [named("", "a@example.net"), named("Doe, Jane", "b@example.net")]);
        assert_eq!(found.cc, [named("", "c@example.net"), named("", "d@example.net")]);
        assert_eq!((found.reply_to, correspondents(b"")), (Vec::new(), Correspondents::default()));
    }
}
