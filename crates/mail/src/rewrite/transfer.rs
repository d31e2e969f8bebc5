//! Decodes and encodes a text's transfer encoding.

use std::borrow::Cow;

use mail_builder::encoders::{Base64Encoder, QuotedPrintableEncoder};
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use postroad_model::is_crlf;

use super::parts::TransferEncoding;

/// Longest line with its CR; RFC 5322 2.1.1 allows one byte more.
const LINE_BYTES_MAX: usize = 998;

/// Decodes a body; `None` if that is not possible.
pub(super) fn decode(body: &[u8], encoding: TransferEncoding) -> Option<Cow<'_, [u8]>> {
    match encoding {
        TransferEncoding::Identity => Some(Cow::Borrowed(body)),
        TransferEncoding::QuotedPrintable => quoted_printable_decode(body).map(Cow::Owned),
        TransferEncoding::Base64 => base64_decode(body).map(Cow::Owned),
    }
}

/// The encoding `previous` if the rewritten text can keep it, else another one.
pub(super) fn choose(text: &[u8], previous: TransferEncoding) -> TransferEncoding {
    match previous {
        TransferEncoding::Identity
            if text.split(|b| *b == b'\n').all(|line| line.len() <= LINE_BYTES_MAX) =>
        {
            previous
        }
        // Quoted-printable would turn other line endings into CRLF.
        TransferEncoding::Identity | TransferEncoding::QuotedPrintable if is_crlf(text) => {
            TransferEncoding::QuotedPrintable
        }
        _ => TransferEncoding::Base64,
    }
}

pub(super) fn encode(text: &[u8], encoding: TransferEncoding, out: &mut Vec<u8>) {
    match encoding {
        TransferEncoding::Identity => out.extend_from_slice(text),
        TransferEncoding::QuotedPrintable => {
            QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(text, out);
        }
        TransferEncoding::Base64 => {
            Base64Encoder::new().wrap_lines().encode_into(text, out);
        }
    }
}

pub(super) fn header(encoding: TransferEncoding) -> &'static [u8] {
    match encoding {
        TransferEncoding::Identity => b"Content-Transfer-Encoding: 8bit\r\n",
        TransferEncoding::QuotedPrintable => b"Content-Transfer-Encoding: quoted-printable\r\n",
        TransferEncoding::Base64 => b"Content-Transfer-Encoding: base64\r\n",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "=", "=3D", " ", "\t", "\r\n", ".", "\r\n.\r\n", "é", "\u{0}", "\n", "\r", "--x", "From ", "long words ",
        ]), 0..200)) {
            let text = pieces.concat().into_bytes();
            for previous in [TransferEncoding::Identity, TransferEncoding::QuotedPrintable, TransferEncoding::Base64] {
                let encoding = choose(&text, previous);
                let mut encoded = Vec::new();
                encode(&text, encoding, &mut encoded);
                let decoded = decode(&encoded, encoding);
                prop_assert_eq!(decoded.as_deref(), Some(&text[..]));
                if encoding != TransferEncoding::Identity {
                    prop_assert!(encoded.split(|b| *b == b'\n').all(|line| line.len() <= 77));
                }
            }
        }
    }

    #[test]
    fn a_line_that_became_too_long_changes_the_encoding() {
        let long = format!("{}\r\n", "x".repeat(997));
        assert_eq!(choose(long.as_bytes(), TransferEncoding::Identity), TransferEncoding::Identity);
        let longer = format!("x{long}");
        assert_eq!(choose(longer.as_bytes(), TransferEncoding::Identity), TransferEncoding::QuotedPrintable);
    }
}
