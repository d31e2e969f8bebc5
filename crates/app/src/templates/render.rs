//! Rendering a template with a model: for a mail, or to look at.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;
use postroad_store::{Template, TemplateKind, TemplateRef};

use super::compiled::{CompiledTemplate, Model, RenderedTemplate};
use super::content::shown_name;
use super::refusal::TemplateRefusal;
use crate::{App, Caller, Refusal};

/// Renderings that took longer than this the last time are done off the async threads.
const INLINE_US_MAX: u64 = 1_000;
/// Likewise, those of larger models.
const INLINE_MODEL_VALUES_MAX: usize = 1_000;

/// The template to render.
#[derive(Debug)]
pub struct RenderRequest {
    pub template: TemplateRef,
    /// The published one if left out.
    pub version: Option<i64>,
    pub model: Model,
    pub locale: Option<String>,
}

/// The texts of a mail, and what its template goes by in analytics.
pub(crate) struct TemplateMail {
    pub(crate) rendered: RenderedTemplate,
    pub(crate) template: String,
}

#[boxed_futures]
impl App {
    /// Renders the version that is named, or the published one, or else the newest.
    pub async fn render_template(
        &self,
        caller: &Caller,
        request: RenderRequest,
    ) -> Result<(Template, i64, RenderedTemplate), TemplateRefusal> {
        let found = self.inner.store.find_template(caller.server_id, request.template).await?;
        let template = found.ok_or(TemplateRefusal::NotFound)?;
        let version = request.version.or(template.published).unwrap_or(template.latest);
        let compiled = self.compiled_template(caller.server_id, template.id, version).await?;
        let layout = self.layout_of(caller.server_id, &compiled).await?;
        let rendered = run(compiled, layout, request.model, request.locale).await?;
        Ok((template, version, rendered))
    }

    /// The texts of a mail by a template that is published.
    pub(crate) async fn render_mail(
        &self,
        server_id: ServerId,
        template: TemplateRef,
        model: Model,
        locale: Option<String>,
    ) -> Result<TemplateMail, TemplateRefusal> {
        let mut head = self.recent_template(server_id, template.clone()).await?;
        let compiled = match self.published(server_id, &head).await {
            // The look-up was a moment ago: the version may be gone meanwhile.
            Err(TemplateRefusal::VersionNotFound | TemplateRefusal::NotPublished) => {
                self.inner.templates.forget();
                head = self.recent_template(server_id, template).await?;
                self.published(server_id, &head).await?
            }
            other => other?,
        };
        let layout = self.layout_of(server_id, &compiled).await?;
        let rendered = run(compiled, layout, model, locale).await?;
        Ok(TemplateMail { rendered, template: shown_name(&head) })
    }

    async fn published(
        &self,
        server_id: ServerId,
        template: &Template,
    ) -> Result<Arc<CompiledTemplate>, TemplateRefusal> {
        // A layout alone is no mail.
        if template.kind == TemplateKind::Layout {
            return Err(TemplateRefusal::NotFound);
        }
        let version = template.published.ok_or(TemplateRefusal::NotPublished)?;
        self.compiled_template(server_id, template.id, version).await
    }

    /// The layout around a template: its published version, or its newest if none is.
    pub(super) async fn layout_of(
        &self,
        server_id: ServerId,
        compiled: &CompiledTemplate,
    ) -> Result<Option<Arc<CompiledTemplate>>, TemplateRefusal> {
        let Some(id) = compiled.layout else { return Ok(None) };
        let layout = self.recent_template(server_id, TemplateRef::Id(id)).await?;
        let version = layout.published.unwrap_or(layout.latest);
        self.compiled_template(server_id, id, version).await.map(Some)
    }
}

/// Renders, off the async threads unless it is known to be soon done.
pub(super) async fn run(
    compiled: Arc<CompiledTemplate>,
    layout: Option<Arc<CompiledTemplate>>,
    model: Model,
    locale: Option<String>,
) -> Result<RenderedTemplate, TemplateRefusal> {
    let is_quick = compiled.is_quick(INLINE_US_MAX) && has_at_most(&model, INLINE_MODEL_VALUES_MAX);
    let work = move || {
        compiled.render(layout.as_deref(), &model, locale.as_deref()).map_err(TemplateRefusal::Render)
    };
    if is_quick { work() } else { aside(work).await }
}

fn has_at_most(model: &Model, most: usize) -> bool {
    fn count(value: &serde_json::Value, left: &mut usize) -> bool {
        let Some(less) = left.checked_sub(1) else { return false };
        *left = less;
        match value {
            serde_json::Value::Array(entries) => entries.iter().all(|entry| count(entry, left)),
            serde_json::Value::Object(map) => map.values().all(|entry| count(entry, left)),
            serde_json::Value::String(text) => text.len() <= 16 << 10,
            _ => true,
        }
    }
    let mut left = most;
    model.values().all(|value| count(value, &mut left))
}

/// Does what takes its time off the async threads.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TemplateRefusal> + Send + 'static,
) -> Result<T, TemplateRefusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        if error.is_panic() {
            Refusal::Internal("rendering a template panicked".to_owned())
        } else {
            Refusal::Unavailable("the service is stopping".to_owned())
        }
    })?
}
