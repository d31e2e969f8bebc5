//! Fields shared by several calls of templates/*.

use std::borrow::Cow;

use postroad_app::templates::{TemplateFields, TextFields};
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use super::model::read_model;
use crate::fields::{Fields, Findings};
use crate::json::Json;

/// Maximum number of languages that are read; `app` has its own limit.
const LOCALES_READ_MAX: usize = 100;

/// Takes `id` or `alias`; one of them is required.
pub(super) fn read_template(fields: &mut Fields<'_>, findings: &mut Findings) -> TemplateRef {
    let problems_before = findings.problems.len();
    read_optional_template(fields, findings).unwrap_or_else(|| {
        if findings.problems.len() == problems_before {
            findings.problem("/id", "`id` or `alias` parameter is required but is missing");
        }
        TemplateRef::Id(TemplateId(0))
    })
}

/// Takes `id` or `alias`, if one of them is present.
pub(super) fn read_optional_template(
    fields: &mut Fields<'_>,
    findings: &mut Findings,
) -> Option<TemplateRef> {
    let id = read_loose_integer(fields, "id", findings).map(|id| TemplateRef::Id(TemplateId(id)));
    let alias = fields.text("alias", findings).map(|alias| TemplateRef::Alias(alias.into_owned()));
    id.or(alias)
}

/// Takes an integer; a number beyond 64 bits becomes 0, which is neither an id nor a version. `None` if the field is
/// absent or not an integer; the latter is recorded as a problem.
pub(super) fn read_loose_integer(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<i64> {
    match fields.take(name, findings)? {
        Json::Number(number) if !number.is_float() => Some(number.as_i64().unwrap_or(0)),
        other => {
            findings.wrong_type(&fields.pointer(name), "Integer", other.type_name());
            None
        }
    }
}

/// Takes alias and name in addition to the fields of `read_content`; `alias` names the field that sets the alias.
pub(super) fn read_fields(
    fields: &mut Fields<'_>,
    alias: &'static str,
    findings: &mut Findings,
) -> TemplateFields {
    TemplateFields {
        alias: read_text(fields, alias, findings),
        name: fields.text("name", findings).map(Cow::into_owned),
        ..read_content(fields, findings)
    }
}

/// Takes what a template version stores (texts, format, layout …), as far as it is present.
pub(super) fn read_content(fields: &mut Fields<'_>, findings: &mut Findings) -> TemplateFields {
    TemplateFields {
        kind: fields.text("type", findings).map(Cow::into_owned),
        subject: read_text(fields, "subject", findings),
        html_body: read_text(fields, "html_body", findings),
        plain_body: read_text(fields, "plain_body", findings),
        format: fields.text("format", findings).map(Cow::into_owned),
        inline_css: fields.flag("inline_css", findings),
        layout: read_layout(fields, findings),
        locales: read_locales(fields, findings),
        sample_model: read_model(fields, "sample_model", findings)
            .map(|model| Some(model).filter(|model| !model.is_empty())),
        ..TemplateFields::default()
    }
}

/// Takes a text; an empty one removes the value.
#[expect(clippy::option_option, reason = "absent, removed, or set")]
fn read_text(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<Option<String>> {
    let text = fields.text(name, findings).map(Cow::into_owned);
    text.map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// Takes `layout`: the id or alias of a layout; an empty text removes the layout.
#[expect(clippy::option_option, reason = "absent, removed, or set")]
fn read_layout(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Option<String>> {
    match fields.take("layout", findings)? {
        Json::Number(number) if !number.is_float() => Some(Some(number.as_str().to_owned())),
        Json::Text(text) => Some(Some(text.into_owned()).filter(|text| !text.is_empty())),
        other => {
            findings.wrong_type("/layout", "String", other.type_name());
            None
        }
    }
}

fn read_locales(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<Vec<(String, TextFields)>> {
    if fields.is_absent("locales") {
        fields.take("locales", findings);
        return None;
    }
    let Some(object) = fields.loose_object("locales", findings) else { return Some(Vec::new()) };
    let mut locales = Vec::new();
    for (pointer, name, json) in object.into_entries().take(LOCALES_READ_MAX) {
        let Some(mut texts) = Fields::of_object(pointer, json, findings) else { continue };
        let read = TextFields {
            subject: texts.text("subject", findings).map(Cow::into_owned),
            html_body: texts.text("html_body", findings).map(Cow::into_owned),
            plain_body: texts.text("plain_body", findings).map(Cow::into_owned),
        };
        texts.finish(findings);
        locales.push((name.into_owned(), read));
    }
    Some(locales)
}
