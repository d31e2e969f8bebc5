//! Differences of a rendered mail between two versions of its template, with the same model.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_store::TemplateRef;
use similar::TextDiff as LineDiff;

use super::compiled::{Model, RenderedTemplate};
use super::refusal::TemplateRefusal;
use super::render::{render_compiled, run_blocking};
use crate::{App, Caller};

/// A comparison that reaches this limit may report more changes than necessary.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);
const CONTEXT_LINES: usize = 3;

#[derive(Debug)]
pub struct TemplateDiff {
    pub from: i64,
    pub to: i64,
    /// The model with which both versions are rendered.
    pub model: Model,
    /// `subject`, `html_body` and `plain_body`, if either version has them.
    pub parts: Vec<TextDiff>,
}

/// One part of the mail, as each of the two versions renders it.
#[derive(Debug)]
pub struct TextDiff {
    pub part: &'static str,
    pub from: Option<String>,
    pub to: Option<String>,
    /// In the format of `diff -u`; empty if nothing changed.
    pub diff: String,
}

#[boxed_futures]
impl App {
    /// Compares the published version with the newest, unless versions are named.
    pub async fn diff_template(
        &self,
        caller: &Caller,
        template: TemplateRef,
        versions: (Option<i64>, Option<i64>),
        model: Option<Model>,
        locale: Option<String>,
    ) -> Result<TemplateDiff, TemplateRefusal> {
        let store = &self.inner.store;
        let template =
            store.find_template(caller.server_id, template).await?.ok_or(TemplateRefusal::NotFound)?;
        let (from, to) = versions;
        let to = to.unwrap_or(template.latest);
        let from = from.or(template.published).unwrap_or(template.latest);
        let (server_id, id) = (caller.server_id, template.id);
        let before = self.compiled_template(server_id, id, from).await?;
        let after = self.compiled_template(server_id, id, to).await?;
        let before_layout = self.layout_of(server_id, &before).await?;
        let after_layout = self.layout_of(server_id, &after).await?;
        let model = if let Some(model) = model {
            model
        } else {
            let content = self.with_version(template, Some(to)).await?.version.content;
            let layouts = [before_layout.as_deref(), after_layout.as_deref()];
            let all: Vec<_> = [&*before, &*after].into_iter().chain(layouts.into_iter().flatten()).collect();
            Self::trial_model(&content, &all)
        };
        let before = render_compiled(before, before_layout, model.clone(), locale.clone(), None).await?;
        let after = render_compiled(after, after_layout, model.clone(), locale, None).await?;
        let parts = run_blocking(move || Ok(compare(before, after))).await?;
        Ok(TemplateDiff { from, to, model, parts })
    }
}

fn compare(before: RenderedTemplate, after: RenderedTemplate) -> Vec<TextDiff> {
    let parts = [
        ("subject", before.subject, after.subject),
        ("html_body", before.html_body, after.html_body),
        ("plain_body", before.plain_body, after.plain_body),
    ];
    let parts = parts.into_iter().filter(|(_, from, to)| from.is_some() || to.is_some());
    parts
        .map(|(part, from, to)| {
            let diff = unified_diff(from.as_deref().unwrap_or_default(), to.as_deref().unwrap_or_default());
            TextDiff { part, from, to, diff }
        })
        .collect()
}

fn unified_diff(from: &str, to: &str) -> String {
    if from == to {
        return String::new();
    }
    let lines = LineDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(from, to);
    lines.unified_diff().context_radius(CONTEXT_LINES).missing_newline_hint(false).to_string()
}
