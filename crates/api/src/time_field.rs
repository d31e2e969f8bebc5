//! Fields that hold a time.

use postroad_model::Timestamp;

use crate::fields::{Fields, Findings};

/// Takes a time such as `from` or `to`, if present. Unlike `Fields::time`, refuses times before 1970.
pub(crate) fn read_time(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<Timestamp> {
    let text = fields.text(name, findings)?;
    let moment = Timestamp::parse_rfc3339(&text).filter(|moment| moment.as_micros() >= 0);
    if moment.is_none() {
        let message =
            format!("`{name}` has to be a time as RFC 3339 writes it, such as 2026-11-15T00:00:00Z");
        findings.problem(format!("/{name}"), message);
    }
    moment
}
