//! Answers: pages and downloads.

use askama::Template;
use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::problem::Problem;

pub(crate) type Answer = Result<Response, Problem>;

pub(crate) fn page(template: &impl Template) -> Answer {
    page_with_status(StatusCode::OK, template)
}

/// A page with another status, such as 422 for a form that is shown again with its errors.
pub(crate) fn page_with_status(status: StatusCode, template: &impl Template) -> Answer {
    let text = template.render().map_err(|error| Problem::Internal(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

/// A file that the browser saves and never displays, because strangers may have written its content.
pub(crate) fn download(content_type: &'static str, file_name: &str, content: impl Into<Body>) -> Response {
    let mut response = Response::new(content.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let disposition = format!("attachment; filename=\"{}\"", plain_name(file_name));
    let disposition = HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment"));
    headers.insert(CONTENT_DISPOSITION, disposition);
    response
}

/// At most a hundred characters of a name, without dots at its ends; `file` if nothing is left. All but ASCII letters,
/// digits, dots, hyphens and underscores become underscores.
fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect();
    let plain = plain.trim_matches('.');
    if plain.is_empty() { "file".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_characters_in_file_names_become_underscores() {
        assert_eq!(plain_name("bill 1.pdf"), "bill_1.pdf");
        assert_eq!(plain_name("../../etc/\"x\r\ny"), "_.._etc__x__y");
        assert_eq!(plain_name(".."), "file");
        assert_eq!(plain_name(&"a".repeat(500)).len(), 100);
    }
}
