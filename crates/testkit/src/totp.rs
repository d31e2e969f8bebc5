//! An authenticator app: codes by RFC 6238, independent of the service's code.

use aws_lc_rs::hmac;

/// The code at this time for the seed `secret`, which is in base 32.
pub fn totp_code(secret: &str, seconds: i64) -> String {
    let (mut bits, mut value, mut seed) = (0_u32, 0_u64, Vec::new());
    for c in secret.bytes() {
        let digit = if c.is_ascii_uppercase() { c - b'A' } else { c - b'2' + 26 };
        value = ((value << 5) | u64::from(digit)) & 0xffff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            seed.push((value >> bits) as u8);
        }
    }
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &seed);
    let tag = hmac::sign(&key, &(seconds / 30).to_be_bytes());
    let at = usize::from(tag.as_ref()[19] & 15);
    let word = tag.as_ref()[at..at + 4].try_into().expect("an offset is at most 15");
    format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000)
}
