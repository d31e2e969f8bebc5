//! Errors of the dev inbox, its DNS server and Mailpit's API: one table from problem to status, code and text.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::envelope;

#[derive(Debug)]
pub(super) enum Problem {
    /// The caller is on another machine.
    NotLocal,
    /// The Host header names another host, which somebody else may point at this machine. Carries the accepted names.
    ForeignHost(Vec<String>),
    /// The request comes from a page of another site.
    ForeignOrigin,
    WrongMethod,
    NothingHere,
    NoSuchMessage,
    WrongDnsMethod,
    WrongMailpitMethod,
    NoSuchDomain,
    TimeIsUp(Duration),
    /// A query parameter or the body is not valid.
    BadQuery(String),
    /// The service is stopping.
    Stopping,
    StoreUnavailable,
}

impl Problem {
    fn row(&self) -> (StatusCode, &'static str, Cow<'static, str>) {
        match self {
            Self::NotLocal => (
                StatusCode::FORBIDDEN,
                "NotLocal",
                "Only callers on the same machine are served here; postroad dev --listen 0.0.0.0 serves others too"
                    .into(),
            ),
            Self::ForeignHost(known) => {
                let local = ["127.0.0.1", "[::1]", "localhost"];
                let names: Vec<&str> = local.into_iter().chain(known.iter().map(String::as_str)).collect();
                let text = format!(
                    "The host in this URL is not accepted here; use {}, or start postroad dev with --host NAME",
                    names.join(", ")
                );
                (StatusCode::FORBIDDEN, "ForeignHost", text.into())
            }
            Self::ForeignOrigin => (
                StatusCode::FORBIDDEN,
                "ForeignOrigin",
                "Pages of other sites may not call postroad dev; --host NAME allows those of NAME".into(),
            ),
            Self::WrongMethod => (
                StatusCode::METHOD_NOT_ALLOWED,
                "WrongMethod",
                "Read with GET; DELETE /dev/messages empties the inbox".into(),
            ),
            Self::NothingHere => (
                StatusCode::NOT_FOUND,
                "UnknownEndpoint",
                "There is nothing here; the inbox is /dev/messages".into(),
            ),
            Self::NoSuchMessage => (
                StatusCode::NOT_FOUND,
                "MessageNotFound",
                "The inbox has no such message or part; when it is full, the oldest messages are removed".into(),
            ),
            Self::WrongDnsMethod => (
                StatusCode::METHOD_NOT_ALLOWED,
                "WrongMethod",
                "GET /dev/dns lists records, POST /dev/dns/DOMAIN publishes a domain's, DELETE removes them"
                    .into(),
            ),
            Self::WrongMailpitMethod => (
                StatusCode::METHOD_NOT_ALLOWED,
                "WrongMethod",
                "This part of Mailpit's API is read with GET; docs/dev-inbox.md lists its calls".into(),
            ),
            Self::NoSuchDomain => (
                StatusCode::NOT_FOUND,
                "DomainNotFound",
                "There is no such domain yet; domains/create adds it".into(),
            ),
            Self::TimeIsUp(time) => {
                let text = format!("No such message arrived within {} s", time.as_secs_f64());
                (StatusCode::NOT_FOUND, "TimeIsUp", text.into())
            }
            Self::BadQuery(text) => (StatusCode::BAD_REQUEST, "BadQuery", text.clone().into()),
            Self::Stopping => {
                (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "The service is stopping".into())
            }
            Self::StoreUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                "The store is unavailable; try again".into(),
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, message) = self.row();
        envelope::json_response(status, json!({ "code": code, "message": message }).to_string())
    }
}
