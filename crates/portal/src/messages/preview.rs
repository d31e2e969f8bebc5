//! The HTML of a message, for the sandboxed frame on the message's page. The security policy of the frame allows no
//! scripts and no loading; pictures that are part of the message are embedded as data.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_app::{AttachmentView, MessageView, without_loading_elements};

use super::content::ParsedMessage;
use super::preview_links::inert_links;
use super::preview_options::PreviewOptions;
use super::{content, pictures};
use crate::answer::Answer;
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

/// `sandbox` without any permission: no scripts, no forms, no navigation of the surrounding page, a separate origin.
const POLICY: &str = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";
/// Maximum number of embedded pictures: each needs a pass over the HTML.
const PICTURES_MAX: usize = 50;
/// Maximum total size of embedded pictures in base64; a picture counts as often as it is used.
const PICTURES_BYTES_MAX: usize = 4 << 20;

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let parsed = content::view(&visit, server, &record).await?.ok_or(Problem::NotFound)?;
    preview_of(&visit, parsed).await
}

/// The HTML part, with the options of the query.
pub(crate) async fn preview_of(visit: &Visit, parsed: ParsedMessage) -> Answer {
    let options = PreviewOptions::read(visit);
    let ParsedMessage { view, permit } = parsed;
    let (html, permit) = content::run_blocking(move || (with_pictures(view), permit)).await?;
    let mut html = html.ok_or(Problem::NotFound)?;
    if options.has_images {
        html = pictures::embed(visit, html).await?;
    }
    let prepare = move || (inert(&if options.is_dark { darkened(&html) } else { html }), permit);
    let (html, _permit) = content::run_blocking(prepare).await?;
    Ok(framed(content::with_memory_share(visit, html).await?))
}

/// The HTML as a mail program in dark mode shows it: with the sender's own dark style if there is one, else with
/// inverted colours.
fn darkened(html: &str) -> String {
    let own = ["(prefers-color-scheme: dark)", "(prefers-color-scheme:dark)"];
    if own.iter().any(|condition| html.contains(condition)) {
        let html =
            own.iter().fold(html.to_owned(), |html, condition| html.replace(condition, "(min-width: 0)"));
        return format!("{html}<style>:root {{ color-scheme: dark; background: #121212; }}</style>");
    }
    let style = "html { background: #fff; filter: invert(1) hue-rotate(180deg); } \
                 img { filter: invert(1) hue-rotate(180deg); }";
    format!("{html}<style>{style}</style>")
}

/// An answer with HTML from outside, for a frame with `sandbox`.
pub(crate) fn sandboxed(html: &str) -> Response {
    framed(inert(html))
}

/// HTML that loads nothing, and whose links lead nowhere.
fn inert(html: &str) -> String {
    let html = without_loading_elements(html);
    inert_links(&html).unwrap_or(html)
}

fn framed(inert_html: impl Into<Body>) -> Response {
    let mut response = Response::new(inert_html.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
}

/// The HTML with `cid:` URLs replaced by the pictures they name.
fn with_pictures(view: MessageView) -> Option<String> {
    let mut html = view.html_body?;
    let mut left = PICTURES_BYTES_MAX;
    for picture in view.attachments.iter().filter(|file| is_picture(file)).take(PICTURES_MAX) {
        let Some(content_id) = &picture.content_id else { continue };
        let url = format!("cid:{content_id}");
        let uses = html.matches(&url).count();
        let bytes = picture.content.len().saturating_mul(4) / 3 * uses;
        if uses > 0 && bytes <= left {
            left -= bytes;
            let data = STANDARD.encode(&picture.content);
            html = html.replace(&url, &format!("data:{};base64,{data}", picture.content_type));
        }
    }
    Some(html)
}

fn is_picture(file: &AttachmentView) -> bool {
    ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&file.content_type.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dark_style_of_the_sender_is_used_if_there_is_one() {
        let own = darkened("<style>@media (prefers-color-scheme: dark) { p { color: white } }</style>");
        assert!(own.contains("@media (min-width: 0) {") && !own.contains("invert"), "{own}");
        assert!(
            darkened("<p>a</p>").starts_with("<p>a</p><style>html { background: #fff; filter: invert(1)")
        );
    }

    #[test]
    fn pictures_of_the_message_are_embedded() {
        let picture = |content_id: &str, content_type: &str, length| AttachmentView {
            filename: "x".to_owned(),
            content_type: content_type.to_owned(),
            content_id: Some(content_id.to_owned()),
            content: vec![0; length],
        };
        let view = MessageView {
            html_body: Some("<img src=\"cid:a\"><img src=\"cid:b\"><img src=\"cid:c\">".to_owned()),
            attachments: vec![
                picture("a", "image/png", 3),
                picture("b", "text/html", 3),
                picture("c", "image/png", 5 << 20),
            ],
            ..MessageView::default()
        };
        let expected = "<img src=\"data:image/png;base64,AAAA\"><img src=\"cid:b\"><img src=\"cid:c\">";
        assert_eq!(with_pictures(view).as_deref(), Some(expected));
    }
}
