//! Fields of forms and queries.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::problem::Problem;
use crate::query::query;
use crate::work_permits::FormMemory;

/// Maximum size of a form, URL-encoded. The forms of the template editor may be larger: `visit::LargeForms`.
pub(crate) const FORM_BYTES_MAX: usize = 2 << 20;
/// Least memory that is reserved for a form.
const FORM_STEP_BYTES_MIN: usize = 4 << 10;
/// Time for a whole form to arrive.
const FORM_TIME_MAX: Duration = Duration::from_mins(2);
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

    /// Reads a form of somebody who need not be signed in, within `OPEN_FORM_BYTES_MAX` and `OPEN_FORM_TIME_MAX`.
    pub(crate) async fn of_open_body(body: Body) -> Result<Self, Problem> {
        Ok(Self::parse(&Self::read_bytes(body, OPEN_FORM_BYTES_MAX, OPEN_FORM_TIME_MAX).await?))
    }

    /// Reads the bytes of a form; refuses one that is larger than `bytes_max` or takes longer than `time_max`.
    pub(crate) async fn read_bytes(
        body: Body,
        bytes_max: usize,
        time_max: Duration,
    ) -> Result<Bytes, Problem> {
        let Ok(read) = timeout(time_max, to_bytes(body, bytes_max)).await else {
            return Err(too_slow(time_max));
        };
        read.map_err(|_| too_large(bytes_max))
    }

    /// Like `read_bytes`, within `FORM_BYTES_MAX` and `FORM_TIME_MAX`. Reserves memory for the bytes as they arrive.
    pub(crate) async fn read_bytes_reserving(
        body: Body,
        memory: &mut FormMemory<'_>,
    ) -> Result<Bytes, Problem> {
        let reading = async {
            let (mut bytes, mut reserved) = (Vec::<u8>::new(), 0);
            let mut pieces = body.into_data_stream();
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|_| too_large(FORM_BYTES_MAX))?;
                let needed = bytes.len() + piece.len();
                if needed > FORM_BYTES_MAX {
                    return Err(too_large(FORM_BYTES_MAX));
                }
                if needed > reserved {
                    // Rounded up to a power of two, so that a form waits for memory only a few times.
                    reserved = needed.next_power_of_two().max(FORM_STEP_BYTES_MIN);
                    memory.grow(reserved).await?;
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(bytes.into())
        };
        timeout(FORM_TIME_MAX, reading).await.unwrap_or_else(|_| Err(too_slow(FORM_TIME_MAX)))
    }

    /// The first value without surrounding spaces; empty if absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The first value as typed, with the browser's line ends.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Like `text`; `None` if the field is absent or blank.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
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
        let others = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let pairs: Vec<(&str, &str)> = others.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query(&pairs)
    }

    /// Whether a check box is ticked.
    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }
}

fn too_slow(time_max: Duration) -> Problem {
    Problem::Invalid(format!("The form did not arrive within {} seconds.", time_max.as_secs()))
}

fn too_large(bytes_max: usize) -> Problem {
    let max = match bytes_max >> 20 {
        0 => format!("{} KiB", bytes_max >> 10),
        mib => format!("{mib} MiB"),
    };
    Problem::Invalid(format!("The form is larger than {max}, or the connection broke."))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{future, stream};
    use postroad_model::AccountId;

    use super::*;
    use crate::work_permits::WorkPermits;

    #[tokio::test(start_paused = true)]
    async fn slow_forms_take_the_memory_of_their_account_only() {
        let permits = WorkPermits::default();
        let (slow, other) = (AccountId(1), AccountId(2));
        // Each form reserves 2 MiB, an eighth of the memory that an account may have, and then stalls.
        let reading = (0..9).map(|_| async {
            let first = stream::iter([Ok::<_, Infallible>(vec![b'x'; 1_100_000])]);
            let mut memory = permits.form(slow);
            Fields::read_bytes_reserving(Body::from_stream(first.chain(stream::pending())), &mut memory).await
        });
        let another = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut memory = permits.form(other);
            let read = Fields::read_bytes_reserving(Body::from("a=1".repeat(500_000)), &mut memory).await;
            assert_eq!(read.expect("there is memory for other accounts").len(), 1_500_000);
        };
        let (read, ()) = tokio::join!(future::join_all(reading), another);
        let refused = |wanted: fn(&Problem) -> bool| {
            read.iter().filter(|read| read.as_ref().is_err_and(wanted)).count()
        };
        assert_eq!(refused(|problem| matches!(problem, Problem::Unavailable(_))), 1);
        assert_eq!(refused(|problem| matches!(problem, Problem::Invalid(_))), 8, "they took too long");
        let mut memory = permits.form(slow);
        let large =
            Fields::read_bytes_reserving(Body::from(vec![b'x'; FORM_BYTES_MAX + 1]), &mut memory).await;
        assert!(matches!(large, Err(Problem::Invalid(_))), "{large:?}");
    }

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
