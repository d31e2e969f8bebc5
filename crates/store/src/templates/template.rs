//! A template of a server, and the content of a version.

use std::collections::BTreeMap;

use postroad_model::{ServerId, TemplateId, Timestamp};
use serde::{Deserialize, Serialize};

/// A template without its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub id: TemplateId,
    pub server_id: ServerId,
    pub alias: Option<String>,
    pub name: String,
    pub kind: TemplateKind,
    /// The newest version.
    pub latest: i64,
    /// The version that mails are rendered from.
    pub published: Option<i64>,
    /// The version that was published before `published`.
    pub previous: Option<i64>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How a call names a template: by id or alias.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplateRef {
    Id(TemplateId),
    Alias(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// Rendered into mails.
    Standard,
    /// Surrounds the bodies of other templates.
    Layout,
}

impl TemplateKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Layout => "layout",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Standard, Self::Layout].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The whole content of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateContent {
    pub texts: TemplateTexts,
    /// Texts by language tag, such as `de` or `de-AT`. If a language lacks a text, the next more general language is
    /// used.
    pub locales: BTreeMap<String, TemplateTexts>,
    pub format: TemplateFormat,
    /// Whether style sheets are inlined into elements.
    pub inline_css: bool,
    /// The layout around the bodies.
    pub layout: Option<TemplateId>,
    /// Sample model for trying the template.
    pub sample_model: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Format of `html_body`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateFormat {
    #[default]
    Html,
    Mjml,
}

impl TemplateFormat {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Mjml => "mjml",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Html, Self::Mjml].into_iter().find(|format| format.as_str() == text)
    }
}

/// The texts of one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateTexts {
    pub subject: Option<String>,
    /// The text as its author wrote it.
    pub html_body: Option<String>,
    /// The text as its author wrote it; without it a plain text is generated from the HTML.
    pub plain_body: Option<String>,
    /// The HTML generated from `html_body` when the version was saved, if the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_html: Option<String>,
    /// The plain text generated from the HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_plain: Option<String>,
}

impl TemplateTexts {
    /// The HTML that is rendered.
    pub fn html(&self) -> Option<&str> {
        self.built_html.as_deref().or(self.html_body.as_deref())
    }

    /// The plain text that is rendered.
    pub fn plain(&self) -> Option<&str> {
        self.plain_body.as_deref().or(self.built_plain.as_deref())
    }
}
