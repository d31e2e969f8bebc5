//! Requests and forms of people who are not signed in.

use std::sync::Arc;

use askama::Template;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::USER_AGENT;
use axum::response::Response;
use postroad_app::users::{NewSession, Visitor};
use postroad_app::{App, Peer};

use crate::answer::{Answer, page_with_status};
use crate::fields::Fields;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::state::PortalState;
use crate::visit::peer;
use crate::{assets, session};

/// Request of somebody who need not be signed in, with its query and, if it is a form, its fields.
pub(super) struct OpenRequest {
    pub(super) state: Arc<PortalState>,
    pub(super) query: Fields,
    pub(super) fields: Fields,
    pub(super) visitor: Visitor,
    peer: Peer,
}

impl FromRequest<Arc<PortalState>> for OpenRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<PortalState>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let peer = peer(&parts)?;
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let visitor = Visitor {
            address: peer.address,
            user_agent: user_agent.unwrap_or_default().to_owned(),
            previous_token: session::token(&parts.headers, peer),
        };
        let fields =
            if parts.method.is_safe() { Fields::default() } else { Fields::of_open_body(body).await? };
        Ok(Self {
            state: Arc::clone(state),
            query: Fields::of_query(parts.uri.query()),
            fields,
            visitor,
            peer,
        })
    }
}

impl OpenRequest {
    pub(super) fn app(&self) -> &App {
        &self.state.app
    }

    /// First page of a new person: the authenticator app if its box is ticked, else `next`.
    pub(super) fn first_page<'a>(&self, next: &'a str) -> &'a str {
        if self.fields.is_ticked(APP_CHECK_BOX) { "/account/you#app" } else { next }
    }

    /// The check box in the forms of new people; still ticked if a form with the tick was refused.
    pub(super) fn app_check_box(&self) -> CheckBox {
        CheckBox {
            name: APP_CHECK_BOX,
            label: "Also ask for a code of an authenticator app when I sign in (set up on the next page)",
            is_ticked: self.fields.is_ticked(APP_CHECK_BOX),
        }
    }

    /// Sets the session cookie and redirects to `next`.
    pub(super) fn begin_session(&self, session: &NewSession, next: &str) -> Response {
        let mut response = see_other(own_path(next));
        session::begin(&mut response, self.peer, session, self.app().now());
        response
    }
}

/// `next` if it is a path of this site; otherwise the path of the start page.
fn own_path(next: &str) -> &str {
    let is_path = next.starts_with('/') && !next.starts_with("//");
    let is_plain = next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if is_path && is_plain { next } else { "/" }
}

/// One field of a page for people who are not signed in.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) kind: &'static str,
    pub(super) value: String,
    pub(super) autocomplete: &'static str,
    pub(super) hint: &'static str,
}

/// A check box below the fields of a page.
pub(super) struct CheckBox {
    name: &'static str,
    label: &'static str,
    is_ticked: bool,
}

/// Name of the check box in the forms of new people.
const APP_CHECK_BOX: &str = "app";

/// Facts for the button that `postroad dev` shows to callers on the same machine.
pub(super) struct Developer {
    /// Whether `postroad dev` catches mail instead of sending it.
    pub(super) has_inbox: bool,
}

/// A page with one form.
#[derive(Template)]
#[template(path = "sign_in/form.html")]
pub(super) struct FormPage {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) developer: Option<Developer>,
    pub(super) action: &'static str,
    pub(super) fields: Vec<Field>,
    /// Name and value of hidden fields.
    pub(super) hidden: Vec<(&'static str, String)>,
    pub(super) check_box: Option<CheckBox>,
    pub(super) button: &'static str,
    pub(super) problem: Option<String>,
    pub(super) notice: Option<&'static str>,
    /// Path and label of a link below the form.
    pub(super) link: Option<(&'static str, &'static str)>,
}

impl FormPage {
    pub(super) fn show(&self) -> Answer {
        let status = if self.problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        page_with_status(status, self)
    }

    /// Whether the form has a field for a password but none for the user name, which password managers need.
    fn lacks_username(&self) -> bool {
        self.fields.iter().any(|field| field.kind == "password")
            && !self.fields.iter().any(|field| matches!(field.autocomplete, "username" | "email"))
    }

    #[expect(clippy::unused_self, reason = "templates call methods")]
    fn style(&self) -> String {
        assets::style_path()
    }

    #[expect(clippy::unused_self, reason = "templates call methods")]
    fn icon(&self) -> String {
        assets::icon_path()
    }
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn only_paths_of_this_site_are_followed() {
        assert_eq!(own_path("/servers/1?q=a%20b"), "/servers/1?q=a%20b");
        for foreign in
            ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nb", "servers", "/a b"]
        {
            assert_eq!(own_path(foreign), "/", "{foreign:?}");
        }
    }
}
