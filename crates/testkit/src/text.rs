//! Sample content: text that compresses like mail, and random bytes.

/// Text that compresses like mail. `line_end` is CRLF on the wire and LF elsewhere.
pub fn mail_like_text(bytes: usize, line_end: &str) -> String {
    let words = ["order", "shipped", "total", "thank", "you", "for", "your", "purchase", "invoice", "number"];
    let mut text = String::with_capacity(bytes + 16);
    for n in 0_usize.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(words[n * 7 % 10]);
        text.push(' ');
        text.push_str(&(n * 7_919 % 1_000).to_string());
        text.push_str(if n % 8 == 7 { line_end } else { " " });
    }
    text.truncate(bytes);
    text
}

/// Incompressible bytes, the same each time.
pub fn random_bytes(count: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    (0..count.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(count).collect()
}

/// At least `bytes` bytes of non-ASCII text that hardly compresses, in lines of 60 characters.
pub fn random_text(bytes: usize, line_end: &str) -> String {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        // Characters of three bytes, without surrogates.
        text.extend((0..60).map(|_| char::from_u32(0x800 + (random.next() % 0xC000) as u32).unwrap_or('é')));
        text.push_str(line_end);
    }
    text
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
