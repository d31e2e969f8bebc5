//! HTML page `/dev/` of `postroad dev`: caught messages, and links to everything else. Plain HTML without scripts;
//! every text of a message is escaped.

use std::borrow::Cow;
use std::fmt::Write;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::Response;
use postroad_delivery::Inbox;

/// Maximum number of messages on the page; the JSON list has more.
const MESSAGES_SHOWN_MAX: usize = 50;
const HEAD: &str = include_str!("page_head.html");

pub(super) async fn show(State(inbox): State<Option<Inbox>>) -> Response {
    let mut response = Response::new(render(inbox.as_ref()).into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

fn render(inbox: Option<&Inbox>) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("<h2>Inbox</h2>\n");
    match inbox {
        None => page.push_str(
            "<p>The inbox is off, because the configuration lets mail leave this machine \
             (<code>delivery.smarthost</code>, <code>delivery.allow_private_destinations</code> or \
             <code>delivery.catch_all</code>).</p>\n",
        ),
        Some(inbox) => push_messages(&mut page, inbox),
    }
    page.push_str("</main>\n</html>\n");
    page
}

fn push_messages(page: &mut String, inbox: &Inbox) {
    let messages = inbox.list(MESSAGES_SHOWN_MAX);
    if messages.is_empty() {
        page.push_str(
            "<p class=empty>Nothing was caught yet. Send a message with the <code>curl</code> line that \
             <code>postroad dev</code> printed, then load this page again.</p>\n",
        );
        return;
    }
    page.push_str("<table>\n<tr><th>Received</th><th>To</th><th>Subject</th><th></th></tr>\n");
    for message in messages {
        // Writing into a String cannot fail.
        let _ = writeln!(
            page,
            "<tr><td><time>{}</time></td><td>{}</td><td><a href=\"/dev/messages/{id}\">{}</a></td>\
             <td><a href=\"/dev/messages/{id}/raw\">source</a></td></tr>",
            escape(&message.received_at.to_rfc3339()),
            escape(message.rcpt_to.as_str()),
            escape(if message.subject.is_empty() { "(no subject)" } else { &message.subject }),
            id = message.id,
        );
    }
    page.push_str("</table>\n");
}

fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}
