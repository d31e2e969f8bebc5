//! Reports enclosed in another notice.

use super::parts::Parts;
use super::quoted::find_reply;
use super::{notice, sections};

/// A report that a gateway enclosed in its own notice. Used only if the outer notice names neither reason nor
/// recipient: then the enclosed report is the actual bounce, not a returned original.
pub(super) fn enclosed_report(parts: &Parts) -> Option<Parts> {
    let names_nothing = parts.status.is_none()
        && parts.feedback.is_none()
        && notice::is_notice(parts)
        && find_reply(&parts.notice).is_none()
        && !sections::names_recipients(parts);
    let enclosed = Parts::of(parts.enclosed_report.as_deref().filter(|_| names_nothing)?);
    enclosed.status.is_some().then_some(enclosed)
}
