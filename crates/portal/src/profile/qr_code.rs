//! QR code of the key for an authenticator app, as SVG in the page.

use qrcode::QrCode;
use qrcode::render::svg;

const SIDE: u32 = 220;

/// The text as a QR code; `None` if the text is too long; people then type it.
pub(super) fn svg(text: &str) -> Option<String> {
    let code = QrCode::new(text.as_bytes()).ok()?;
    let drawn = code.render::<svg::Color<'_>>().min_dimensions(SIDE, SIDE).build();
    // Drop the XML declaration, and add a label for people who cannot see the code.
    let (_, drawn) = drawn.split_once("<svg ")?;
    Some(format!("<svg class=\"qr\" role=\"img\" aria-label=\"QR code of the key below\" {drawn}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_becomes_a_drawing_without_styles_and_without_its_text() {
        let drawn =
            super::svg("otpauth://totp/Postroad:a@example.com?secret=ABC&issuer=Postroad").expect("it fits");
        assert!(drawn.starts_with("<svg class=\"qr\"") && drawn.ends_with("</svg>"), "{drawn}");
        assert!(!drawn.contains("style") && !drawn.contains("ABC"), "{drawn}");
        assert!(super::svg(&"x".repeat(10_000)).is_none());
    }
}
