//! Saves a template; if there are errors, the editor is shown again with each error at its line.

use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::templates::{
    LOCALES_MAX, Model, TemplateFields, TemplateProblem, TemplateRefusal, TextFields,
};
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use super::editor::{Draft, LocaleDraft, Mistake, Outcome, page_of};
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Maximum number of language rows that are read from the form: the allowed ones, and two more. One lets `app` refuse
/// too many languages with a reason; the other is the empty last row.
const LOCALE_ROWS_MAX: usize = LOCALES_MAX + 2;

pub(super) async fn create(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::TemplatesCreate).await?;
    let draft = read_draft(&fields);
    let saved = match template_fields(&draft) {
        Ok(request) => {
            let kind = Some(if draft.is_layout { "layout" } else { "standard" }.to_owned());
            let request = TemplateFields { kind, ..request };
            visit.app().create_template(&caller, request, fields.is_ticked("publish"), None).await
        }
        Err(text) => return page_of(&visit, server, draft, None, Outcome::problem(text)).await,
    };
    match saved {
        Ok(created) => {
            let id = created.value.template.id;
            Ok(see_other(&format!("/servers/{server}/templates/{id}?done=saved")))
        }
        Err(refusal) => show_refused(&visit, server, draft, None, refusal).await,
    }
}

pub(super) async fn update(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::TemplatesUpdate).await?;
    let draft = read_draft(&fields);
    let template = TemplateRef::Id(TemplateId(id));
    let saved = match template_fields(&draft) {
        Ok(request) => {
            visit
                .app()
                .change_template(&caller, template, draft.seen_version, request, fields.is_ticked("publish"))
                .await
        }
        Err(text) => return page_of(&visit, server, draft, Some(id), Outcome::problem(text)).await,
    };
    match saved {
        Ok(_) => Ok(see_other(&format!("/servers/{server}/templates/{id}?done=saved"))),
        Err(refusal) => show_refused(&visit, server, draft, Some(id), refusal).await,
    }
}

pub(super) fn read_draft(fields: &Fields) -> Draft {
    // Browsers send line ends as CRLF.
    let text = |name: &str| fields.raw(name).replace("\r\n", "\n");
    Draft {
        seen_version: fields.number("latest"),
        name: fields.text("name").to_owned(),
        alias: fields.text("alias").to_owned(),
        subject: fields.text("subject").to_owned(),
        html_body: text("html_body"),
        plain_body: text("plain_body"),
        sample_model: text("sample_model"),
        is_layout: fields.text("kind") == "layout",
        layout: fields.text("layout").to_owned(),
        is_mjml: fields.text("format") == "mjml",
        inline_css: fields.is_ticked("inline_css"),
        locales: (0..LOCALE_ROWS_MAX)
            .map(|at| LocaleDraft {
                tag: fields.text(&format!("locale_tag_{at}")).to_owned(),
                subject: fields.text(&format!("locale_subject_{at}")).to_owned(),
                html_body: text(&format!("locale_html_{at}")),
                plain_body: text(&format!("locale_plain_{at}")),
            })
            .filter(|locale| !locale.tag.is_empty())
            .collect(),
    }
}

pub(super) fn template_fields(draft: &Draft) -> Result<TemplateFields, String> {
    let filled = |text: &str| Some(text).filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned);
    let model: Option<Model> = match filled(&draft.sample_model) {
        None => None,
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            format!("The sample model is not a JSON object: line {}, {error}.", error.line())
        })?),
    };
    Ok(TemplateFields {
        alias: Some(filled(&draft.alias)),
        name: Some(draft.name.clone()),
        subject: Some(filled(&draft.subject)),
        html_body: Some(filled(&draft.html_body)),
        plain_body: Some(filled(&draft.plain_body)),
        sample_model: Some(model),
        layout: Some(filled(&draft.layout)),
        format: Some(if draft.is_mjml { "mjml" } else { "html" }.to_owned()),
        inline_css: Some(draft.inline_css),
        locales: Some(
            draft
                .locales
                .iter()
                .map(|locale| {
                    let texts = TextFields {
                        subject: filled(&locale.subject),
                        html_body: filled(&locale.html_body),
                        plain_body: filled(&locale.plain_body),
                    };
                    (locale.tag.clone(), texts)
                })
                .collect(),
        ),
        ..TemplateFields::default()
    })
}

pub(super) async fn show_refused(
    visit: &Visit,
    server: i64,
    draft: Draft,
    id: Option<i64>,
    refusal: TemplateRefusal,
) -> Answer {
    if let TemplateRefusal::OtherVersion(version) = refusal {
        let text = format!(
            "Somebody saved version {version} since this page was opened, so your texts were not saved. Look at that \
             version first. If you save again, your texts become the newest version."
        );
        let draft = Draft { seen_version: Some(version), ..draft };
        return page_of(visit, server, draft, id, Outcome::problem(text)).await;
    }
    if let TemplateRefusal::Invalid(problems) = refusal {
        let mistakes = problems.into_iter().map(|problem| mistake(problem, &draft)).collect();
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return page_of(visit, server, draft, id, Outcome { status, mistakes, ..Outcome::default() }).await;
    }
    let text = Problem::from(refusal).into_form_text()?;
    page_of(visit, server, draft, id, Outcome::problem(text)).await
}

pub(super) fn mistake(problem: TemplateProblem, draft: &Draft) -> Mistake {
    let (language, part) = match problem.part.strip_prefix("locales/").and_then(|rest| rest.split_once('/')) {
        Some((tag, part)) => (Some(tag), part),
        None => (None, problem.part.as_str()),
    };
    // Language tags are normalised when they are saved.
    let index = language.and_then(|tag| {
        draft.locales.iter().position(|one| one.tag.replace('_', "-").eq_ignore_ascii_case(tag))
    });
    let (subject, html, plain) = match index.and_then(|at| draft.locales.get(at)) {
        Some(locale) => (&locale.subject, &locale.html_body, &locale.plain_body),
        None => (&draft.subject, &draft.html_body, &draft.plain_body),
    };
    let (label, source, field, locale_field) = match part {
        "subject" => ("Subject", subject, "subject", "subject"),
        "plain_body" => ("Text", plain, "plain_body", "plain"),
        _ => ("HTML", html, "html_body", "html"),
    };
    let field = index.map_or_else(|| field.to_owned(), |at| format!("locale_{locale_field}_{at}"));
    let line = problem.line.checked_sub(1).and_then(|at| source.lines().nth(at)).unwrap_or_default();
    let mut place = label.to_owned();
    if let Some(tag) = language {
        place = format!("{place} ({tag})");
    }
    if problem.line > 0 {
        place = format!("{place}, line {}", problem.line);
    }
    Mistake { place, text: problem.message, line: line.to_owned(), field, number: problem.line }
}
