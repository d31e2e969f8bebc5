//! JSON form of a template.

use std::collections::BTreeMap;

use crate::documented::ToSchema;
use postroad_app::templates::FoundTemplate;
use postroad_model::Timestamp;
use postroad_store::{Template, TemplateTexts, TemplateVersionInfo};
use serde::Serialize;

use crate::endpoint::Call;
use crate::envelope::{AnswerMemory, Flags, Success};
use crate::failure::Failure;

/// A template without its texts. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateHeadOut {
    id: i64,
    #[schema(example = "welcome")]
    alias: Option<String>,
    #[schema(example = "Welcome mail")]
    name: String,
    /// `standard` or `layout`.
    r#type: &'static str,
    /// The newest version.
    version: i64,
    /// The version that mails are rendered from.
    published_version: Option<i64>,
    /// `published` if the newest version is published, else `draft`.
    state: &'static str,
    created_at: String,
    updated_at: String,
}

/// A template with one of its versions. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateOut {
    id: i64,
    #[schema(example = "welcome")]
    alias: Option<String>,
    #[schema(example = "Welcome mail")]
    name: String,
    /// `standard` or `layout`.
    r#type: &'static str,
    #[schema(example = "Welcome, {{ name }}")]
    subject: Option<String>,
    /// As it was given.
    html_body: Option<String>,
    /// The text as it was sent, or generated from the HTML.
    plain_body: Option<String>,
    /// Whether `plain_body` was generated from the HTML.
    plain_body_generated: bool,
    /// Format of `html_body`: `html` or `mjml`.
    format: &'static str,
    /// The HTML that is rendered, if it differs from `html_body`: generated from MJML, or with styles inlined.
    built_html_body: Option<String>,
    inline_css: bool,
    /// Alias or id of the layout.
    layout: Option<String>,
    /// By language tag.
    locales: BTreeMap<String, TextsOut>,
    #[schema(value_type = Option<Object>)]
    sample_model: Option<serde_json::Map<String, serde_json::Value>>,
    /// The version shown.
    version: i64,
    latest_version: i64,
    /// The version that mails are rendered from.
    published_version: Option<i64>,
    /// `published`; `draft` if it is newer than the published one, or none is published; `superseded` if it is older.
    state: &'static str,
    created_at: String,
    updated_at: String,
}

/// The texts of one language.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextsOut {
    subject: Option<String>,
    html_body: Option<String>,
    plain_body: Option<String>,
}

/// A version without its texts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateVersionOut {
    version: i64,
    /// `published`, `draft` or `superseded`.
    state: &'static str,
    created_at: String,
    /// When it was last published.
    published_at: Option<String>,
}

fn state(version: i64, published: Option<i64>) -> &'static str {
    match published {
        Some(published) if published == version => "published",
        Some(published) if version < published => "superseded",
        _ => "draft",
    }
}

impl From<Template> for TemplateHeadOut {
    fn from(template: Template) -> Self {
        Self {
            id: template.id.0,
            alias: template.alias,
            name: template.name,
            r#type: template.kind.as_str(),
            version: template.latest,
            published_version: template.published,
            state: if template.published == Some(template.latest) { "published" } else { "draft" },
            created_at: template.created_at.to_rfc3339(),
            updated_at: template.updated_at.to_rfc3339(),
        }
    }
}

impl From<FoundTemplate> for TemplateOut {
    fn from(found: FoundTemplate) -> Self {
        let FoundTemplate { template, version, layout } = found;
        let content = version.content;
        let plain_body_generated = content.texts.plain_body.is_none() && content.texts.built_plain.is_some();
        let number = version.info.version;
        let built_html_body = content.texts.built_html.clone();
        let texts = TextsOut::from(content.texts);
        Self {
            id: template.id.0,
            alias: template.alias,
            name: template.name,
            r#type: template.kind.as_str(),
            subject: texts.subject,
            html_body: texts.html_body,
            plain_body: texts.plain_body,
            plain_body_generated,
            format: content.format.as_str(),
            built_html_body,
            inline_css: content.inline_css,
            layout,
            locales: content.locales.into_iter().map(|(name, texts)| (name, texts.into())).collect(),
            sample_model: content.sample_model,
            version: number,
            latest_version: template.latest,
            published_version: template.published,
            state: state(number, template.published),
            created_at: template.created_at.to_rfc3339(),
            updated_at: template.updated_at.to_rfc3339(),
        }
    }
}

impl TemplateOut {
    /// Estimated memory to build and write this answer.
    fn bytes_to_answer(&self) -> usize {
        let texts = [&self.html_body, &self.plain_body, &self.built_html_body].into_iter().flatten();
        let locales = self.locales.values().flat_map(|texts| [&texts.html_body, &texts.plain_body]).flatten();
        // Escaping at most doubles a text, except for control characters.
        2 * texts.chain(locales).map(String::len).sum::<usize>() + 4_096
    }
}

impl From<TemplateTexts> for TextsOut {
    fn from(texts: TemplateTexts) -> Self {
        Self {
            subject: texts.subject,
            html_body: texts.html_body,
            plain_body: texts.plain_body.or(texts.built_plain),
        }
    }
}

impl TemplateVersionOut {
    pub(super) fn new(info: TemplateVersionInfo, published: Option<i64>) -> Self {
        Self {
            version: info.version,
            state: state(info.version, published),
            created_at: info.created_at.to_rfc3339(),
            published_at: info.published_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Answer of calls that return one template. The answer may be large, so its memory is reserved.
pub(super) async fn template_answer(
    call: &Call,
    found: FoundTemplate,
    warnings: Vec<String>,
) -> Result<Success<TemplateOut>, Failure> {
    let data = TemplateOut::from(found);
    let memory = call.reserve_answer(data.bytes_to_answer()).await?.into();
    Ok(Success { data, flags: Flags { warnings, ..Flags::default() }, memory })
}

/// Like `template_answer`, for a call that changed the template: the call succeeds even if no memory is free.
pub(super) async fn changed_template_answer(
    call: &Call,
    found: FoundTemplate,
    warnings: Vec<String>,
) -> Success<TemplateOut> {
    let data = TemplateOut::from(found);
    let reserved = call.reserve_answer(data.bytes_to_answer()).await;
    let memory = reserved.map_or(AnswerMemory::Exempt, AnswerMemory::from);
    Success { data, flags: Flags { warnings, ..Flags::default() }, memory }
}
