//! Commands and programs that send a first message with a new key. Keys are letters and digits, domains have no quotes,
//! and recipients are plain, so no value that is filled in needs escaping.

use crate::state::SmtpAccess;

pub(crate) struct Snippet {
    pub(crate) name: &'static str,
    pub(crate) code: String,
}

pub(crate) struct SnippetFacts<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) api_key: &'a str,
    pub(crate) api_secret: &'a str,
    pub(crate) domain: &'a str,
    /// Address of the person who reads the page.
    pub(crate) to: &'a str,
    pub(crate) smtp: Option<&'a SmtpAccess>,
}

/// Shown where the key is not known: keys are shown only when they are created.
pub(crate) const PLACEHOLDER_KEY: &str = "YOUR_API_KEY";
/// Shown instead of the sender's domain while none is verified.
pub(crate) const PLACEHOLDER_DOMAIN: &str = "your-domain.example";

/// Recipient for people whose address has characters that mean something in a shell or a program.
const PLACEHOLDER_RECIPIENT: &str = "you@example.com";

const CURL: &str = include_str!("snippets/curl.txt");
const PYTHON: &str = include_str!("snippets/python.txt");
const NODE: &str = include_str!("snippets/node.txt");
const PHP: &str = include_str!("snippets/php.txt");
const RUBY: &str = include_str!("snippets/ruby.txt");
const GO: &str = include_str!("snippets/go.txt");
const RUST: &str = include_str!("snippets/rust.txt");
const SWAKS: &str = include_str!("snippets/swaks.txt");

pub(crate) fn snippets(facts: &SnippetFacts<'_>) -> Vec<Snippet> {
    let mut all = vec![
        ("curl", CURL),
        ("Python", PYTHON),
        ("Node", NODE),
        ("PHP", PHP),
        ("Ruby", RUBY),
        ("Go", GO),
        ("Rust", RUST),
    ];
    if facts.smtp.is_some_and(|smtp| smtp.starttls_port.is_some()) {
        all.push(("SMTP (swaks)", SWAKS));
    }
    all.into_iter().map(|(name, text)| Snippet { name, code: fill(text, facts) }).collect()
}

/// Command that sends a first message, with a placeholder for the key.
pub(crate) fn first_command(base_url: &str, to: &str, domain: Option<&str>) -> String {
    let domain = domain.unwrap_or(PLACEHOLDER_DOMAIN);
    fill(CURL, &SnippetFacts { base_url, api_key: PLACEHOLDER_KEY, api_secret: "", domain, to, smtp: None })
}

/// Bodies of the calls that empty lists show.
const BODIES: [(&str, &str); 5] = [
    ("domains/create", r#"{"name": "your-domain.example"}"#),
    (
        "send/message",
        r#"{"to": ["ann@example.com"], "from": "hello@your-domain.example", "subject": "First message", "plain_body": "It works."}"#,
    ),
    ("suppressions/add", r#"{"address": "ann@example.com", "details": "asked on the phone"}"#),
    (
        "templates/create",
        r#"{"alias": "welcome", "name": "Welcome", "subject": "Hello {{ name }}", "plain_body": "Welcome, {{ name }}."}"#,
    ),
    ("webhooks/create", r#"{"url": "https://example.com/events"}"#),
];

/// Command that calls an endpoint, with a placeholder for the key.
pub(crate) fn call_command(base_url: &str, endpoint: &str) -> String {
    let body = BODIES.iter().find(|(known, _)| *known == endpoint).map_or("{}", |(_, body)| body);
    format!(
        "curl {base_url}/api/v1/{endpoint} \\\n  -H 'X-Server-API-Key: {PLACEHOLDER_KEY}' \\\n  \
         -H 'Content-Type: application/json' \\\n  -d '{body}'"
    )
}

fn fill(text: &str, facts: &SnippetFacts<'_>) -> String {
    let (host, port) = match facts.smtp {
        Some(smtp) => (smtp.host.as_str(), smtp.starttls_port.unwrap_or_default().to_string()),
        None => ("", String::new()),
    };
    text.trim_end()
        .replace("{url}", facts.base_url)
        .replace("{key}", facts.api_key)
        .replace("{secret}", facts.api_secret)
        .replace("{domain}", facts.domain)
        .replace("{to}", recipient(facts.to))
        .replace("{smtp_host}", host)
        .replace("{smtp_port}", &port)
}

fn recipient(address: &str) -> &str {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-' | b'@');
    if address.bytes().all(is_plain) && !address.starts_with('-') { address } else { PLACEHOLDER_RECIPIENT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_put_into_programs() {
        let command = |to| first_command("https://mail.example.com", to, Some("shop.test"));
        assert!(command("ann.lee+news@shop.test").contains("[\"ann.lee+news@shop.test\"]"));
        for hostile in
            ["o'brien@x.test", "$(id)@x.test", "`id`@x.test", "\"a b\"@x.test", "a\\@x.test", "-a@x.test"]
        {
            assert!(command(hostile).contains("[\"you@example.com\"]"), "{hostile}");
        }
    }
}
