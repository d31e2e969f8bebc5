//! Shows problems to signed-in people. A refused form is shown on its page, if that is found, with the values that were
//! typed; other problems are shown below the menu, with a link back.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, REFERER};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use postroad_app::Peer;
use tower::Service as _;

use crate::answer::page_with_status;
use crate::fields::Fields;
use crate::layout::{Layout, section_of};
use crate::problem::ProblemText;
use crate::refill::{PAGE_BYTES_MAX, refill_html, with_problem};
use crate::state::PortalState;
use crate::visit::{SentForm, Visit};

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Longest path of a page to return to; a longer one is ignored.
const BACK_BYTES_MAX: usize = 4_000;
/// If the page that the form was sent from does not contain the form, at most this many paths are tried: the form's own
/// path, then its parent paths.
const CANDIDATES_MAX: usize = 3;

/// The portal's pages, to load the page of a refused form.
#[derive(Debug, Clone)]
pub(crate) struct RefusedForms {
    pub(crate) pages: Router,
    pub(crate) state: Arc<PortalState>,
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    layout: Layout,
    text: String,
    /// Path of the page that the person came from.
    back: Option<String>,
}

/// If the handler reports a problem, answers with the page of the refused form, or with a page that has the menu, and
/// shows the problem there. Answers for scripts and frames stay as they are.
pub(crate) async fn show(State(forms): State<RefusedForms>, mut request: Request, next: Next) -> Response {
    let sent = SentForm::default();
    request.extensions_mut().insert(sent.clone());
    let (parts, body) = request.into_parts();
    let head = copy_of(&parts);
    let response = next.run(Request::from_parts(parts, body)).await;
    let Some(problem) = response.extensions().get::<ProblemText>().cloned() else { return response };
    let is_page = head.headers.get(SEC_FETCH_DEST).is_none_or(|kind| kind == "document");
    if !is_page {
        return response;
    }
    forms.page_of(head, &sent, &problem, response.status()).await.unwrap_or(response)
}

/// Copies method, URI, headers and peer of a request, without the extensions that the router added.
fn copy_of(parts: &Parts) -> Parts {
    let (mut copy, ()) = axum::http::Request::new(()).into_parts();
    copy.method = parts.method.clone();
    copy.uri = parts.uri.clone();
    copy.headers = parts.headers.clone();
    if let Some(peer) = parts.extensions.get::<Peer>() {
        copy.extensions.insert(*peer);
    }
    copy
}

impl RefusedForms {
    /// The page that shows the problem. `None` for people who are not signed in, and while the store does not answer.
    async fn page_of(
        &self,
        mut head: Parts,
        sent: &SentForm,
        problem: &ProblemText,
        status: StatusCode,
    ) -> Option<Response> {
        let visit = Visit::from_request_parts(&mut head, &self.state).await.ok()?;
        let referer = head.headers.get(REFERER).and_then(|referer| referer.to_str().ok());
        let back = referer.and_then(|referer| back_path(referer, &visit.base_url));
        let path = head.uri.path().to_owned();
        if let Some(form) = sent.0.get().filter(|_| problem.is_invalid && head.method == Method::POST) {
            let fields = Fields::parse(&form.bytes);
            for page in back.iter().cloned().chain(parent_paths(&path)) {
                if let Some(html) = self.load(&head, &page).await.filter(|html| has_form(html, &path)) {
                    let html = refill_html(html, &path, &fields, &problem.text);
                    let html = with_problem(&html, &problem.text, &page);
                    return Some(html_answer(status, html));
                }
            }
        }
        let mut layout = layout_for(&visit, problem.title, &path).await?;
        layout.notice = None;
        // A link back to this path would lead to the same problem.
        let back = back.filter(|back| back.split('?').next() != Some(path.as_str()));
        page_with_status(status, &RefusedPage { layout, text: problem.text.clone(), back }).ok()
    }

    /// The HTML of another page, as the same person sees it.
    async fn load(&self, head: &Parts, page: &str) -> Option<String> {
        let mut parts = copy_of(head);
        parts.method = Method::GET;
        let mut uri = parts.uri.clone().into_parts();
        uri.path_and_query = Some(page.parse().ok()?);
        parts.uri = Uri::from_parts(uri).ok()?;
        let Ok(response) = self.pages.clone().call(Request::from_parts(parts, Body::empty())).await;
        let is_html = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        if response.status() != StatusCode::OK || !is_html {
            return None;
        }
        let bytes = to_bytes(response.into_body(), PAGE_BYTES_MAX).await.ok()?;
        String::from_utf8(bytes.into()).ok()
    }
}

fn has_form(html: &str, action: &str) -> bool {
    html.contains(&format!("action=\"{action}\""))
}

fn html_answer(status: StatusCode, html: String) -> Response {
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let kind = axum::http::HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn layout_for(visit: &Visit, title: &str, path: &str) -> Option<Layout> {
    let section = section_of(path);
    let server = path.strip_prefix("/servers/").and_then(|rest| rest.split('/').next()?.parse().ok());
    if let Some(server) = server
        && let Ok((_, layout)) = visit.server_layout(server, title, section).await
    {
        return Some(layout);
    }
    visit.layout(title, section).await.ok()
}

/// Path and query of a referring page of the portal, without notices about an earlier form. `None` for other sites.
fn back_path(referer: &str, base_url: &str) -> Option<String> {
    let path = referer.strip_prefix(base_url)?;
    let is_plain = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= BACK_BYTES_MAX
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path: PathAndQuery = path.parse().ok().filter(|_| is_plain)?;
    let query = Fields::of_query(path.query()).query_without(&["done", "ceiling"]);
    Some(format!("{}{query}", path.path()))
}

/// The path of a form and its parent paths.
fn parent_paths(path: &str) -> impl Iterator<Item = String> + '_ {
    let paths = std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent));
    paths.take_while(|path| !path.is_empty()).take(CANDIDATES_MAX).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_links_lead_to_the_portal_only() {
        let base = "https://mail.example:8443";
        let back = |referer: &str| back_path(referer, base);
        assert_eq!(back("https://mail.example:8443/a?q=x+y&done=saved").as_deref(), Some("/a?q=x+y"));
        assert_eq!(back("https://mail.example:8443/").as_deref(), Some("/"));
        for foreign in [
            "https://mail.example:8443",
            "https://mail.example:8443.evil.example/a",
            "https://mail.example:8443@evil.example/a",
            "https://mail.example:8443//evil.example/a",
            "https://mail.example:8443/\\evil.example/a",
            "http://mail.example:8443/a",
            "https://evil.example/a",
            "javascript:alert(1)",
            "/a",
            "",
        ] {
            assert_eq!(back(foreign), None, "{foreign}");
        }
        assert_eq!(back(&format!("{base}/{}", "a".repeat(5_000))), None);
    }

    #[test]
    fn a_form_is_looked_for_at_its_path_and_two_parent_paths() {
        let found: Vec<String> = parent_paths("/servers/1/messages/2/act").collect();
        assert_eq!(found, ["/servers/1/messages/2/act", "/servers/1/messages/2", "/servers/1/messages"]);
        assert_eq!(parent_paths("/a").collect::<Vec<_>>(), ["/a"]);
    }
}
