//! Codes of authenticator apps (RFC 6238), with the parameters that all apps support: SHA-1, six digits, steps of
//! thirty seconds.

use aws_lc_rs::hmac;
use postroad_model::Timestamp;
use subtle::ConstantTimeEq;

pub(super) const SEED_BYTES: usize = 20;
const STEP_SECONDS: i64 = 30;
/// Number of steps by which the clock of the app may be off, either way.
const DRIFT_STEPS_MAX: i64 = 1;
const BASE32_ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The time step that this code belongs to: the current step, the previous or the next; `None` if the code is wrong.
pub(super) fn find_step(seed: &[u8], code: &str, now: Timestamp) -> Option<i64> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let current = now.as_micros() / 1_000_000 / STEP_SECONDS;
    let is_match = |step: &i64| bool::from(code_of(seed, *step).as_bytes().ct_eq(code.as_bytes()));
    (current - DRIFT_STEPS_MAX..=current + DRIFT_STEPS_MAX).find(is_match)
}

/// Code of a time step (RFC 4226 5.3).
pub(super) fn code_of(seed: &[u8], step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, seed);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let offset = usize::from(bytes[19] & 0x0f);
    let word: [u8; 4] = bytes[offset..offset + 4].try_into().expect("an offset is at most 15");
    format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000)
}

/// Base32 (RFC 4648) without padding, the form in which apps accept typed seeds.
pub(super) fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut group = [0; 8];
        group[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(group);
        for index in 0..(chunk.len() * 8).div_ceil(5) {
            text.push(char::from(BASE32_ALPHABET[(bits >> (35 - 5 * index)) as usize & 31]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, the last six of its eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let seed = b"12345678901234567890";
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code_of(seed, seconds / 30), code);
        }
    }

    #[test]
    fn the_clock_of_the_app_may_be_one_step_off() {
        let seed = b"12345678901234567890";
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (seconds, found) in [(29, Some(1)), (59, Some(1)), (89, Some(1)), (90, None), (0, Some(1))] {
            assert_eq!(find_step(seed, "287 082", at(seconds)), found, "{seconds}");
        }
        assert_eq!(find_step(seed, "", at(59)), None);
    }

    /// RFC 4648, section 10.
    #[test]
    fn seeds_are_written_in_base32() {
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
    }
}
