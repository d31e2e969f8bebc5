//! Checks texts without saving them: errors, variables, a model to try them with.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{TemplateContent, TemplateKind, TemplateRef};

use super::compiled::{CompiledTemplate, Model, Problems, RenderedTemplate, problem};
use super::content::TemplateFields;
use super::language::TemplateProblem;
use super::refusal::TemplateRefusal;
use super::render::run_blocking;
use super::render_failure::RenderFailure;
use super::{missing, variables};
use crate::{App, Caller};

/// Results of checking texts.
#[derive(Debug, Clone)]
pub struct Validation {
    pub problems: Vec<TemplateProblem>,
    /// Such as `user.name` and `items[].price`.
    pub variables: Vec<String>,
    pub suggested_model: Model,
    /// With the sample model, or else with the suggested one; `None` if there are problems.
    pub rendered: Option<RenderedTemplate>,
}

#[boxed_futures]
impl App {
    /// Checks texts, applied to those of a template if one is named.
    pub async fn validate_template(
        &self,
        caller: &Caller,
        template: Option<TemplateRef>,
        fields: TemplateFields,
    ) -> Result<Validation, TemplateRefusal> {
        let (kind, before) = if let Some(template) = template {
            let found = self.find_template(caller, template, None).await?;
            (found.template.kind, found.version.content)
        } else {
            let is_layout = fields.kind.as_deref() == Some(TemplateKind::Layout.as_str());
            let kind = if is_layout { TemplateKind::Layout } else { TemplateKind::Standard };
            (kind, TemplateContent { inline_css: true, ..TemplateContent::default() })
        };
        match self.built(caller, kind, fields, before, Vec::new()).await {
            Ok(content) => self.described(caller, content).await,
            Err(TemplateRefusal::Invalid(problems)) => {
                let (variables, suggested_model) = (Vec::new(), Model::new());
                Ok(Validation { problems, variables, suggested_model, rendered: None })
            }
            Err(other) => Err(other),
        }
    }

    async fn described(
        &self,
        caller: &Caller,
        content: TemplateContent,
    ) -> Result<Validation, TemplateRefusal> {
        let engine = self.inner.templates.engine.clone();
        let sample = content.sample_model.clone();
        let compiled = run_blocking(move || {
            CompiledTemplate::compile(&engine, &content).map_err(TemplateRefusal::Invalid)
        })
        .await?;
        let layout = self.layout_of(caller.server_id, &compiled).await?;
        run_blocking(move || {
            let all: Vec<&CompiledTemplate> =
                [Some(&compiled), layout.as_deref()].into_iter().flatten().collect();
            let (variables, suggested_model) = (variables::variables(&all), variables::suggested_model(&all));
            let has_sample = sample.is_some();
            let model = sample.unwrap_or_else(|| suggested_model.clone());
            let (rendered, problems) = match compiled.render(layout.as_deref(), &model, None) {
                Ok(rendered) => (Some(rendered), Problems::new()),
                Err(failure) if has_sample => {
                    (None, explained(&compiled, layout.as_deref(), &model, &failure))
                }
                Err(_) => (None, Problems::new()),
            };
            Ok(Validation { problems, variables, suggested_model, rendered })
        })
        .await
    }

    /// The model for trying a version: its own sample, else a suggested one.
    pub(super) fn trial_model(content: &TemplateContent, all: &[&CompiledTemplate]) -> Model {
        content.sample_model.clone().unwrap_or_else(|| variables::suggested_model(all))
    }
}

/// Failures with the sample model: every variable that it lacks, or another error.
fn explained(
    compiled: &CompiledTemplate,
    layout: Option<&CompiledTemplate>,
    model: &Model,
    failure: &RenderFailure,
) -> Problems {
    let mut problems = Problems::new();
    if matches!(failure, RenderFailure::VariableMissing { .. }) {
        let of_layout = layout.into_iter().flat_map(CompiledTemplate::each_part);
        let of_layout = of_layout.map(|(part, text)| (format!("layout/{part}"), text));
        for (part, text) in compiled.each_part().chain(of_layout) {
            let absent = missing::all_absent(text.lookups(), model).into_iter();
            problems.extend(absent.map(|found| problem(part.clone(), found)));
        }
        problems.retain(|problem| !problem.message.contains("no variable `content`"));
    }
    if problems.is_empty() {
        let (part, line, column) = match failure {
            RenderFailure::VariableMissing { part, line, column, .. } => (part, *line, *column),
            RenderFailure::Failed { part, line, .. } => (part, *line, 0),
        };
        problems.push(TemplateProblem {
            part: part.clone(),
            line,
            column,
            message: failure.message().to_owned(),
        });
    }
    problems
}

/// Shortcuts for tests and pages.
impl Validation {
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}
