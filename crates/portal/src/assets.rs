//! Style sheet, script and icon, compiled in. Their names contain a hash of their content, so browsers may cache them
//! for a year.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

pub(crate) const PATH: &str = "/assets/{file}";

/// Bytes of the hash in a name, each written as two hexadecimal digits.
const HASH_BYTES: usize = 6;

struct Asset {
    stem: &'static str,
    extension: &'static str,
    content_type: &'static str,
    content: &'static str,
}

static STYLE: Asset = Asset {
    stem: "portal",
    extension: "css",
    content_type: "text/css; charset=utf-8",
    content: include_str!("../assets/portal.css"),
};
static SCRIPT: Asset = Asset {
    stem: "portal",
    extension: "js",
    content_type: "text/javascript; charset=utf-8",
    content: include_str!("../assets/portal.js"),
};
static ICON: Asset = Asset {
    stem: "icon",
    extension: "svg",
    content_type: "image/svg+xml",
    content: include_str!("../assets/icon.svg"),
};

/// An asset with its name and its compressed content.
struct ServedAsset {
    name: String,
    asset: &'static Asset,
    gzip: Vec<u8>,
}

static ASSETS: LazyLock<[ServedAsset; 3]> = LazyLock::new(|| {
    [&STYLE, &SCRIPT, &ICON].map(|asset| ServedAsset {
        name: asset.name(),
        asset,
        gzip: compress(asset.content),
    })
});

/// Compresses an asset; empty on failure, and then the content is sent as it is.
fn compress(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(content.as_bytes());
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

impl Asset {
    fn name(&self) -> String {
        let hash = digest(&SHA256, self.content.as_bytes());
        let mut digits = String::new();
        for byte in hash.as_ref().iter().take(HASH_BYTES) {
            let _ = write!(digits, "{byte:02x}");
        }
        format!("{}.{digits}.{}", self.stem, self.extension)
    }
}

pub(crate) fn style_path() -> String {
    format!("/assets/{}", ASSETS[0].name)
}

pub(crate) fn script_path() -> String {
    format!("/assets/{}", ASSETS[1].name)
}

pub(crate) fn icon_path() -> String {
    format!("/assets/{}", ASSETS[2].name)
}

/// Serves an asset, compressed if the browser accepts gzip. Pages are never compressed: they contain secrets, such as
/// form tokens, beside text from outside, and the compressed length could reveal the secrets (BREACH).
pub(crate) async fn serve(Path(file): Path<String>, headers: HeaderMap) -> Response {
    let Some(ServedAsset { asset, gzip, .. }) = ASSETS.iter().find(|served| served.name == file) else {
        let mut response = Response::new(Body::from("There is no such file\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let is_compressed = !gzip.is_empty() && accepts_gzip(&headers);
    let body = if is_compressed { Body::from(gzip.as_slice()) } else { Body::from(asset.content) };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}

/// Whether the browser accepts gzip: the header names it without `q=0` (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_browsers_that_accept_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
        assert!(ASSETS.iter().all(|one| !one.gzip.is_empty()));
    }
}
