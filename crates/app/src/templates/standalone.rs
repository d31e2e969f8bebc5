//! A template without a store, for benchmarks, fuzzing and tests of the language.

use postroad_store::{TemplateContent, TemplateKind};

use super::compiled::{CompiledTemplate, Model, RenderedTemplate};
use super::content;
use super::engine::Engine;
use super::refusal::TemplateRefusal;
use super::render_failure::RenderFailure;
use super::variables;

/// Texts built and compiled as if they were saved.
#[derive(Debug)]
pub struct StandaloneTemplate {
    pub content: TemplateContent,
    compiled: CompiledTemplate,
}

impl StandaloneTemplate {
    pub fn build(content: TemplateContent) -> Result<Self, TemplateRefusal> {
        let (content, compiled) = content::build(&Engine::default(), TemplateKind::Standard, content)?;
        Ok(Self { content, compiled })
    }

    pub fn render(&self, model: &Model, locale: Option<&str>) -> Result<RenderedTemplate, RenderFailure> {
        self.compiled.render(None, model, locale)
    }

    /// Paths of the variables, such as `user.name` and `items[].price`.
    pub fn variables(&self) -> Vec<String> {
        variables::variable_names(&[&self.compiled])
    }

    pub fn suggested_model(&self) -> Model {
        variables::suggested_model(&[&self.compiled])
    }
}
