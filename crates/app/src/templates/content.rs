//! The fields of a template as they are saved: checked, with the HTML and plain text generated from them.

use std::collections::BTreeMap;

use postroad_store::{Template, TemplateContent, TemplateFormat, TemplateKind, TemplateTexts};

use super::compiled::{CompiledTemplate, Model, Problems, canonical_locale, template_problem};
use super::engine::Engine;
use super::language::{Lookup, Segment, SourcePosition, TemplateProblem, check};
use super::limits::{
    ALIAS_BYTES_MAX, BODY_BYTES_MAX, CONTENT_BYTES_MAX, LOCALES_MAX, NAME_CHARS_MAX, SAMPLE_BYTES_MAX,
    SUBJECT_BYTES_MAX,
};
use super::markup::{StyleElements, check_css, inline_css, mjml_to_html, plain_text, position_of_styles};
use super::refusal::TemplateRefusal;
use super::work::CONTENT_VARIABLE;
use crate::FieldProblem;

/// The texts of one language as given by the caller.
#[derive(Debug, Clone, Default)]
pub struct TextFields {
    pub subject: Option<String>,
    pub html_body: Option<String>,
    pub plain_body: Option<String>,
}

/// The fields of a template as given by the caller. `None`: the field is not given, and keeps its value or, in a new
/// template, its default. `Some(None)`: the field is removed.
#[derive(Debug, Clone, Default)]
pub struct TemplateFields {
    pub alias: Option<Option<String>>,
    pub name: Option<String>,
    /// `standard` or `layout`; set when a template is created.
    pub kind: Option<String>,
    pub subject: Option<Option<String>>,
    pub html_body: Option<Option<String>>,
    pub plain_body: Option<Option<String>>,
    /// `html` or `mjml`.
    pub format: Option<String>,
    pub inline_css: Option<bool>,
    /// Id or alias of the layout.
    pub layout: Option<Option<String>>,
    /// By language tag; replaces all languages at once.
    pub locales: Option<Vec<(String, TextFields)>>,
    pub sample_model: Option<Option<Model>>,
}

impl TemplateFields {
    /// Whether fields are given that belong to a version.
    pub(super) fn has_content(&self) -> bool {
        self.subject.is_some()
            || self.html_body.is_some()
            || self.plain_body.is_some()
            || self.format.is_some()
            || self.inline_css.is_some()
            || self.layout.is_some()
            || self.locales.is_some()
            || self.sample_model.is_some()
    }

    /// Applies the given fields to the existing content. The caller looks up the layout.
    pub(super) fn apply(self, before: TemplateContent, problems: &mut Vec<FieldProblem>) -> TemplateContent {
        let mut content = before;
        let texts = &mut content.texts;
        let fields = [
            (&mut texts.subject, self.subject),
            (&mut texts.html_body, self.html_body),
            (&mut texts.plain_body, self.plain_body),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                *field = value.filter(|text| !text.is_empty());
            }
        }
        if let Some(format) = self.format {
            match TemplateFormat::parse(&format) {
                Some(format) => content.format = format,
                None => problems.push(FieldProblem::new("/format", "`format` should be `html` or `mjml`")),
            }
        }
        if let Some(inline_css) = self.inline_css {
            content.inline_css = inline_css;
        }
        if let Some(locales) = self.locales {
            content.locales = check_locales(locales, problems);
        }
        if let Some(sample) = self.sample_model {
            let bytes = sample
                .as_ref()
                .map_or(0, |sample| serde_json::to_string(sample).map_or(0, |text| text.len()));
            if bytes > SAMPLE_BYTES_MAX {
                let message = format!("`sample_model` is larger than {SAMPLE_BYTES_MAX} bytes of JSON");
                problems.push(FieldProblem::new("/sample_model", message));
            }
            content.sample_model = sample;
        }
        check_texts(&content, problems);
        content
    }
}

pub(super) fn check_alias(alias: Option<&str>, problems: &mut Vec<FieldProblem>) {
    let Some(alias) = alias else { return };
    let is_word = alias.len() <= ALIAS_BYTES_MAX
        && alias.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if !is_word {
        let message = format!(
            "`alias` should be 1 to {ALIAS_BYTES_MAX} letters, digits, dots, dashes and underscores, a letter first"
        );
        problems.push(FieldProblem::new("/alias", message));
    }
}

pub(super) fn check_name(name: &str, problems: &mut Vec<FieldProblem>) {
    if !(1..=NAME_CHARS_MAX).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        let message = format!("`name` should be 1 to {NAME_CHARS_MAX} characters without control characters");
        problems.push(FieldProblem::new("/name", message));
    }
}

fn check_locales(
    locales: Vec<(String, TextFields)>,
    problems: &mut Vec<FieldProblem>,
) -> BTreeMap<String, TemplateTexts> {
    if locales.len() > LOCALES_MAX {
        let message = format!("`locales` has more than {LOCALES_MAX} languages");
        problems.push(FieldProblem::new("/locales", message));
        return BTreeMap::new();
    }
    let mut checked = BTreeMap::new();
    for (tag, fields) in locales {
        let name = canonical_locale(&tag);
        let is_tag = (2..=8).contains(&name.split('-').next().unwrap_or_default().len())
            && name.split('-').all(|part| (1..=8).contains(&part.len()))
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        let excerpt: String = tag.chars().take(40).collect();
        if !is_tag {
            let message = format!("`{excerpt}` is not a language tag such as `de` or `de-AT`");
            problems.push(FieldProblem::new("/locales", message));
            continue;
        }
        let texts = TemplateTexts {
            subject: fields.subject.filter(|text| !text.is_empty()),
            html_body: fields.html_body.filter(|text| !text.is_empty()),
            plain_body: fields.plain_body.filter(|text| !text.is_empty()),
            ..TemplateTexts::default()
        };
        if checked.insert(name, texts).is_some() {
            problems.push(FieldProblem::new("/locales", format!("`locales` has `{excerpt}` twice")));
        }
    }
    checked
}

fn check_texts(content: &TemplateContent, problems: &mut Vec<FieldProblem>) {
    let mut total = 0;
    let all = content.locales.iter().map(|(name, texts)| (format!("/locales/{name}"), texts));
    for (pointer, texts) in all.chain([(String::new(), &content.texts)]) {
        let fields = [
            ("subject", &texts.subject, SUBJECT_BYTES_MAX),
            ("html_body", &texts.html_body, BODY_BYTES_MAX),
            ("plain_body", &texts.plain_body, BODY_BYTES_MAX),
        ];
        for (field, text, bytes_max) in fields {
            let Some(text) = text else { continue };
            total += text.len();
            if text.len() > bytes_max {
                let message = format!("`{field}` is longer than {bytes_max} bytes");
                problems.push(FieldProblem::new(format!("{pointer}/{field}"), message));
            }
            let refused = if field == "subject" {
                let is_refused = text.chars().any(|c| c.is_control() && c != '\t');
                is_refused.then_some("line breaks or control characters other than tabs")
            } else {
                text.contains('\0').then_some("NUL characters")
            };
            if let Some(refused) = refused {
                let message = format!("`{field}` must not contain {refused}");
                problems.push(FieldProblem::new(format!("{pointer}/{field}"), message));
            }
        }
    }
    if total > CONTENT_BYTES_MAX {
        let message = format!("The texts of the template are longer than {CONTENT_BYTES_MAX} bytes together");
        problems.push(FieldProblem::new("", message));
    }
}

/// Generates HTML and plain text, and compiles the template. Slow: not for async threads.
pub(super) fn build(
    engine: &Engine,
    kind: TemplateKind,
    mut content: TemplateContent,
) -> Result<(TemplateContent, CompiledTemplate), TemplateRefusal> {
    let mut problems = Problems::new();
    let (format, inlines_css) = (content.format, content.inline_css);
    let all = content.locales.iter_mut().map(|(name, texts)| (format!("locales/{name}/"), texts));
    for (prefix, texts) in all.chain([(String::new(), &mut content.texts)]) {
        build_texts(texts, &prefix, format, inlines_css, kind, &mut problems);
    }
    let has_body = content.texts.html().is_some() || content.texts.plain().is_some();
    if !has_body && problems.is_empty() {
        let message = "a template needs a `html_body`, a `plain_body` or both";
        problems.push(problem_without_position("html_body", message));
    }
    if kind == TemplateKind::Standard && content.texts.subject.is_none() {
        problems.push(problem_without_position("subject", "a template needs a `subject`"));
    }
    if kind == TemplateKind::Layout && content.layout.is_some() {
        problems.push(problem_without_position("layout", "a layout cannot have a `layout` itself"));
    }
    if !problems.is_empty() {
        return Err(TemplateRefusal::Invalid(problems));
    }
    let compiled = CompiledTemplate::compile(engine, &content).map_err(TemplateRefusal::Invalid)?;
    if kind == TemplateKind::Layout {
        check_layout(&compiled)?;
    }
    Ok((content, compiled))
}

/// Checks that each body of a layout uses `{{ content }}`, the content that the layout surrounds.
fn check_layout(compiled: &CompiledTemplate) -> Result<(), TemplateRefusal> {
    let is_content = |lookup: &Lookup| matches!(lookup.path.as_deref(), Some([Segment::Name(name)]) if name == CONTENT_VARIABLE);
    let without_content = compiled.all_parts().filter(|(_, text)| !text.lookups().iter().any(is_content));
    let mut parts: Vec<String> = without_content.map(|(part, _)| part).collect();
    // HTML, and the plain text generated from it, are one part.
    parts.dedup();
    if parts.is_empty() {
        return Ok(());
    }
    let message = "each body of a layout needs `{{ content }}`, where the body of a template is inserted";
    Err(TemplateRefusal::Invalid(parts.iter().map(|part| problem_without_position(part, message)).collect()))
}

/// Problem of a whole part.
fn problem_without_position(part: &str, message: &str) -> TemplateProblem {
    template_problem(part.to_owned(), (SourcePosition { line: 0, column: 0 }, message.to_owned()))
}

fn build_texts(
    texts: &mut TemplateTexts,
    prefix: &str,
    format: TemplateFormat,
    inlines_css: bool,
    kind: TemplateKind,
    problems: &mut Problems,
) {
    (texts.built_html, texts.built_plain) = (None, None);
    if kind == TemplateKind::Layout {
        texts.subject = None;
    }
    // Check the author's source before generating from it, so that positions are right. Check every text, to report all
    // errors.
    let before = problems.len();
    for (field, text) in
        [("subject", &texts.subject), ("html_body", &texts.html_body), ("plain_body", &texts.plain_body)]
    {
        let found = text.as_deref().and_then(|text| check(text).err()).unwrap_or_default();
        problems.extend(found.into_iter().map(|found| template_problem(format!("{prefix}{field}"), found)));
    }
    if problems.len() > before {
        return;
    }
    let Some(source) = texts.html_body.as_deref() else { return };
    let part = format!("{prefix}html_body");
    let checked = if inlines_css { check_css(source) } else { Ok(()) };
    let html = checked.and_then(|()| match format {
        TemplateFormat::Html => Ok(source.to_owned()),
        TemplateFormat::Mjml => mjml_to_html(source),
    });
    let html = match html {
        Ok(html) => html,
        Err(found) => {
            problems.push(template_problem(part, found));
            return;
        }
    };
    if texts.plain_body.is_none() {
        texts.built_plain = Some(plain_text(&html));
    }
    let styles = if kind == TemplateKind::Layout { StyleElements::Keep } else { StyleElements::Remove };
    let built = if inlines_css { inline_css(&html, styles) } else { Ok(html) };
    match built {
        Ok(built) if built.len() > BODY_BYTES_MAX => {
            let message = format!("the HTML generated from it is longer than {BODY_BYTES_MAX} bytes");
            problems.push(template_problem(part, (SourcePosition { line: 0, column: 0 }, message)));
        }
        Ok(built) => texts.built_html = (built != source).then_some(built),
        Err(error) => {
            let message = format!("the styles cannot be written into the elements: {error}");
            problems.push(template_problem(part, (position_of_styles(source), message)));
        }
    }
}

/// Name of a template in the data of sends: its alias, or its id if it has none.
pub(super) fn alias_or_id(template: &Template) -> String {
    template.alias.clone().unwrap_or_else(|| template.id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: Option<&str>, plain: Option<&str>) -> TemplateTexts {
        TemplateTexts {
            html_body: html.map(ToOwned::to_owned),
            plain_body: plain.map(ToOwned::to_owned),
            ..TemplateTexts::default()
        }
    }

    /// Parts of a layout that are reported as faulty.
    fn faulty_parts(default: TemplateTexts, german: TemplateTexts) -> Vec<String> {
        let locales = BTreeMap::from([("de".to_owned(), german)]);
        let content = TemplateContent { texts: default, locales, ..TemplateContent::default() };
        match build(&Engine::default(), TemplateKind::Layout, content) {
            Ok(_) => Vec::new(),
            Err(TemplateRefusal::Invalid(problems)) => {
                problems.into_iter().map(|problem| problem.part).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn layout_bodies_without_the_content_variable_are_reported() {
        let (good, bad) = (Some("<p>{{ content }}</p>"), Some("<p>x</p>"));
        assert_eq!(faulty_parts(texts(good, good), texts(good, None)), [""; 0]);
        assert_eq!(faulty_parts(texts(bad, None), texts(good, None)), ["html_body"]);
        assert_eq!(faulty_parts(texts(good, bad), texts(good, None)), ["plain_body"]);
        assert_eq!(
            faulty_parts(texts(good, bad), texts(bad, bad)),
            ["plain_body", "locales/de/html_body", "locales/de/plain_body"]
        );
    }

    #[test]
    fn a_subject_is_one_line_and_a_body_has_no_nul() {
        let with_subject =
            |subject: &str| TemplateTexts { subject: Some(subject.to_owned()), ..TemplateTexts::default() };
        for (texts, expected) in [
            (with_subject("a\tb"), None),
            (
                with_subject("a\nb"),
                Some("`subject` must not contain line breaks or control characters other than tabs"),
            ),
            (texts(Some("a\u{1}\n"), None), None),
            (texts(None, Some("a\0")), Some("`plain_body` must not contain NUL characters")),
        ] {
            let mut problems = Vec::new();
            check_texts(&TemplateContent { texts, ..TemplateContent::default() }, &mut problems);
            assert_eq!(problems.first().map(|problem| problem.message.as_str()), expected);
        }
    }
}
