//! Checks texts without saving them: errors, variables, a model to try them with.

use std::collections::{BTreeSet, HashSet};
use std::iter;

use postroad_boxed_futures::boxed_futures;
use postroad_store::{TemplateContent, TemplateKind, TemplateRef};

use super::compiled::{CompiledTemplate, Model, Problems, RenderedTemplate, template_problem};
use super::content::TemplateFields;
use super::language::TemplateProblem;
use super::refusal::TemplateRefusal;
use super::render::run_blocking;
use super::render_failure::RenderFailure;
use super::work::BatchWork;
use super::{missing_variables, variables};
use crate::{App, Caller};

/// Results of checking texts.
#[derive(Debug, Clone)]
pub struct Validation {
    pub problems: Vec<TemplateProblem>,
    /// Paths of the variables, such as `user.name` and `items[].price`.
    pub variables: Vec<String>,
    pub suggested_model: Model,
    /// The mail in the default language, rendered with the sample model, or else with the suggested model; `None` if
    /// there are problems, or if rendering with the suggested model fails.
    pub rendered: Option<RenderedTemplate>,
}

#[boxed_futures]
impl App {
    /// Checks the given fields; if a template is named, together with the other fields of its newest version.
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
        match self.build_content(caller, kind, fields, before, Vec::new()).await {
            Ok(content) => self.validate_content(caller, content).await,
            Err(TemplateRefusal::Invalid(problems)) => {
                let (variables, suggested_model) = (Vec::new(), Model::new());
                Ok(Validation { problems, variables, suggested_model, rendered: None })
            }
            Err(other) => Err(other),
        }
    }

    async fn validate_content(
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
            let (variables, suggested_model) =
                (variables::variable_names(&all), variables::suggested_model(&all));
            let trial = Trial { compiled: &compiled, layout: layout.as_deref() };
            let (rendered, problems) = match &sample {
                Some(sample) => trial.try_sample_model(sample),
                None => (trial.render(&suggested_model).ok(), Problems::new()),
            };
            Ok(Validation { problems, variables, suggested_model, rendered })
        })
        .await
    }

    /// The model for trying a version: its own sample, else a suggested model.
    pub(super) fn trial_model(content: &TemplateContent, all: &[&CompiledTemplate]) -> Model {
        content.sample_model.clone().unwrap_or_else(|| variables::suggested_model(all))
    }
}

/// Texts that are tried with a model.
struct Trial<'a> {
    compiled: &'a CompiledTemplate,
    layout: Option<&'a CompiledTemplate>,
}

impl Trial<'_> {
    fn render(&self, model: &Model) -> Result<RenderedTemplate, RenderFailure> {
        self.compiled.render(self.layout, model, None)
    }

    /// The mail in the default language, or the problems in any language. When the work limit of one batch is used up,
    /// the remaining languages are not tried.
    fn try_sample_model(&self, model: &Model) -> (Option<RenderedTemplate>, Problems) {
        let work = BatchWork::default();
        let all = [Some(self.compiled), self.layout].into_iter().flatten();
        let languages: BTreeSet<&str> = all.flat_map(CompiledTemplate::languages).collect();
        let (mut rendered, mut problems, mut is_absence_listed) = (None, Problems::new(), false);
        for language in iter::once(None).chain(languages.into_iter().map(Some)) {
            if work.is_used_up() {
                break;
            }
            let failure = match self.compiled.render_in_batch(&work, self.layout, model, language) {
                Ok(mail) => {
                    rendered = rendered.or(Some(mail));
                    continue;
                }
                Err(failure) => failure,
            };
            let mut variable_name = None;
            if let RenderFailure::VariableMissing { variable, .. } = &failure {
                variable_name = Some(format!("`{variable}`"));
                if !is_absence_listed {
                    is_absence_listed = true;
                    problems.extend(self.all_absent(model));
                }
            }
            let failure = problem_of(&failure);
            let is_listed = problems.iter().filter(|other| other.part == failure.part).any(|other| {
                let is_named = variable_name.as_ref().is_some_and(|name| other.message.contains(name));
                is_named || (other.line, other.column) == (failure.line, failure.column)
            });
            if !is_listed {
                problems.push(failure);
            }
        }
        (rendered.filter(|_| problems.is_empty()), problems)
    }

    /// The variables that the model lacks, in all texts; the first ones of a text if there are many.
    fn all_absent(&self, model: &Model) -> Problems {
        let of_layout = self.layout.into_iter().flat_map(CompiledTemplate::all_parts);
        let of_layout = of_layout.map(|(part, text)| (format!("layout/{part}"), text));
        let mut problems = Problems::new();
        for (part, text) in self.compiled.all_parts().chain(of_layout) {
            let absent = missing_variables::all_absent(text.lookups(), model).into_iter();
            problems.extend(absent.map(|found| template_problem(part.clone(), found)));
        }
        // `content` is never in the model: a layout gets it from the template. Other variables may be found twice,
        // because two texts may be generated from one field.
        let mut seen = HashSet::new();
        problems.retain(|problem| {
            !problem.message.contains("no variable `content`")
                && seen.insert((problem.part.clone(), problem.message.clone()))
        });
        problems
    }
}

fn problem_of(failure: &RenderFailure) -> TemplateProblem {
    let (part, line, column) = match failure {
        RenderFailure::VariableMissing { part, line, column, .. } => (part, *line, *column),
        RenderFailure::Failed { part, line, .. } => (part, *line, 0),
    };
    TemplateProblem { part: part.clone(), line, column, message: failure.message().to_owned() }
}

impl Validation {
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}
