//! Remote pictures in the HTML of a message. They are loaded here, by the client with the guard of webhooks, and
//! embedded as data: the reader's browser connects to nobody, and the sender does not learn its address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use axum::http::header::{ACCEPT, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use lol_html::{RewriteStrSettings, element, rewrite_str};
use postroad_model::WebhookUrl;
use postroad_net::guarded_http::GuardedHttp;
use tokio::time::{Instant, timeout_at};

use crate::problem::Problem;
use crate::visit::Visit;

/// Pictures of one message.
const PICTURES_MAX: usize = 40;
const BYTES_MAX: usize = 8 << 20;
const CONNECTIONS_MAX: usize = 6;
/// Time for all pictures; late ones are left out.
const TIME_MAX: Duration = Duration::from_secs(8);
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The HTML with the pictures that could be loaded.
pub(super) async fn put_in(visit: &Visit, html: String) -> Result<String, Problem> {
    let busy = |_| Problem::Internal("the portal is stopping".to_owned());
    let _permit = visit.state.picture_loads.acquire().await.map_err(busy)?;
    let Some(http) = &visit.state.pictures else { return Ok(html) };
    let blocking = |error: tokio::task::JoinError| Problem::Internal(error.to_string());
    let (html, addresses) = tokio::task::spawn_blocking(move || {
        let addresses = find(&html);
        (html, addresses)
    })
    .await
    .map_err(blocking)?;
    let pictures = load(http, addresses).await;
    tokio::task::spawn_blocking(move || replace(&html, &pictures)).await.map_err(blocking)
}

/// Addresses of pictures, each once.
fn find(html: &str) -> Vec<String> {
    let found: RefCell<Vec<String>> = RefCell::default();
    let note = element!("img[src]", |element| {
        let mut found = found.borrow_mut();
        let address = element.get_attribute("src").unwrap_or_default();
        let is_remote = address.starts_with("https://") || address.starts_with("http://");
        if is_remote && found.len() < PICTURES_MAX && !found.contains(&address) {
            found.push(address);
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new().append_element_content_handler(note);
    // HTML that cannot be parsed has no pictures.
    let _ = rewrite_str(html, settings);
    found.into_inner()
}

/// Pictures as `data:` URLs by their URL.
async fn load(http: &GuardedHttp, addresses: Vec<String>) -> HashMap<String, String> {
    let deadline = Instant::now() + TIME_MAX;
    let mut loading = stream::iter(addresses)
        .map(|address| async move {
            let loaded = timeout_at(deadline, fetch(http, &address)).await.ok().flatten();
            (address, loaded)
        })
        .buffer_unordered(CONNECTIONS_MAX);
    let (mut pictures, mut left) = (HashMap::new(), BYTES_MAX);
    while let Some((address, picture)) = loading.next().await {
        if let Some(picture) = picture.filter(|picture| picture.len() <= left) {
            left -= picture.len();
            pictures.insert(address, picture);
        }
    }
    pictures
}

async fn fetch(http: &GuardedHttp, address: &str) -> Option<String> {
    let url = WebhookUrl::parse(&address.replace("&amp;", "&")).ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp"));
    headers.insert(USER_AGENT, HeaderValue::from_static("Postroad preview"));
    let answer = http.get(&url, &headers).await.ok()?;
    let given = answer.content_type?;
    let given = given.split(';').next().unwrap_or_default().trim();
    let content_type = TYPES.iter().find(|one| given.eq_ignore_ascii_case(one))?;
    let is_good = answer.status == 200 && !answer.is_cut;
    is_good.then(|| format!("data:{content_type};base64,{}", STANDARD.encode(&answer.body)))
}

fn replace(html: &str, pictures: &HashMap<String, String>) -> String {
    let put = element!("img[src]", |element| {
        let address = element.get_attribute("src").unwrap_or_default();
        if let Some(picture) = pictures.get(&address) {
            element.set_attribute("src", picture)?;
            element.remove_attribute("srcset");
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new().append_element_content_handler(put);
    rewrite_str(html, settings).unwrap_or_else(|_| html.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_once_and_replaced() {
        let html = "<img src=\"https://a.example/1.png\"><IMG SRC='https://a.example/1.png' srcset=x><img src=cid:a>\
                    <img src=\"file:///etc/passwd\"><p src=\"https://a.example/2.png\">";
        assert_eq!(find(html), ["https://a.example/1.png"]);
        let pictures = HashMap::from([("https://a.example/1.png".to_owned(), "data:x".to_owned())]);
        let replaced = replace(html, &pictures);
        assert_eq!(replaced.matches("data:x").count(), 2, "{replaced}");
        assert!(!replaced.contains("srcset") && replaced.contains("cid:a"), "{replaced}");
    }
}
