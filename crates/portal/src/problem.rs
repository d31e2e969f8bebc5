//! Problems as pages: one table from problem to status, title and text. Internal causes go to the log.

use askama::Template;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use postroad_app::access::Denial;
use postroad_app::accounts::AccountRefusal;
use postroad_app::domains::DomainRefusal;
use postroad_app::send::ScheduleRefusal;
use postroad_app::templates::TemplateRefusal;
use postroad_app::users::UserRefusal;
use postroad_app::{FieldProblem, InspectorRefusal, JobRefusal, LookupError, Refusal, WebhookRefusal};
use postroad_store::StoreError;

use crate::query::query;
use crate::redirect::see_other;
use crate::{assets, csrf, labels};

pub(crate) const OTHER_VERSION: &str = "Another change was made since this page was opened, so yours was not saved. \
                             Look at the page again and repeat your change.";

/// Whether a problem shown with a form says that somebody else changed the object meanwhile.
pub(crate) fn is_other_version(text: &str) -> bool {
    text == OTHER_VERSION
}

#[derive(Debug)]
pub(crate) enum Problem {
    /// Nobody is signed in; with the path to return to.
    SignIn {
        next: String,
    },
    /// The form was sent from a page of another site.
    ForeignOrigin,
    /// The form belongs to another session, or to none.
    StaleForm,
    NotFound,
    /// A link for people who are not signed in has expired, was revoked or was mistyped.
    DeadLink,
    /// The person may not do this; with the reason.
    Denied(String),
    Invalid(String),
    /// The person has too many pages open that update themselves.
    TooManyStreams,
    /// A request inspector gets more requests than it takes.
    TooManyRequests,
    /// The store does not answer, or there is too much load.
    Unavailable(String),
    Internal(String),
}

/// Problem attached to an answer. `refused_forms` shows it to signed-in people within the page that the problem is
/// about.
#[derive(Debug, Clone)]
pub(crate) struct ProblemText {
    pub(crate) title: &'static str,
    pub(crate) text: String,
    /// Whether the values of a form were refused, so that other values may be accepted.
    pub(crate) is_invalid: bool,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    title: &'a str,
    text: &'a str,
    style: String,
    icon: String,
}

impl Problem {
    /// Status, title and text of the problem's page.
    fn page_parts(&self) -> (StatusCode, &'static str, &str) {
        match self {
            Self::SignIn { .. } => (StatusCode::SEE_OTHER, "Sign in", ""),
            Self::ForeignOrigin => (
                StatusCode::FORBIDDEN,
                "This request came from another site",
                "Nothing was changed. Open the page here and try again.",
            ),
            Self::StaleForm => (
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "You have signed in or out since it was opened. Nothing was changed: go back, load the page again and repeat it.",
            ),
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "There is nothing here",
                "It may have been deleted, or belong to someone else.",
            ),
            Self::DeadLink => (
                StatusCode::NOT_FOUND,
                "This link does not work",
                "It has expired or was revoked, or a part of it is missing. Ask whoever sent it for a new one.",
            ),
            Self::Denied(text) => (StatusCode::FORBIDDEN, "You may not do this", text),
            Self::Invalid(text) => (StatusCode::UNPROCESSABLE_ENTITY, "That did not work", text),
            Self::TooManyStreams => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many pages update themselves",
                "Close some of the pages that you have open, and load this one again.",
            ),
            Self::TooManyRequests => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many requests",
                "A request inspector takes 20 requests and 128 KiB a second. Try again in a second.",
            ),
            Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Please try again in a moment",
                "The service is busy, or its database does not answer. Mail that was accepted is safe.",
            ),
            Self::Internal(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong here",
                "The log of the service has the cause: look for `a page failed` at the time of this answer.",
            ),
        }
    }

    /// The text to show with a refused form. Only `Invalid` has one; other problems are returned as errors.
    pub(crate) fn into_form_text(self) -> Result<String, Self> {
        match self {
            Self::Invalid(text) => Ok(text),
            other => Err(other),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if let Self::SignIn { next } = &self {
            let next = if next == "/" { "" } else { next };
            return see_other(&format!("/sign_in{}", query(&[("next", next)])));
        }
        if let Self::Internal(cause) | Self::Unavailable(cause) = &self {
            tracing::error!(%cause, "portal: a page failed");
        }
        let (status, title, text) = self.page_parts();
        let page = ProblemPage { title, text, style: assets::style_path(), icon: assets::icon_path() };
        let mut response = Response::new(Body::from(page.render().unwrap_or_else(|_| title.to_owned())));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        let is_invalid = matches!(self, Self::Invalid(_));
        response.extensions_mut().insert(ProblemText { title, text: text.to_owned(), is_invalid });
        response
    }
}

/// All problems of a form in one text, with the labels of the form instead of the API's field names.
pub(crate) fn sentences(problems: &[FieldProblem]) -> String {
    problems.iter().map(labels::sentence).collect::<Vec<_>>().join(" ")
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Conflict => Self::Invalid("Something of this name exists already.".to_owned()),
            ceiling @ StoreError::CeilingReached { .. } => Refusal::from(ceiling).into(),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match &refusal {
            Refusal::Validation(problems) | Refusal::CeilingExceeded(problems) => {
                Self::Invalid(sentences(problems))
            }
            Refusal::Unavailable(cause) => Self::Unavailable(cause.clone()),
            Refusal::Internal(cause) => Self::Internal(cause.clone()),
            Refusal::TemplateNotPublished => Self::Invalid("No version is published yet.".to_owned()),
            other => Self::Invalid(format!("{}.", other.message())),
        }
    }
}

impl From<AccountRefusal> for Problem {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::Refused(refusal) => refusal.into(),
            AccountRefusal::Denied(Denial::NotFound) | AccountRefusal::NotFound(_) => Self::NotFound,
            AccountRefusal::Denied(Denial::Role { needed }) => Self::Denied(format!(
                "It needs the role {needed} or a higher one. Ask an owner of the account."
            )),
            AccountRefusal::Denied(_) => {
                Self::Denied("Only the operator of the service does this.".to_owned())
            }
            AccountRefusal::OtherVersion(_) => Self::Invalid(OTHER_VERSION.to_owned()),
            AccountRefusal::TooManyCalls { problem, .. } => Self::Invalid(sentences(&[*problem])),
            AccountRefusal::Store(error) => error.into(),
            other => Self::Invalid(format!("{}.", capitalised(&other.to_string()))),
        }
    }
}

impl From<UserRefusal> for Problem {
    fn from(refusal: UserRefusal) -> Self {
        match refusal {
            UserRefusal::Account(refusal) => refusal.into(),
            UserRefusal::Store(error) => error.into(),
            UserRefusal::Sealed(error) => Self::Internal(error.to_string()),
            other => Self::Invalid(format!("{other}.")),
        }
    }
}

impl From<DomainRefusal> for Problem {
    fn from(refusal: DomainRefusal) -> Self {
        match refusal {
            DomainRefusal::Validation(problems) => Self::Invalid(sentences(&problems)),
            DomainRefusal::NotFound => Self::NotFound,
            DomainRefusal::Account(refusal) => refusal.into(),
            DomainRefusal::TooMany { domains_max } => Self::Invalid(format!(
                "There are {domains_max} domains already, as many as there may be: delete one first."
            )),
            DomainRefusal::Store(error) => error.into(),
            other => Self::Invalid(format!("{}.", capitalised(&other.to_string()))),
        }
    }
}

impl From<TemplateRefusal> for Problem {
    fn from(refusal: TemplateRefusal) -> Self {
        let text = match refusal {
            TemplateRefusal::Validation(problems) => sentences(&problems),
            TemplateRefusal::Invalid(problems) => {
                problems.first().map_or_else(String::new, |problem| format!("{}.", problem.message))
            }
            TemplateRefusal::NotFound | TemplateRefusal::VersionNotFound => return Self::NotFound,
            TemplateRefusal::NotPublished => "No version is published yet.".to_owned(),
            TemplateRefusal::NothingToRollBackTo => "No version was published before.".to_owned(),
            TemplateRefusal::AliasTaken => "Another template has this alias.".to_owned(),
            TemplateRefusal::OtherVersion(version) => format!("Somebody saved version {version} meanwhile."),
            TemplateRefusal::InUse => "Other templates use this layout.".to_owned(),
            TemplateRefusal::TooMany => "The server has as many templates as it may have.".to_owned(),
            TemplateRefusal::Render(failure) => format!("{}.", failure.message()),
            TemplateRefusal::Store(refusal) => return refusal.into(),
        };
        Self::Invalid(text)
    }
}

impl From<ScheduleRefusal> for Problem {
    fn from(refusal: ScheduleRefusal) -> Self {
        match refusal {
            ScheduleRefusal::NotFound => Self::NotFound,
            ScheduleRefusal::NotScheduled => Self::Invalid("The message is not scheduled.".to_owned()),
            ScheduleRefusal::TooLate => {
                Self::Invalid("It is too late: the message is on its way.".to_owned())
            }
            ScheduleRefusal::Validation(problems) => Self::Invalid(sentences(&problems)),
            ScheduleRefusal::Store(error) => error.into(),
        }
    }
}

impl From<JobRefusal> for Problem {
    fn from(refusal: JobRefusal) -> Self {
        match refusal {
            JobRefusal::Query(problem) => Self::Invalid(labels::sentence(&problem)),
            JobRefusal::TooMany => {
                Self::Invalid("Ten jobs are running already: wait for one to end.".to_owned())
            }
            JobRefusal::Store(error) => error.into(),
        }
    }
}

impl From<WebhookRefusal> for Problem {
    fn from(refusal: WebhookRefusal) -> Self {
        match refusal {
            WebhookRefusal::Validation(problems) => Self::Invalid(sentences(&problems)),
            WebhookRefusal::NotFound => Self::NotFound,
            WebhookRefusal::OtherVersion(_) => Self::Invalid(OTHER_VERSION.to_owned()),
            WebhookRefusal::Refused(refusal) => refusal.into(),
            WebhookRefusal::Store(error) => error.into(),
            other => Self::Invalid(format!("{}.", capitalised(&other.to_string()))),
        }
    }
}

impl From<InspectorRefusal> for Problem {
    fn from(refusal: InspectorRefusal) -> Self {
        match refusal {
            InspectorRefusal::NotFound => Self::NotFound,
            InspectorRefusal::TooManyRequests => Self::TooManyRequests,
            InspectorRefusal::Store(error) => error.into(),
        }
    }
}

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound => Self::NotFound,
            LookupError::Store(error) => error.into(),
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Checks the hidden field of every form that a signed-in person posts.
pub(crate) fn check_token(session_secret: &str, token: &str) -> Result<(), Problem> {
    if csrf::is_valid(session_secret, token) { Ok(()) } else { Err(Problem::StaleForm) }
}
