//! Style sheet, script and icon, compiled in. Their names contain a hash of their content, so browsers keep them for good.

use std::fmt::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

pub(crate) const PATH: &str = "/assets/{file}";

/// Hexadecimal digits of the hash in a name.
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

static NAMES: LazyLock<[(String, &Asset); 3]> =
    LazyLock::new(|| [&STYLE, &SCRIPT, &ICON].map(|asset| (asset.name(), asset)));

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
    format!("/assets/{}", NAMES[0].0)
}

pub(crate) fn script_path() -> String {
    format!("/assets/{}", NAMES[1].0)
}

pub(crate) fn icon_path() -> String {
    format!("/assets/{}", NAMES[2].0)
}

pub(crate) async fn serve(Path(file): Path<String>) -> Response {
    let Some((_, asset)) = NAMES.iter().find(|(name, _)| *name == file) else {
        let mut response = Response::new(Body::from("There is no such file\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = Response::new(Body::from(asset.content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}
