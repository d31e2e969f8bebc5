//! Handlers of tracking links. Only an unsubscription waits for the store, because it must not be confirmed
//! before it is stored.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use postroad_app::tracking_events::{Agents, Fetch, TrackingEvent};
use postroad_app::{App, Peer};
use postroad_mail::{TrackKey, TrackKind, TrackToken};
use tokio::time::timeout;

use crate::event_queue::EventQueue;
use crate::pages;

/// GIF of one transparent pixel.
const PIXEL: &[u8; 43] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
/// Maximum size of an unsubscribe form, which has one field, urlencoded or multipart.
const FORM_BYTES_MAX: usize = 4 << 10;
const FORM_READ_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the store: mailbox providers give up after some seconds.
const STORE_TIME_MAX: Duration = Duration::from_secs(5);
const USER_AGENT_CHARS_MAX: usize = 500;
/// Number of characters at the end of a token that identify its link.
const LINK_ID_CHARS: usize = 8;

#[derive(Debug)]
pub(crate) struct TrackingState {
    pub(crate) app: App,
    pub(crate) key: TrackKey,
    pub(crate) agents: Agents,
    pub(crate) queue: Arc<EventQueue>,
}

type SharedState = State<Arc<TrackingState>>;

/// Redirects to the link's target. Only a signed token names the target, so this is no open redirect.
pub(crate) async fn click(State(state): SharedState, Path(text): Path<String>, request: Request) -> Response {
    let Some(token) = state.key.parse(&text) else { return pages::invalid_link() };
    let TrackKind::Click { target } = &token.kind else { return pages::invalid_link() };
    let Some(location) = web_location(target) else { return pages::invalid_link() };
    state.queue.add(state.event(token, &text, &request));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, location);
    pages::add_common_headers(&mut response);
    response
}

pub(crate) async fn open(State(state): SharedState, Path(text): Path<String>, request: Request) -> Response {
    match state.key.parse(&text) {
        Some(token) if token.kind == TrackKind::Open => state.queue.add(state.event(token, &text, &request)),
        _ => return pages::invalid_link(),
    }
    let mut response = Response::new(Body::from(&PIXEL[..]));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/gif"));
    pages::add_common_headers(&mut response);
    response
}

/// Shows the confirmation page; changes nothing.
pub(crate) async fn ask_to_unsubscribe(State(state): SharedState, Path(text): Path<String>) -> Response {
    match state.key.parse(&text) {
        Some(TrackToken { kind: TrackKind::Unsubscribe { .. }, .. }) => pages::confirm_unsubscribe(),
        _ => pages::invalid_link(),
    }
}

/// Unsubscribes; requested by mail programs (RFC 8058 3.2), and by the button of the confirmation page.
pub(crate) async fn unsubscribe(
    State(state): SharedState,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let is_unsubscribe = |token: &TrackToken| matches!(token.kind, TrackKind::Unsubscribe { .. });
    let Some(token) = state.key.parse(&text).filter(is_unsubscribe) else {
        return pages::invalid_link();
    };
    let event = state.event(token, &text, &request);
    let form = timeout(FORM_READ_TIME_MAX, to_bytes(request.into_body(), FORM_BYTES_MAX)).await;
    if !form.is_ok_and(|form| form.is_ok_and(|form| is_one_click_form(&form))) {
        return pages::not_one_click();
    }
    match timeout(STORE_TIME_MAX, state.app.record_tracking_events(vec![event.clone()])).await {
        Ok(Ok(())) => pages::unsubscribed(),
        failed @ (Ok(Err(_)) | Err(_)) => {
            if let Ok(Err(error)) = failed {
                tracing::warn!(%error, "tracking: storing an unsubscription failed; it waits in the queue");
            }
            // The event is queued even if the store may have it already: unsubscribing twice is harmless. But only a
            // stored unsubscription is confirmed.
            state.queue.add(event);
            pages::try_again()
        }
    }
}

pub(crate) async fn method_not_allowed() -> Response {
    pages::wrong_method()
}

impl TrackingState {
    fn event(&self, token: TrackToken, text: &str, request: &Request) -> TrackingEvent {
        let headers = request.headers();
        let agent =
            headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned());
        // The user agent is cut here, because the event may wait in memory.
        let user_agent: String = agent.unwrap_or_default().chars().take(USER_AGENT_CHARS_MAX).collect();
        let fetch = Fetch {
            is_head: request.method() == Method::HEAD,
            is_prefetch: is_prefetch(headers),
            user_agent: &user_agent,
        };
        let is_bot = self.agents.is_bot(&fetch);
        let peer = request.extensions().get::<Peer>();
        TrackingEvent {
            token,
            link: text[text.len().saturating_sub(LINK_ID_CHARS)..].to_owned(),
            at: self.app.now(),
            ip_address: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address.to_canonical()),
            user_agent,
            is_bot,
        }
    }
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    ["purpose", "sec-purpose", "x-purpose", "x-moz"].into_iter().any(|name| {
        headers.get_all(name).iter().any(|value| {
            let value = value.as_bytes().to_ascii_lowercase();
            ["prefetch", "preview", "prerender"]
                .into_iter()
                .any(|word| value.windows(word.len()).any(|window| window == word.as_bytes()))
        })
    })
}

/// The target as a `Location` header, if it is a web address. Tokens contain only web addresses; the check is repeated
/// before redirecting.
fn web_location(target: &str) -> Option<HeaderValue> {
    let is_web = ["http://", "https://"]
        .into_iter()
        .any(|scheme| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    if is_web { HeaderValue::from_str(target).ok() } else { None }
}

/// Whether a form, urlencoded or multipart, asks for one-click unsubscription.
fn is_one_click_form(form: &[u8]) -> bool {
    let has = |word: &[u8]| form.windows(word.len()).any(|window| window == word);
    has(b"List-Unsubscribe") && has(b"One-Click")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetches_are_recognised_by_their_headers() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )])
        };
        for (name, value) in [
            ("purpose", "prefetch"),
            ("sec-purpose", "Prefetch;prerender"),
            ("x-moz", "prefetch"),
            ("x-purpose", "preview"),
        ] {
            assert!(is_prefetch(&headers(name, value)), "{name}");
        }
        assert!(!is_prefetch(&headers("purpose", "navigate")));
        assert!(!is_prefetch(&HeaderMap::new()));
    }

    #[test]
    fn only_web_addresses_are_redirected_to() {
        for target in
            ["javascript:alert(1)", "//evil.example", "/x", "", "data:text/html,x", "https://a\r\nX: y"]
        {
            assert!(web_location(target).is_none(), "{target}");
        }
        assert!(web_location("HTTPS://example.com/?a=b").is_some());
    }

    #[test]
    fn one_click_is_recognised_in_urlencoded_and_multipart_forms() {
        assert!(is_one_click_form(b"List-Unsubscribe=One-Click"));
        assert!(is_one_click_form(
            b"--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n"
        ));
        assert!(!is_one_click_form(b"") && !is_one_click_form(b"List-Unsubscribe=no"));
    }
}
