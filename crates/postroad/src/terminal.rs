//! Output of the command line: answers on standard output, warnings and errors on standard error.
//!
//! Much of the output comes from outside (names in reports, other hosts' replies, addresses). Characters that
//! control a terminal or reorder its text are therefore printed as escapes such as `\u001b`. JSON has the same
//! escapes, so text and JSON go through one function.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::json;

/// Prints an answer. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", escape(text));
}

/// Prints an answer to a terminal with the style that `style_of` gives each line, as an SGR code.
pub(crate) fn print_styled(text: &str, style_of: impl Fn(&str) -> Option<&'static str>) {
    let mut out = std::io::stdout().lock();
    for line in text.trim_end().lines() {
        let shown = escape(line);
        // A closed pipe is not an error.
        let _ = match style_of(line) {
            Some(style) => writeln!(out, "\x1b[{style}m{shown}\x1b[0m"),
            None => writeln!(out, "{shown}"),
        };
    }
}

/// Prints a note next to the answer, such as a warning.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "postroad: {}", escape(text));
}

/// Prints a warning as a sentence, or as one line of JSON.
pub(crate) fn warn(text: &str, json: bool) {
    if json {
        let _ = writeln!(std::io::stderr(), "{}", escape(&json!({ "warning": text }).to_string()));
    } else {
        remark(&format!("warning: {text}"));
    }
}

/// Prints why the command failed, as a sentence or as one line of JSON.
pub(crate) fn fail(text: &str, json: bool) {
    if json {
        let _ = writeln!(std::io::stderr(), "{}", escape(&json!({ "error": text }).to_string()));
    } else {
        remark(text);
    }
}

/// Escapes every character that a terminal would act on. Line ends and tabs stay.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dangerous) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_dangerous(character) {
            // All dangerous characters have at most four hexadecimal digits. Writing into a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped.into()
}

/// Makes a value one line: its own line ends would look like further lines of the answer.
pub(crate) fn one_line(text: &str) -> String {
    text.trim_end_matches(['\r', '\n']).replace("\r\n", "\n").replace('\n', "\\n")
}

/// C0, DEL and C1 controls, marks and overrides of the writing direction, and Unicode's own line ends.
fn is_dangerous(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped_and_the_rest_stays() {
        let clear =
            "\u{1b}[2J \u{9b}31m \u{7f}\r\u{7} \u{202e}moc.live \u{2066}x\u{2069}\u{200f}\u{61c}\u{2028}";
        assert_eq!(
            escape(clear),
            "\\u001b[2J \\u009b31m \\u007f\\u000d\\u0007 \\u202emoc.live \\u2066x\\u2069\\u200f\\u061c\\u2028"
        );
        let plain = "name: Grüße 日本 🎉 a\tb\nnext";
        assert!(matches!(escape(plain), Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = json!({ "said": "\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{2028}" });
        let text = value.to_string();
        let shown = escape(&text);
        assert!(shown.is_ascii() && !shown.contains(char::is_control), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn line_ends_inside_a_value_are_escaped() {
        assert_eq!(one_line("550-no\r\n550 such user\r\n"), "550-no\\n550 such user");
    }
}
