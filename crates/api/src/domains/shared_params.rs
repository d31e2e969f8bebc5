//! Fields that several of these calls have.

use postroad_app::domains::ImportedDkimKey;

use crate::fields::{Fields, Findings};

pub(super) fn read_name(fields: &mut Fields<'_>, findings: &mut Findings) -> String {
    if fields.is_absent("name") {
        findings.missing("name");
    }
    fields.text("name", findings).unwrap_or_default().into_owned()
}

pub(super) fn read_key(fields: &mut Fields<'_>, findings: &mut Findings) -> ImportedDkimKey {
    ImportedDkimKey {
        private_key: fields.text("private_key", findings).map(Into::into),
        selector: fields.text("selector", findings).map(Into::into),
        algorithm: fields.text("algorithm", findings).map(Into::into),
    }
}
