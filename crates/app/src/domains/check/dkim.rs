//! The DKIM key of a selector, compared bit by bit (RFC 6376 3.6.1).

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use postroad_mail::dkim_txt;
use postroad_model::DomainName;

use super::absence::{is_wildcard, judge_missing, judge_unanswered, wildcard_hint};
use super::answers::{Answer, AnswersView, NotAskedYet};
use super::expected::{ExpectedRecord, ExpectedRecords, Rule};
use super::record::{RecordCheck, RecordStatus, RecordType};
use super::text::display_texts;

/// Length of a 2048-bit RSA public key in X.509 form: `RSA_2048_SPKI_START_BYTES` of header, then the bare PKCS #1
/// form.
const RSA_2048_SPKI_BYTES: usize = 294;
const RSA_1024_SPKI_BYTES: usize = 162;
const RSA_2048_SPKI_START_BYTES: usize = 24;

/// Accepts base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn judge(
    view: &AnswersView<'_>,
    expected: &ExpectedRecords,
    record: &ExpectedRecord,
    domain: &DomainName,
    public_spki_der: &[u8],
) -> Result<RecordCheck, NotAskedYet> {
    let answer = view.ask(&record.name, RecordType::Txt)?;
    if let Answer::Failed(reason) = answer {
        return judge_unanswered(view, record, domain, reason);
    }
    let wanted = KeyRecord::parse(dkim_txt(public_spki_der).as_bytes()).expect("our own record has a key");
    let found = display_texts(answer.texts());
    let keys: Vec<KeyRecord> = answer.texts().filter_map(KeyRecord::parse).collect();
    let mismatch = |hint: String| Ok(record.with_verdict(RecordStatus::Mismatch, found.clone(), Some(hint)));
    let (name, value) = (&record.name, &record.value);
    match keys.as_slice() {
        [] if answer.is_absent() => {
            let is_ours = |answer: &Answer| {
                answer.texts().filter_map(KeyRecord::parse).any(|key| key.key_bytes == wanted.key_bytes)
            };
            judge_missing(view, record, domain, found, is_ours)
        }
        [] if is_wildcard(view, domain, RecordType::Txt, answer)? => {
            Ok(record.with_verdict(RecordStatus::Missing, found, Some(wildcard_hint(record, domain))))
        }
        [] => mismatch(format!("The TXT record at {name} holds no DKIM key. Replace it by: {value}")),
        [key] => match key.find_fault(&wanted) {
            None => {
                let note = key.note().or_else(|| short_key_note(domain, public_spki_der));
                Ok(record.with_verdict(RecordStatus::Verified, found, note))
            }
            Some(Fault::OtherKey) => mismatch(match selector_with(expected, domain, &key.key_bytes) {
                Some(other) => format!(
                    "This is the key of the selector {other}. Each selector has its own; replace it by: {value}"
                ),
                None => format!(
                    "This is another key, perhaps that of another domain or of an earlier set-up. Replace it by: {value}"
                ),
            }),
            Some(Fault::Text(text)) => mismatch(format!("{text} Replace the record by: {value}")),
        },
        several => {
            let hint = format!(
                "There are {} DKIM keys at {name}; receivers take any of them. Keep only this one: {value}",
                several.len()
            );
            Ok(record.with_verdict(RecordStatus::Multiple, found, Some(hint)))
        }
    }
}

/// A note about a valid but short key. Ed25519 keys are shorter still, but strong.
fn short_key_note(domain: &DomainName, public_spki_der: &[u8]) -> Option<String> {
    let is_short = (RSA_1024_SPKI_BYTES..RSA_2048_SPKI_BYTES).contains(&public_spki_der.len());
    is_short.then(|| {
        format!(
            "The key has less than 2048 bits, which receivers begin to refuse. Rotate it: domains/rotate_dkim, or \
             `postroad admin domain rotate-dkim {domain}`."
        )
    })
}

/// The other selector of this domain whose expected record has this key.
fn selector_with<'a>(
    expected: &'a ExpectedRecords,
    domain: &DomainName,
    key_bytes: &[u8],
) -> Option<&'a str> {
    expected.records.iter().find_map(|other| match &other.rule {
        Rule::DkimKey { public_spki_der, .. } => {
            let key = KeyRecord::parse(dkim_txt(public_spki_der).as_bytes())?;
            let selector = other.name.strip_suffix(domain.as_str())?.strip_suffix("._domainkey.")?;
            (key.key_bytes == key_bytes).then_some(selector)
        }
        _ => None,
    })
}

/// The tags of a key record that determine whether receivers can verify signatures with it.
#[derive(Debug)]
struct KeyRecord {
    /// Public key of `p=`; empty if the key is revoked or is not base64.
    key_bytes: Vec<u8>,
    is_base64: bool,
    has_quotes: bool,
    is_version_wrong: bool,
    key_type: String,
    hashes: Option<String>,
    services: Option<String>,
    flags: String,
}

enum Fault {
    OtherKey,
    /// Any other fault, as a sentence.
    Text(String),
}

impl KeyRecord {
    /// Parses a key record; `None` for a text without `p=`. Accepts more than receivers do, so that the hint can say
    /// what is wrong.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let has_quotes = text.contains(['"', '\\']);
        let text: String = text.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
        let tags: Vec<(&str, String)> = text
            .split(';')
            .filter_map(|tag| tag.split_once('='))
            .map(|(name, value)| (name.trim(), value.split_whitespace().collect()))
            .collect();
        let tag = |name: &str| tags.iter().find(|(tag, _)| *tag == name).map(|(_, value)| value.clone());
        let key = tag("p")?;
        let key_bytes = BASE64.decode(&key);
        Some(Self {
            is_base64: key_bytes.is_ok(),
            key_bytes: key_bytes.unwrap_or_default(),
            has_quotes,
            // RFC 6376 3.6.1: the version may be absent; if present, it comes first.
            is_version_wrong: tags
                .iter()
                .enumerate()
                .any(|(index, (name, value))| *name == "v" && (index > 0 || value != "DKIM1")),
            key_type: tag("k").unwrap_or_else(|| "rsa".to_owned()),
            hashes: tag("h"),
            services: tag("s"),
            flags: tag("t").unwrap_or_default(),
        })
    }

    /// Why receivers could not use this record to verify a signature by the key of `wanted`.
    fn find_fault(&self, wanted: &Self) -> Option<Fault> {
        let text = |text: &str| Some(Fault::Text(text.to_owned()));
        let allows = |list: &Option<String>, words: &[&str]| {
            list.as_ref().is_none_or(|list| list.split(':').any(|word| words.contains(&word)))
        };
        if self.key_bytes.is_empty() && self.is_base64 {
            return text("The key is revoked: p= is empty.");
        }
        if !self.is_base64 {
            return text("The key cannot be read: p= is not base64, or part of it is missing.");
        }
        if self.key_type != wanted.key_type {
            return Some(Fault::Text(format!("The key type is wrong: it has to be k={}.", wanted.key_type)));
        }
        if self.key_bytes != wanted.key_bytes {
            let is_cut_off = wanted.key_bytes.starts_with(&self.key_bytes);
            let is_pkcs1 = wanted.key_bytes.len() == RSA_2048_SPKI_BYTES
                && self.key_bytes == wanted.key_bytes[RSA_2048_SPKI_START_BYTES..];
            return match (is_cut_off, is_pkcs1) {
                (true, _) => text("The key is cut off: its end is missing."),
                (_, true) => text("The key is right, but in a form that not all receivers read (PKCS #1)."),
                _ => Some(Fault::OtherKey),
            };
        }
        if self.has_quotes {
            return text(
                "The key is right, but the value has quotation marks or backslashes in it. Enter it without them.",
            );
        }
        if self.is_version_wrong {
            return text("The record has to begin with v=DKIM1.");
        }
        if !allows(&self.hashes, &["sha256"]) {
            return text("The tag h= has to allow sha256; leave it out.");
        }
        if !allows(&self.services, &["*", "email"]) {
            return text("The tag s= has to allow email; leave it out.");
        }
        None
    }

    /// A note about a valid record.
    fn note(&self) -> Option<String> {
        let is_testing = self.flags.split(':').any(|flag| flag == "y");
        is_testing.then(|| {
            "The tag t=y says that DKIM is only being tested: receivers may ignore signatures. Remove it."
                .to_owned()
        })
    }
}
