//! Address lists, mailboxes, addresses and domain names.

use postroad_model::{DomainName, EmailAddress, Mailbox, split_address_list};

use super::{Target, texts};

pub(super) const TARGET: Target = Target {
    name: "addresses",
    run,
    seeds: || {
        texts(&[
            "a@example.com, \"Doe, Jane\" <jane@example.com>, Bob <bob@[192.0.2.1]>",
            "=?utf-8?q?J=C3=BCrgen?= <juergen@bücher.example>",
            "undisclosed-recipients:;, friends: a@b.c, d@e.f;",
            "\"a\\\"b\"@example.com (comment (nested)) , <@route.example:x@example.com>",
            "用户@例子.广告",
        ])
    },
    frames: &["{}", "\"{}\" <a@b.c>", "a@{}", "{}@example.com", "<{}>"],
};

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for entry in split_address_list(&text) {
        let _ = Mailbox::parse(entry);
    }
    if let Ok(address) = EmailAddress::parse(&text) {
        // Parsing is idempotent.
        assert_eq!(EmailAddress::parse(address.as_str()).as_ref(), Ok(&address));
        assert!(!address.as_str().contains(['\r', '\n', '\0']));
    }
    if let Ok(domain) = DomainName::parse(&text) {
        assert_eq!(DomainName::parse(domain.as_str()).as_ref(), Ok(&domain));
    }
}
