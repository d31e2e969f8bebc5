//! Finds the request's JSON: the body itself, or the field `params` of a form or query, which some clients use.

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use memchr::memchr;
use multer::Multipart;
use postroad_app::FieldProblem;

const FIELD: &str = "params";
/// Longest form of the field's name, with every byte escaped.
const NAME_BYTES_MAX: usize = 18;

/// Returns the JSON text of a request.
pub(crate) async fn read_json_text(parts: &Parts, body: Bytes) -> Result<Bytes, FieldProblem> {
    if body.is_empty() {
        let query = parts.uri.query().filter(|_| parts.method == Method::GET).unwrap_or_default();
        return Ok(find_in_form(query.as_bytes()).unwrap_or_default());
    }
    let content_type =
        parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        // `curl -d` claims to send a form, whatever it sends.
        if body.trim_ascii_start().starts_with(b"{") {
            return Ok(body);
        }
        return find_in_form(&body).ok_or_else(params_missing);
    }
    if essence.eq_ignore_ascii_case("multipart/form-data") {
        return find_in_multipart(content_type, body).await;
    }
    Ok(body)
}

/// Finds the field `params`, and decodes its value into one buffer: the value can be nearly the whole body.
fn find_in_form(form: &[u8]) -> Option<Bytes> {
    let mut fields = form.split(|byte| *byte == b'&').map(|field| {
        let name_end = memchr(b'=', field).unwrap_or(field.len());
        (&field[..name_end], field.get(name_end + 1..).unwrap_or_default())
    });
    let (_, value) =
        fields.find(|(name, _)| name.len() <= NAME_BYTES_MAX && decode(name) == FIELD.as_bytes())?;
    Some(decode(value).into())
}

/// Form decoding: plus signs are spaces, `%XX` is a byte.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
                continue;
            }
            (b'+', ..) => decoded.push(b' '),
            (byte, ..) => decoded.push(*byte),
        }
        rest = after;
    }
    decoded.shrink_to_fit();
    decoded
}

async fn find_in_multipart(content_type: &str, body: Bytes) -> Result<Bytes, FieldProblem> {
    let malformed = |error: multer::Error| {
        FieldProblem::new("", format!("The request body is not a valid multipart/form-data form: {error}"))
    };
    let boundary = multer::parse_boundary(content_type).map_err(malformed)?;
    let whole = stream::iter([Ok::<Bytes, std::convert::Infallible>(body)]);
    let mut form = Multipart::new(whole, boundary);
    while let Some(mut field) = form.next_field().await.map_err(malformed)? {
        if field.name() != Some(FIELD) {
            continue;
        }
        // The form is already in memory: usually the field is one piece of it, which is not copied.
        let first = field.chunk().await.map_err(malformed)?.unwrap_or_default();
        let Some(second) = field.chunk().await.map_err(malformed)? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(more) = field.chunk().await.map_err(malformed)? {
            all.extend_from_slice(&more);
        }
        return Ok(all.freeze());
    }
    Err(params_missing())
}

fn params_missing() -> FieldProblem {
    FieldProblem::new("", "A form must carry the request as JSON text in the field `params`")
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn read_request(
        method: &str,
        target: &str,
        content_type: &str,
        body: &'static str,
    ) -> Result<String, String> {
        let request = Request::builder().method(method).uri(target).header(CONTENT_TYPE, content_type);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        match read_json_text(&parts, Bytes::from_static(body.as_bytes())).await {
            Ok(text) => Ok(String::from_utf8(text.to_vec()).unwrap()),
            Err(problem) => Err(problem.message),
        }
    }

    #[tokio::test]
    async fn a_json_body_is_read_whatever_its_content_type() {
        for content_type in
            ["application/json", "text/plain", "application/x-www-form-urlencoded", "nonsense"]
        {
            let body = r#"{"plain_body": "a&params=b"}"#;
            assert_eq!(
                read_request("POST", "/", content_type, body).await.as_deref(),
                Ok(body),
                "{content_type}"
            );
        }
    }

    #[tokio::test]
    async fn the_json_is_read_from_the_form_field_params() {
        let form = "APPLICATION/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(
            read_request("POST", "/", form, "a=1&params=%7B%22id%22%3A+1%7D").await.unwrap(),
            r#"{"id": 1}"#
        );
        assert_eq!(read_request("POST", "/", form, "par%61ms=100%&params=2").await.unwrap(), "100%");
        assert!(read_request("POST", "/", form, "id=1").await.unwrap_err().contains("field `params`"));
        assert_eq!(read_request("POST", "/", form, "").await.unwrap(), "");
    }

    #[tokio::test]
    async fn the_json_is_read_from_the_multipart_field_params() {
        let form = "multipart/form-data; boundary=xx";
        let body = "--xx\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n1\r\n\
                    --xx\r\nContent-Disposition: form-data; name=\"params\"\r\n\r\n{\"id\": 1}\r\n--xx--\r\n";
        assert_eq!(read_request("POST", "/", form, body).await.unwrap(), r#"{"id": 1}"#);
        assert!(read_request("POST", "/", form, "--xx--\r\n").await.unwrap_err().contains("field `params`"));
        assert!(
            read_request("POST", "/", form, "--xx\r\n").await.unwrap_err().contains("not a valid multipart")
        );
        assert!(
            read_request("POST", "/", "multipart/form-data", "x").await.unwrap_err().contains("not a valid")
        );
    }

    #[tokio::test]
    async fn get_may_have_params_in_the_query_and_post_may_not() {
        assert_eq!(read_request("GET", "/x?params=%7B%7D", "", "").await.unwrap(), "{}");
        assert_eq!(read_request("GET", "/x?params=%7B%7D", "", r#"{"a":1}"#).await.unwrap(), r#"{"a":1}"#);
        assert_eq!(read_request("POST", "/x?params=%7B%7D", "", "").await.unwrap(), "");
    }
}
