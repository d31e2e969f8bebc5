//! The editor: texts, sample model, mistakes at their line, preview, versions.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::templates::FoundTemplate;
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::shown::When;
use crate::visit::Visit;

const VERSIONS: usize = 20;

/// The texts in the form.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) alias: String,
    pub(super) subject: String,
    pub(super) html_body: String,
    pub(super) plain_body: String,
    pub(super) sample_model: String,
}

/// A mistake, with the line it is in.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) place: String,
    pub(super) text: String,
    pub(super) line: String,
}

pub(super) struct VersionRow {
    number: i64,
    created_at: When,
    is_published: bool,
}

/// A template that exists, beside the texts in the form.
pub(super) struct Saved {
    id: i64,
    latest: i64,
    published: Option<i64>,
    name_in_api: String,
    versions: Vec<VersionRow>,
}

#[derive(Template)]
#[template(path = "templates/editor.html")]
struct EditorPage {
    layout: Layout,
    server: i64,
    draft: Draft,
    saved: Option<Saved>,
    problem: Option<String>,
    mistakes: Vec<Mistake>,
    url: String,
    person: String,
}

pub(super) async fn show_new(Path(server): Path<i64>, visit: Visit) -> Answer {
    visit.caller(server, Operation::TemplatesCreate).await?;
    let draft = Draft {
        subject: "Hello {{ name }}".to_owned(),
        html_body: "<p>Hello {{ name }},</p>\n<p>your code is <b>{{ code }}</b>.</p>\n".to_owned(),
        sample_model: "{\n  \"name\": \"Ann\",\n  \"code\": \"123456\"\n}".to_owned(),
        ..Draft::default()
    };
    page_of(&visit, server, draft, None, StatusCode::OK, None, Vec::new()).await
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesGet).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let found = visit.app().find_template(&caller, template, visit.query.number("version")).await?;
    page_of(&visit, server, draft(&found), Some(id), StatusCode::OK, None, Vec::new()).await
}

fn draft(found: &FoundTemplate) -> Draft {
    let texts = &found.version.content.texts;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let model = found.version.content.sample_model.as_ref();
    Draft {
        name: found.template.name.clone(),
        alias: text(&found.template.alias),
        subject: text(&texts.subject),
        html_body: text(&texts.html_body),
        plain_body: text(&texts.plain_body),
        sample_model: model.and_then(|model| serde_json::to_string_pretty(model).ok()).unwrap_or_default(),
    }
}

/// The editor with these texts, of a template that exists or a new one.
pub(super) async fn page_of(
    visit: &Visit,
    server: i64,
    draft: Draft,
    id: Option<i64>,
    status: StatusCode,
    problem: Option<String>,
    mistakes: Vec<Mistake>,
) -> Answer {
    let title = if draft.name.is_empty() { "New template" } else { &draft.name };
    let (_, layout) = visit.server_layout(server, title, Section::Templates).await?;
    let saved = match id {
        Some(id) => Some(saved(visit, server, id).await?),
        None => None,
    };
    let url = format!("{}/api/v1/send/message", visit.base_url);
    let person = visit.person.user.email.clone();
    page_with(status, &EditorPage { layout, server, draft, saved, problem, mistakes, url, person })
}

async fn saved(visit: &Visit, server: i64, id: i64) -> Result<Saved, Problem> {
    let caller = visit.caller(server, Operation::TemplatesVersions).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let (template, versions, _) =
        visit.app().list_template_versions(&caller, template, None, VERSIONS).await?;
    let row = |version: postroad_store::TemplateVersionInfo| VersionRow {
        number: version.version,
        created_at: When(version.created_at),
        is_published: Some(version.version) == template.published,
    };
    Ok(Saved {
        id,
        latest: template.latest,
        published: template.published,
        name_in_api: template.alias.clone().unwrap_or_else(|| id.to_string()),
        versions: versions.into_iter().map(row).collect(),
    })
}
