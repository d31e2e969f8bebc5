//! Renders a template with a model, for a mail or a preview.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;
use postroad_store::{Template, TemplateKind, TemplateRef};

use super::compiled::{CompiledTemplate, Model, RenderedTemplate};
use super::content::alias_or_id;
use super::refusal::TemplateRefusal;
use super::work::BatchWork;
use crate::{App, Caller, Refusal};

/// A template is rendered on a blocking thread if its last successful rendering took longer than this, or if it has had
/// none yet.
const INLINE_US_MAX: u64 = 1_000;
/// Templates are also rendered on a blocking thread if the model has more values than this.
const INLINE_MODEL_VALUES_MAX: usize = 1_000;

/// A template to render, and its model.
#[derive(Debug)]
pub struct RenderRequest {
    pub template: TemplateRef,
    /// If left out, the published version, or else the newest.
    pub version: Option<i64>,
    pub model: Model,
    pub locale: Option<String>,
}

/// The rendered texts of a mail, and the template's name in analytics.
pub(crate) struct TemplateMail {
    pub(crate) rendered: RenderedTemplate,
    pub(crate) template: String,
}

/// The published version of a template.
struct PublishedTemplate {
    template: Arc<Template>,
    compiled: Arc<CompiledTemplate>,
    layout: Option<Arc<CompiledTemplate>>,
}

#[boxed_futures]
impl App {
    /// Renders the named version, else the published one, else the newest.
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
        let rendered = render_compiled(compiled, layout, request.model, request.locale, None).await?;
        Ok((template, version, rendered))
    }

    /// Renders a mail from a published template, within the remaining work of its batch.
    pub(crate) async fn render_mail(
        &self,
        server_id: ServerId,
        template: TemplateRef,
        model: Model,
        locale: Option<String>,
        batch: Option<&Arc<BatchWork>>,
    ) -> Result<TemplateMail, TemplateRefusal> {
        let found = match self.find_published(server_id, template.clone()).await {
            // The cache may be outdated: a version may have been published meanwhile, or the cached version or its
            // layout deleted.
            Err(TemplateRefusal::VersionNotFound | TemplateRefusal::NotPublished) => {
                self.inner.templates.forget();
                self.find_published(server_id, template).await?
            }
            other => other?,
        };
        let PublishedTemplate { template, compiled, layout } = found;
        let rendered = render_compiled(compiled, layout, model, locale, batch.cloned()).await?;
        Ok(TemplateMail { rendered, template: alias_or_id(&template) })
    }

    /// Finds the published version with its layout. `VersionNotFound` also if the layout is gone.
    async fn find_published(
        &self,
        server_id: ServerId,
        template: TemplateRef,
    ) -> Result<PublishedTemplate, TemplateRefusal> {
        let template = self.recent_template(server_id, template).await?;
        // A layout alone is not a mail.
        if template.kind == TemplateKind::Layout {
            return Err(TemplateRefusal::NotFound);
        }
        let version = template.published.ok_or(TemplateRefusal::NotPublished)?;
        let compiled = self.compiled_template(server_id, template.id, version).await?;
        let layout = match self.layout_of(server_id, &compiled).await {
            Err(TemplateRefusal::NotFound) => return Err(TemplateRefusal::VersionNotFound),
            layout => layout?,
        };
        Ok(PublishedTemplate { template, compiled, layout })
    }

    /// The layout of a template, in the layout's published version, or in its newest version if none is published.
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

/// Renders a template, on a blocking thread unless the rendering is expected to be quick.
pub(super) async fn render_compiled(
    compiled: Arc<CompiledTemplate>,
    layout: Option<Arc<CompiledTemplate>>,
    model: Model,
    locale: Option<String>,
    batch: Option<Arc<BatchWork>>,
) -> Result<RenderedTemplate, TemplateRefusal> {
    let is_quick = compiled.is_quick(INLINE_US_MAX) && is_small(&model, INLINE_MODEL_VALUES_MAX);
    let work = move || {
        let (layout, locale) = (layout.as_deref(), locale.as_deref());
        let rendered = match &batch {
            Some(batch) => compiled.render_in_batch(batch, layout, &model, locale),
            None => compiled.render(layout, &model, locale),
        };
        rendered.map_err(TemplateRefusal::Render)
    };
    if is_quick { work() } else { run_blocking(work).await }
}

/// Whether the model has at most this many values, and no long text.
fn is_small(model: &Model, values_max: usize) -> bool {
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
    let mut left = values_max;
    model.values().all(|value| count(value, &mut left))
}

/// Runs slow work on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TemplateRefusal> + Send + 'static,
) -> Result<T, TemplateRefusal> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| {
        if error.is_panic() {
            Refusal::Internal("work on a template panicked".to_owned())
        } else {
            Refusal::Unavailable("the service is stopping".to_owned())
        }
    })?
}
