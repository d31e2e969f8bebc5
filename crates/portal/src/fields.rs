//! Fields of forms and queries.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use tokio::time::timeout;

use crate::problem::Problem;
use crate::query::query;

/// Maximum size of a form, URL-encoded. The forms of the template editor may be larger: `visit::LargeForms`.
pub(crate) const FORM_BYTES_MAX: usize = 2 << 20;
/// Time for a whole form to arrive.
pub(crate) const FORM_TIME_MAX: Duration = Duration::from_mins(2);
/// Limits of forms before sign-in, which have a few short fields: anybody can send them.
const OPEN_FORM_BYTES_MAX: usize = 16 << 10;
const OPEN_FORM_TIME_MAX: Duration = Duration::from_secs(15);
/// Maximum number of fields that are read from a form or query; further ones are ignored.
const FIELDS_MAX: usize = 2_000;

/// Names and values in the order of the form; a name may occur several times.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(
            form_urlencoded::parse(text)
                .take(FIELDS_MAX)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    pub(crate) fn of_query(query: Option<&str>) -> Self {
        Self::parse(query.unwrap_or_default().as_bytes())
    }

    /// Reads a form of somebody who need not be signed in: small, and soon.
    pub(crate) async fn of_open_body(body: Body) -> Result<Self, Problem> {
        Ok(Self::parse(&Self::read(body, OPEN_FORM_BYTES_MAX, OPEN_FORM_TIME_MAX).await?))
    }

    /// Reads the bytes of a form; refuses one that is larger than `bytes_max` or takes longer than `time_max`.
    pub(crate) async fn read(body: Body, bytes_max: usize, time_max: Duration) -> Result<Bytes, Problem> {
        let Ok(read) = timeout(time_max, to_bytes(body, bytes_max)).await else {
            let seconds = time_max.as_secs();
            return Err(Problem::Invalid(format!("The form did not arrive within {seconds} seconds.")));
        };
        read.map_err(|_| {
            let max = match bytes_max >> 20 {
                0 => format!("{} KiB", bytes_max >> 10),
                mib => format!("{mib} MiB"),
            };
            Problem::Invalid(format!("The form is larger than {max}, or the connection broke."))
        })
    }

    /// The first value without surrounding spaces; empty if absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The first value as typed, with the browser's line ends.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }

    /// Like `text`; `None` if the field is absent or blank.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    /// A filter that is `yes`, `no`, or empty for both.
    pub(crate) fn yes_or_no(&self, name: &str) -> Option<bool> {
        match self.text(name) {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }

    /// Query string of all filled fields except `names`, with its question mark.
    pub(crate) fn query_without(&self, names: &[&str]) -> String {
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let kept: Vec<(&str, &str)> = kept.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query(&kept)
    }

    /// Whether a check box is ticked.
    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_name() {
        let fields = Fields::parse(b"a=+x+&id=1&id=2&box=on&empty=");
        assert_eq!(fields.text("a"), "x");
        assert_eq!(fields.raw("a"), " x ");
        assert_eq!(fields.all("id").collect::<Vec<_>>(), ["1", "2"]);
        assert!(fields.is_ticked("box") && !fields.is_ticked("empty") && !fields.is_ticked("other"));
        assert_eq!((fields.filled("empty"), fields.number("id")), (None, Some(1)));
    }
}
