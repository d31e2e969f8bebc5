//! Templates of a server: mails with variables, in several languages and versions.

mod cache;
mod change;
mod compiled;
mod content;
mod diff;
mod engine;
mod filters;
mod find;
mod invalid;
mod language;
mod limits;
mod markup;
mod missing_variables;
mod refusal;
mod render;
mod render_failure;
mod standalone;
mod text_failure;
mod validate;
mod variables;
mod work;

use std::sync::Arc;

use postroad_model::ServerId;
use postroad_store::{Template, TemplateRef};

pub use change::VersionRequest;
pub(crate) use change::parse_template_ref;
pub use compiled::{Model, RenderedTemplate};
pub use content::{TemplateFields, TextFields};
pub use diff::{TemplateDiff, TextDiff};
pub use find::FoundTemplate;
pub use language::TemplateProblem;
pub use limits::{CONTENT_BYTES_MAX, LOCALES_MAX, MODEL_BYTES_MAX};
pub use refusal::TemplateRefusal;
pub use render::RenderRequest;
pub use render_failure::RenderFailure;
pub use standalone::StandaloneTemplate;
pub use validate::Validation;
pub(crate) use work::BatchWork;

use crate::ttl_cache::TtlCache;

/// The engine, and caches of templates.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    engine: engine::Engine,
    /// Recently used templates without their texts, with the numbers of the newest and published versions.
    recent: TtlCache<(ServerId, TemplateRef), Arc<Template>>,
    compiled: cache::CompiledCache,
}

impl Templates {
    /// Forgets which versions are newest and published: after a change in this process, or if the cached numbers may be
    /// outdated. Compiled versions stay.
    pub(crate) fn forget(&self) {
        self.recent.clear();
    }
}
