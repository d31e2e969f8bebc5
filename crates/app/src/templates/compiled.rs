//! A version of a template that can be rendered: its texts in every language, compiled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use minijinja::Value;
use minijinja::value::Serde;
use postroad_model::TemplateId;
use postroad_store::{TemplateContent, TemplateTexts};
use serde_json::Map;

use super::engine::{CompiledText, Engine, Escaping};
use super::filters::LocaleFormat;
use super::language::{SourcePosition, TemplateProblem};
use super::render_failure::RenderFailure;
use super::text_failure::TextFailure;
use super::work::{BatchWork, Context, OUTPUT_BYTES_MAX};

/// A model: the variables of a template.
pub type Model = Map<String, serde_json::Value>;

/// The texts of a mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedTemplate {
    pub subject: Option<String>,
    pub html_body: Option<String>,
    pub plain_body: Option<String>,
}

#[derive(Debug)]
pub(super) struct CompiledTemplate {
    texts: CompiledTexts,
    locales: BTreeMap<String, CompiledTexts>,
    pub(super) layout: Option<TemplateId>,
    /// Approximate memory in bytes.
    pub(super) bytes: usize,
    /// Duration of the last successful rendering, in microseconds; 0 before the first.
    last_render_us: AtomicU64,
}

#[derive(Debug, Default)]
struct CompiledTexts {
    subject: Option<CompiledText>,
    html: Option<CompiledText>,
    plain: Option<CompiledText>,
}

/// All problems of the texts.
pub(super) type Problems = Vec<TemplateProblem>;

impl CompiledTemplate {
    /// Compiles the saved texts, or returns all errors in them.
    pub(super) fn compile(engine: &Engine, content: &TemplateContent) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let texts = CompiledTexts::compile(engine, &content.texts, "", &mut problems);
        let locales: BTreeMap<String, CompiledTexts> = content
            .locales
            .iter()
            .map(|(locale, texts)| {
                let prefix = format!("locales/{locale}/");
                (locale.clone(), CompiledTexts::compile(engine, texts, &prefix, &mut problems))
            })
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let bytes = locales.values().chain([&texts]).map(CompiledTexts::bytes).sum();
        Ok(Self { texts, locales, layout: content.layout, bytes, last_render_us: AtomicU64::new(0) })
    }

    /// The languages that have their own texts.
    pub(super) fn languages(&self) -> impl Iterator<Item = &str> {
        self.locales.keys().map(String::as_str)
    }

    /// All texts, to collect their variables.
    pub(super) fn all_texts(&self) -> impl Iterator<Item = &CompiledText> {
        self.locales
            .values()
            .chain([&self.texts])
            .flat_map(|texts| [&texts.subject, &texts.html, &texts.plain].into_iter().flatten())
    }

    /// All texts, each with the name of the field that it comes from.
    pub(super) fn all_parts(&self) -> impl Iterator<Item = (String, &CompiledText)> {
        let of_default = [(String::new(), &self.texts)];
        let of_locales = self.locales.iter().map(|(name, texts)| (format!("locales/{name}/"), texts));
        of_default.into_iter().chain(of_locales).flat_map(|(prefix, texts)| {
            let all = [&texts.subject, &texts.html, &texts.plain].into_iter().flatten();
            all.map(move |text| (format!("{prefix}{}", text.field), text))
        })
    }

    /// Whether rendering is expected to take at most `limit_us`, judged by the last rendering.
    pub(super) fn is_quick(&self, limit_us: u64) -> bool {
        (1..=limit_us).contains(&self.last_render_us.load(Ordering::Relaxed))
    }

    /// Renders the texts of a mail in a language, with a layout around the bodies.
    pub(super) fn render(
        &self,
        layout: Option<&Self>,
        model: &Model,
        locale: Option<&str>,
    ) -> Result<RenderedTemplate, RenderFailure> {
        self.render_with_context(&context_of(model, locale), layout, model, locale)
    }

    /// Like `render`, for a message of a batch: takes the work from the batch's remaining budget.
    pub(super) fn render_in_batch(
        &self,
        batch: &BatchWork,
        layout: Option<&Self>,
        model: &Model,
        locale: Option<&str>,
    ) -> Result<RenderedTemplate, RenderFailure> {
        if batch.is_used_up() {
            let message =
                "rendering the templates of this batch would take too much work; send fewer messages at once";
            return Err(RenderFailure::Failed { part: String::new(), line: 0, message: message.to_owned() });
        }
        let context = context_of(model, locale);
        let rendered = self.render_with_context(&context, layout, model, locale);
        batch.spend(context.units_spent());
        rendered
    }

    fn render_with_context(
        &self,
        context: &Arc<Context>,
        layout: Option<&Self>,
        model: &Model,
        locale: Option<&str>,
    ) -> Result<RenderedTemplate, RenderFailure> {
        let started = Instant::now();
        let mut bytes_left = OUTPUT_BYTES_MAX;
        let mut rendered = RenderedTemplate::default();
        let fields: [(&str, Select, &mut Option<String>); 3] = [
            ("subject", |texts| texts.subject.as_ref(), &mut rendered.subject),
            ("html_body", |texts| texts.html.as_ref(), &mut rendered.html_body),
            ("plain_body", |texts| texts.plain.as_ref(), &mut rendered.plain_body),
        ];
        for (field, select, out) in fields {
            let Some((text, prefix)) = self.find(locale, select) else { continue };
            let failure_in = |prefix: String, text: &CompiledText| {
                let part = format!("{prefix}{}", text.field);
                move |failure| to_render_failure(part, failure)
            };
            let mut output = text.render(context, model, bytes_left).map_err(failure_in(prefix, text))?;
            if let Some((text, prefix)) =
                layout.filter(|_| field != "subject").and_then(|layout| layout.find(locale, select))
            {
                let content = match field {
                    "html_body" => Value::from_safe_string(output),
                    _ => Value::from(output),
                };
                let layout_context = context.for_layout(content);
                let failure_in_layout = failure_in(format!("layout/{prefix}"), text);
                output = text.render(&layout_context, model, bytes_left).map_err(failure_in_layout)?;
            }
            bytes_left -= output.len();
            *out = Some(output);
        }
        check_subject(&mut rendered)?;
        self.last_render_us.store((started.elapsed().as_micros() as u64).max(1), Ordering::Relaxed);
        Ok(rendered)
    }

    /// The text in the most specific language that has one (`de-AT`, then `de`, then the default), and the prefix of
    /// the text's field.
    fn find(&self, locale: Option<&str>, select: Select) -> Option<(&CompiledText, String)> {
        let mut tag = locale.map(canonical_locale);
        while let Some(name) = tag {
            if let Some(text) = self.locales.get(&name).and_then(select) {
                return Some((text, format!("locales/{name}/")));
            }
            tag = name.rsplit_once('-').map(|(general, _)| general.to_owned());
        }
        select(&self.texts).map(|text| (text, String::new()))
    }
}

fn context_of(model: &Model, locale: Option<&str>) -> Arc<Context> {
    Context::new(Value::from(Serde(model)), LocaleFormat::of(locale))
}

type Select = fn(&CompiledTexts) -> Option<&CompiledText>;

impl CompiledTexts {
    fn compile(engine: &Engine, texts: &TemplateTexts, prefix: &str, problems: &mut Problems) -> Self {
        let mut text = |field: &'static str, source: Option<&str>, escaping| {
            let compiled = engine.compile(field, source?, escaping);
            let part = format!("{prefix}{field}");
            let all =
                |found: Vec<_>| found.into_iter().map(move |found| template_problem(part.clone(), found));
            compiled.map_err(|found| problems.extend(all(found))).ok()
        };
        let subject = text("subject", texts.subject.as_deref(), Escaping::None);
        let mut html = text("html_body", texts.html(), Escaping::Html);
        let plain_field = if texts.plain_body.is_some() { "plain_body" } else { "html_body" };
        let mut plain = text(plain_field, texts.plain(), Escaping::None);
        if let Some(source) = &texts.html_body {
            if texts.built_html.is_some() {
                html = html.map(|html| html.generated_from(source));
            }
            if texts.plain_body.is_none() {
                plain = plain.map(|plain| plain.generated_from(source));
            }
        }
        Self { subject, html, plain }
    }

    fn bytes(&self) -> usize {
        [&self.subject, &self.html, &self.plain].into_iter().flatten().map(|text| text.bytes).sum()
    }
}

pub(super) fn template_problem(
    part: String,
    (position, message): (SourcePosition, String),
) -> TemplateProblem {
    TemplateProblem { part, line: position.line, column: position.column, message }
}

/// Normal form of a language tag: language in lower case, script capitalised, region in upper case.
/// Empty if the text cannot be a language tag.
pub(super) fn canonical_locale(text: &str) -> String {
    let canonical = |(index, subtag): (usize, &str)| match (index, subtag.len()) {
        (0, _) => subtag.to_ascii_lowercase(),
        (_, 2) => subtag.to_ascii_uppercase(),
        (_, 4) => subtag[..1].to_ascii_uppercase() + &subtag[1..].to_ascii_lowercase(),
        _ => subtag.to_ascii_lowercase(),
    };
    let is_tag = text.len() <= 35
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_tag {
        return String::new();
    }
    text.split(['-', '_']).enumerate().map(canonical).collect::<Vec<_>>().join("-")
}

/// Trims the subject and refuses line breaks in it: a line break from a variable would begin another header.
fn check_subject(rendered: &mut RenderedTemplate) -> Result<(), RenderFailure> {
    let Some(subject) = &mut rendered.subject else { return Ok(()) };
    if subject.trim().len() < subject.len() {
        *subject = subject.trim_matches([' ', '\t']).to_owned();
    }
    if subject.chars().any(|c| c.is_control() && c != '\t') {
        let message = "the subject has a line break or control character, which comes from a variable";
        return Err(RenderFailure::Failed {
            part: "subject".to_owned(),
            line: 1,
            message: format!("The template cannot be rendered: {message}"),
        });
    }
    Ok(())
}

fn position_text(part: &str, line: usize) -> String {
    if line == 0 { format!("`{part}`") } else { format!("`{part}`, line {line}") }
}

fn to_render_failure(part: String, failure: TextFailure) -> RenderFailure {
    match failure {
        TextFailure::VariableMissing { variable, position, nearest } => {
            let hint = nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            let at = position_text(&part, position.line);
            let message =
                format!("The model has no variable `{variable}`, which the template needs in {at}{hint}");
            RenderFailure::VariableMissing {
                variable,
                part,
                line: position.line,
                column: position.column,
                nearest,
                message,
            }
        }
        TextFailure::Failed { line, message } => {
            let message =
                format!("The template cannot be rendered: {message} ({})", position_text(&part, line));
            RenderFailure::Failed { part, line, message }
        }
    }
}
