//! Hostile texts: a short piece, repeated many times, in place of `{}` in each of a target's frames
//! (`Target::frames`). Parsers that scan the rest of the text for every piece take quadratic time on them.

use crate::Target;

/// Beginnings, ends and separators that parsers of mail, SMTP, HTML and JSON search for.
const PIECES: &[&str] = &[
    "http",
    "http://",
    "https://a.example/c/",
    "/o/",
    "<",
    "<a ",
    "<a href=",
    "<!--",
    "<![CDATA[",
    "</",
    "&",
    "&amp;",
    "&#x41;",
    "<record>",
    "<a></a>",
    "\"",
    "\\",
    "\\\"",
    "'",
    "(",
    ")",
    "((",
    "[",
    "{",
    "[[",
    "{\"a\":",
    "\"a\",",
    "1,",
    ",",
    ";",
    ":",
    "x:;,",
    "a@b.c,",
    "<a@b.c>,",
    "@",
    ".",
    "a.",
    "=",
    "==",
    "=?",
    "=?utf-8?q?a?=",
    "=?utf-8?b?",
    "?=",
    "%",
    "%41",
    "_",
    "-",
    "--",
    "--b",
    "--b\r\n",
    "--b--\r\n",
    "\r\n--b\r\n\r\n",
    "\n",
    "\r\n",
    "\r",
    "\r\n ",
    "\r\n\t",
    "\n.\n",
    "\r\n.",
    ".\r\n",
    "A: b\r\n",
    "From: a@b.c\r\n",
    "Received: from a by b\r\n",
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n",
    "; a=b",
    "; a*0=b",
    "; boundary=b",
    "charset=",
    "550 ",
    "5.1.1 ",
    "550-5.1.1 a\r\n",
    "250 ok\r\n",
    "250-SIZE\r\n",
    "354 \r\n",
    "NOOP\r\n",
    "RCPT TO:<a@b.c>\r\n",
    "BDAT 1\r\nx",
    "Final-Recipient: rfc822; a@b.c\r\n",
    "\r\n\r\n",
    "<a@b.c>: ",
    "-----",
    "> ",
    "\0",
    "\u{feff}",
    "ä",
    "xn--a.",
    "SGVsbG8=",
    "=3D",
    "=\r\n",
    "//",
    "/",
    "www.",
    "mailto:",
];

/// One piece in one frame.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    pub piece: &'static str,
    /// Text around the repeated piece, which replaces `{}`.
    pub frame: &'static str,
}

impl Pattern {
    /// The frame with about `bytes` bytes of the piece in it.
    pub fn text(&self, bytes: usize) -> Vec<u8> {
        let hostile = self.piece.repeat(bytes.div_ceil(self.piece.len()));
        let (before, after) = self.frame.split_once("{}").unwrap_or((self.frame, ""));
        [before, &hostile, after].concat().into_bytes()
    }
}

/// All combinations of a piece with a frame of the target.
pub fn patterns(target: &Target) -> impl Iterator<Item = Pattern> + use<> {
    target.frames.iter().flat_map(|frame| PIECES.iter().map(|piece| Pattern { piece, frame }))
}
