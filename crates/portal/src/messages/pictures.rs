//! Remote pictures in the HTML of a message. The portal loads them, through an HTTP client with the same guard as for
//! webhooks, and embeds them as data. So the browser connects to no other host, and the sender does not learn the
//! reader's IP address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use axum::http::header::{ACCEPT, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, element, rewrite_str, text};
use postroad_model::WebhookUrl;
use postroad_net::guarded_http::GuardedHttp;
use tokio::time::{Instant, timeout_at};

use super::content;
use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of pictures of one message.
const PICTURES_MAX: usize = 40;
/// Maximum total size of the loaded pictures as `data:` URLs, and also of all their uses in the HTML together.
const EMBEDDED_BYTES_MAX: usize = 8 << 20;
const CONNECTIONS_MAX: usize = 6;
/// Time for all pictures; late ones are left out.
const LOAD_TIME_MAX: Duration = Duration::from_secs(8);
const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The HTML with the pictures that could be loaded.
pub(super) async fn embed(visit: &Visit, html: String) -> Result<String, Problem> {
    let permit = visit.state.work.pictures(visit.person.user.account_id).await?;
    let Some(http) = &visit.state.pictures else { return Ok(html) };
    let (html, urls, permit) = content::run_blocking(move || {
        let urls = find_remote_urls(&html);
        (html, urls, permit)
    })
    .await?;
    let pictures = load(http, urls).await;
    let (html, _permit) = content::run_blocking(move || (replace(&html, &pictures), permit)).await?;
    Ok(html)
}

/// Remote URLs of pictures in the HTML, each once.
fn find_remote_urls(html: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    rewrite(html, |url| {
        let is_remote = url.starts_with("https://") || url.starts_with("http://");
        if is_remote && found.len() < PICTURES_MAX && !found.iter().any(|one| one == url) {
            found.push(url.to_owned());
        }
        None
    });
    found
}

/// Loads pictures. Returns their `data:` URLs by remote URL; pictures that cannot be loaded are missing.
async fn load(http: &GuardedHttp, urls: Vec<String>) -> HashMap<String, String> {
    let deadline = Instant::now() + LOAD_TIME_MAX;
    let mut loading = stream::iter(urls)
        .map(|url| async move {
            let loaded = timeout_at(deadline, fetch(http, &url)).await.ok().flatten();
            (url, loaded)
        })
        .buffer_unordered(CONNECTIONS_MAX);
    let (mut pictures, mut left) = (HashMap::new(), EMBEDDED_BYTES_MAX);
    while let Some((url, picture)) = loading.next().await {
        if let Some(picture) = picture.filter(|picture| picture.len() <= left) {
            left -= picture.len();
            pictures.insert(url, picture);
        }
    }
    pictures
}

async fn fetch(http: &GuardedHttp, url: &str) -> Option<String> {
    let url = WebhookUrl::parse(&url.replace("&amp;", "&")).ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp"));
    headers.insert(USER_AGENT, HeaderValue::from_static("Postroad preview"));
    let answer = http.get(&url, &headers).await.ok()?;
    let header = answer.content_type?;
    let media_type = header.split(';').next().unwrap_or_default().trim();
    let content_type = PICTURE_TYPES.iter().find(|one| media_type.eq_ignore_ascii_case(one))?;
    let is_good = answer.status == 200 && !answer.is_cut;
    is_good.then(|| format!("data:{content_type};base64,{}", STANDARD.encode(&answer.body)))
}

/// Puts the pictures into the HTML. Uses beyond `EMBEDDED_BYTES_MAX` are left as they are: a small mail may use a large
/// picture thousands of times.
fn replace(html: &str, pictures: &HashMap<String, String>) -> String {
    let mut left = EMBEDDED_BYTES_MAX;
    let replaced = rewrite(html, |url| {
        let picture = pictures.get(url).filter(|picture| picture.len() <= left)?;
        left -= picture.len();
        Some(picture.clone())
    });
    replaced.unwrap_or_else(|| html.to_owned())
}

/// Calls `change` for the URL of every picture: `img`, `background`, and `url(…)` in styles. Returns the HTML with
/// the new URLs; `None` if it cannot be parsed.
fn rewrite(html: &str, change: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let change = RefCell::new(change);
    // lol_html passes a style sheet in chunks; they are collected here.
    let sheet = RefCell::new(String::new());
    let attributes = element!("*", |element| {
        let mut change = change.borrow_mut();
        let is_picture = element.tag_name() == "img";
        for name in [if is_picture { "src" } else { "background" }, "style"] {
            let Some(text) = element.get_attribute(name) else { continue };
            let new = if name == "style" { change_styles(&text, &mut *change) } else { change(&text) };
            if let Some(new) = new {
                element.set_attribute(name, &new)?;
                if name == "src" {
                    element.remove_attribute("srcset");
                }
            }
        }
        Ok(())
    });
    let sheets = text!("style", |text| {
        let mut sheet = sheet.borrow_mut();
        sheet.push_str(text.as_str());
        if text.last_in_text_node() {
            let whole = std::mem::take(&mut *sheet);
            let new = change_styles(&whole, &mut *change.borrow_mut());
            text.replace(&new.unwrap_or(whole), ContentType::Html);
        } else {
            text.remove();
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(attributes)
        .append_element_content_handler(sheets);
    rewrite_str(html, settings).ok()
}

/// Changes the URLs in `url(…)` of a style sheet. `None` if none is changed.
fn change_styles(styles: &str, change: &mut impl FnMut(&str) -> Option<String>) -> Option<String> {
    const QUOTES: [&str; 4] = ["\"", "'", "&quot;", "&#39;"];
    let mut changed = String::new();
    let mut copied_to = 0;
    while let Some(at) = styles[copied_to..].find("url(") {
        let start = copied_to + at + "url(".len();
        let Some(length) = styles[start..].find(')') else { break };
        let argument = styles[start..start + length].trim();
        let quote = QUOTES.into_iter().find(|quote| argument.starts_with(quote)).unwrap_or_default();
        let url = argument.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        changed.push_str(&styles[copied_to..start]);
        match url.and_then(&mut *change) {
            Some(new) => changed.extend([quote, &new, quote]),
            None => changed.push_str(&styles[start..start + length]),
        }
        copied_to = start + length;
    }
    changed.push_str(&styles[copied_to..]);
    (changed != styles).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_once_and_replaced() {
        let html = "<img src=\"https://a.example/1.png\"><IMG SRC='https://a.example/1.png' srcset=x><img src=cid:a>\
                    <img src=\"file:///etc/passwd\"><p src=\"https://a.example/2.png\">";
        assert_eq!(find_remote_urls(html), ["https://a.example/1.png"]);
        let pictures = HashMap::from([("https://a.example/1.png".to_owned(), "data:x".to_owned())]);
        let replaced = replace(html, &pictures);
        assert_eq!(replaced.matches("data:x").count(), 2, "{replaced}");
        assert!(!replaced.contains("srcset") && replaced.contains("cid:a"), "{replaced}");
    }

    #[test]
    fn many_uses_of_a_large_picture_make_no_huge_page() {
        let html = "<img src=\"https://a.example/1.png\">".repeat(1_000);
        let pictures = HashMap::from([("https://a.example/1.png".to_owned(), "x".repeat(1 << 20))]);
        let replaced = replace(&html, &pictures);
        assert!(replaced.len() < EMBEDDED_BYTES_MAX + 2 * html.len(), "{} bytes", replaced.len());
        assert_eq!(replaced.matches("https://a.example/1.png").count(), 992);
    }

    #[test]
    fn pictures_of_backgrounds_and_styles_are_replaced() {
        let html = "<style>.a { background: url( 'https://a.example/1.png' ) } .b { color: red }</style>\
                    <td background=\"https://a.example/2.png?a=1&amp;b=2\"><p style=\"color: red; background: url(&quot;https://a.example/3.png&quot;)\">\
                    <p style='background:url(https://a.example/1.png) , url(x'>url(https://a.example/4.png)</p>";
        let [one, two, three] =
            ["1.png", "2.png?a=1&amp;b=2", "3.png"].map(|name| format!("https://a.example/{name}"));
        assert_eq!(find_remote_urls(html), [one.as_str(), two.as_str(), three.as_str()]);
        let pictures = [(one, "data:1"), (two, "data:2"), (three, "data:3")];
        let replaced = replace(html, &pictures.map(|(url, data)| (url, data.to_owned())).into());
        for expected in [
            ".a { background: url('data:1') } .b { color: red }</style>",
            "<td background=\"data:2\">",
            "color: red; background: url(&quot;data:3&quot;)",
            "background:url(data:1) , url(x",
            ">url(https://a.example/4.png)</p>",
        ] {
            assert!(replaced.contains(expected), "{expected}: {replaced}");
        }
    }
}
