//! Commands and programs that send a first message with a new key. Keys are letters and digits, and domains have no quotes, so
//! nothing in them needs escaping.

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
    pub(crate) smtp: Option<&'a SmtpAccess>,
}

/// Shown instead of a key, which is shown only once.
pub(crate) const PLACEHOLDER_KEY: &str = "YOUR_API_KEY";
/// Shown instead of the sender's domain while none is verified.
pub(crate) const PLACEHOLDER_DOMAIN: &str = "your-domain.example";

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
pub(crate) fn first_command(base_url: &str, domain: Option<&str>) -> String {
    let domain = domain.unwrap_or(PLACEHOLDER_DOMAIN);
    fill(CURL, &SnippetFacts { base_url, api_key: PLACEHOLDER_KEY, api_secret: "", domain, smtp: None })
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
        .replace("{smtp_host}", host)
        .replace("{smtp_port}", &port)
}
