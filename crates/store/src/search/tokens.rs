//! Tokens of a message: hashes of all substrings of three characters of its texts, of whole values such as tags, and of
//! six digits in a row. Six digits are hashed because many messages share three digits of their order numbers, but few
//! share six. These tokens of the search index are not the tokens that identify messages (`TokenKind::MessageToken`).

use super::filter::lower;
use super::messages::SearchRow;
use crate::Result;

/// Kinds of tokens. The numbers are part of the stored hashes: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    To = 1,
    From = 2,
    Subject = 3,
    Tag = 4,
    Domain = 5,
    Template = 6,
    Metadata = 7,
    Attachment = 8,
    MessageId = 9,
    MessageToken = 10,
    ToDigits = 11,
    SubjectDigits = 12,
}

/// Number of buckets into which message tokens, and likewise Message-IDs, are hashed; all values in a bucket have the
/// same token. These values are unique to a message or send, so a token for each of them would double the index.
const IDENTIFIER_BUCKETS: u64 = 1_024;

/// Number of buckets into which sequences of digits are hashed: a token for each sequence would also enlarge the index.
const DIGIT_BUCKETS: u64 = 4_096;
/// Length of a sequence of digits.
const DIGITS_PER_TOKEN: usize = 6;

/// Tokens of all substrings of three characters, of a text in lower case.
pub(super) fn of_text(kind: TokenKind, lower_text: &str) -> impl Iterator<Item = i64> {
    let mut letters = lower_text.chars();
    let mut window = (letters.next(), letters.next());
    letters.filter_map(move |third| {
        let (Some(first), Some(second)) = window else { return None };
        window = (Some(second), Some(third));
        let mut hash = Hash::new(kind);
        for letter in [first, second, third] {
            hash.add(&u32::from(letter).to_le_bytes());
        }
        Some(hash.finish())
    })
}

/// Tokens of all sequences of six digits in a text; none for kinds of texts without such tokens.
pub(super) fn of_digits(text_kind: TokenKind, text: &str) -> impl Iterator<Item = i64> {
    let kind = match text_kind {
        TokenKind::To => Some(TokenKind::ToDigits),
        TokenKind::Subject => Some(TokenKind::SubjectDigits),
        _ => None,
    };
    let sequences =
        text.as_bytes().windows(DIGITS_PER_TOKEN).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    kind.into_iter().flat_map(move |kind| {
        sequences.clone().map(move |digits| {
            let mut hash = Hash::new(kind);
            hash.add(digits);
            bucket_token(kind, hash.finish().cast_unsigned() % DIGIT_BUCKETS)
        })
    })
}

/// Token of all values of a kind in one bucket.
fn bucket_token(kind: TokenKind, bucket: u64) -> i64 {
    let mut hash = Hash::new(kind);
    hash.add(&bucket.to_le_bytes());
    hash.finish()
}

/// Token of a whole value.
pub(super) fn of_value(kind: TokenKind, value: &str) -> i64 {
    let mut hash = Hash::new(kind);
    hash.add(value.as_bytes());
    match kind {
        TokenKind::MessageId | TokenKind::MessageToken => {
            bucket_token(kind, hash.finish().cast_unsigned() % IDENTIFIER_BUCKETS)
        }
        _ => hash.finish(),
    }
}

pub(super) fn of_metadata(key: &str, value: &str) -> i64 {
    let mut hash = Hash::new(TokenKind::Metadata);
    hash.add(&(key.len() as u64).to_le_bytes());
    hash.add(key.as_bytes());
    hash.add(value.as_bytes());
    hash.finish()
}

pub(super) fn of_tag(tag: &str) -> i64 {
    of_value(TokenKind::Tag, tag)
}

pub(super) fn of_attachment() -> i64 {
    Hash::new(TokenKind::Attachment).finish()
}

/// All tokens of a message, each once.
pub(super) fn of_message(row: &SearchRow) -> Result<Vec<i64>> {
    let mut tokens = of_recipient(&row.rcpt_to);
    tokens.extend(of_text(TokenKind::From, &lower(&row.mail_from)));
    tokens.extend(of_text(TokenKind::Subject, &lower(&row.subject)));
    tokens.extend(of_digits(TokenKind::Subject, &row.subject));
    tokens.extend(row.tag.as_deref().map(of_tag));
    tokens.push(of_value(TokenKind::Domain, &row.from_domain.to_ascii_lowercase()));
    let options = row.options()?;
    tokens.extend(options.template.map(|template| of_value(TokenKind::Template, &template)));
    tokens.extend(options.attachment.then(of_attachment));
    tokens.extend(row.metadata()?.iter().map(|(key, value)| of_metadata(key, value)));
    tokens.push(of_value(TokenKind::MessageId, &row.message_id));
    tokens.push(of_value(TokenKind::MessageToken, &row.token));
    tokens.sort_unstable();
    tokens.dedup();
    Ok(tokens)
}

/// Tokens that reveal something about the recipient; those of the address only with `with_address`.
pub(super) fn of_person(row: &SearchRow, with_address: bool) -> Result<Vec<i64>> {
    let mut tokens = if with_address { of_recipient(&row.rcpt_to) } else { Vec::new() };
    tokens.extend(of_text(TokenKind::Subject, &lower(&row.subject)));
    tokens.extend(of_digits(TokenKind::Subject, &row.subject));
    tokens.extend(row.metadata()?.iter().map(|(key, value)| of_metadata(key, value)));
    tokens.sort_unstable();
    tokens.dedup();
    Ok(tokens)
}

fn of_recipient(rcpt_to: &str) -> Vec<i64> {
    of_text(TokenKind::To, &lower(rcpt_to)).chain(of_digits(TokenKind::To, rcpt_to)).collect()
}

/// FNV-1a of 64 bits, mixed at the end. Hashes are stored, so the algorithm never changes.
struct Hash(u64);

impl Hash {
    fn new(kind: TokenKind) -> Self {
        let mut hash = Self(0xcbf2_9ce4_8422_2325);
        hash.add(&[kind as u8]);
        hash
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> i64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_token_for_every_substring_of_three_letters() {
        assert_eq!(of_text(TokenKind::To, "abcde").count(), 3);
        assert_eq!(of_text(TokenKind::To, "ab").count(), 0);
        assert_eq!(of_text(TokenKind::To, "äöü").count(), 1);
        let whole: Vec<i64> = of_text(TokenKind::Subject, "order 12").collect();
        assert!(of_text(TokenKind::Subject, "der 1").all(|token| whole.contains(&token)));
        assert!(of_text(TokenKind::To, "order").all(|token| !whole.contains(&token)), "kinds differ");
    }

    #[test]
    fn sequences_of_six_digits_have_tokens_of_their_own() {
        assert_eq!(of_digits(TokenKind::Subject, "order 12345 of 2026").count(), 0);
        let whole: Vec<i64> = of_digits(TokenKind::Subject, "Order 00123456-7890123").collect();
        assert_eq!(whole.len(), 3 + 2);
        assert!(of_digits(TokenKind::Subject, "0123456").all(|token| whole.contains(&token)));
        assert!(of_digits(TokenKind::To, "0123456").all(|token| !whole.contains(&token)), "kinds differ");
        assert_eq!(of_digits(TokenKind::From, "0123456").count(), 0);
    }

    #[test]
    fn hashes_differ_by_kind_and_value_and_never_change() {
        assert_eq!(of_value(TokenKind::Tag, "welcome"), of_value(TokenKind::Tag, "welcome"));
        assert_ne!(of_value(TokenKind::Tag, "welcome"), of_value(TokenKind::Template, "welcome"));
        assert_ne!(of_metadata("a", "bc"), of_metadata("ab", "c"));
        assert_eq!(of_attachment(), STORED_ATTACHMENT);
    }

    const STORED_ATTACHMENT: i64 = 4_028_106_334_409_929_262;
}
