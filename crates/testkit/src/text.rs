//! What is sent: text that compresses like mail does.

/// `line_end` is CRLF on the wire and LF elsewhere.
pub fn like_mail(bytes: usize, line_end: &str) -> String {
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
