//! Reports that came back inside another notice.

use super::parts::Parts;
use super::quoted::find_reply;
use super::{notice, sections};

/// Gateways pass on a report inside a notice of their own. It is read in place of one that says nothing itself:
/// what it refuses, or whom, would be about the report, which is then only the message that came back.
pub(super) fn enclosed_report(parts: &Parts) -> Option<Parts> {
    let says_nothing = parts.status.is_none()
        && parts.feedback.is_none()
        && notice::is_notice(parts)
        && find_reply(&parts.notice).is_none()
        && !sections::begins_with_recipients(parts);
    let enclosed = Parts::of(parts.enclosed_report.as_deref().filter(|_| says_nothing)?);
    enclosed.status.is_some().then_some(enclosed)
}
