//! The editor: texts, sample model, errors at their line, preview, versions.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::templates::FoundTemplate;
use postroad_model::TemplateId;
use postroad_store::{TemplateFormat, TemplateKind, TemplateRef};
use serde_json::{Value, json};

use super::preview;
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::once::new_once;
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::visit::Visit;

const VERSION_ROWS_MAX: usize = 20;
/// Maximum number of templates that are searched for layouts.
const TEMPLATES_MAX: usize = 500;

/// The fields of the form.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) alias: String,
    pub(super) subject: String,
    pub(super) html_body: String,
    pub(super) plain_body: String,
    pub(super) sample_model: String,
    /// Whether the template is a layout, which surrounds the bodies of other templates.
    pub(super) is_layout: bool,
    /// Alias or id of the layout around the template.
    pub(super) layout: String,
    pub(super) is_mjml: bool,
    pub(super) inline_css: bool,
    pub(super) locales: Vec<LocaleDraft>,
    /// The newest version when the page was opened.
    pub(super) seen_version: Option<i64>,
}

/// The texts of one language; missing ones come from the template itself.
#[derive(Debug, Default)]
pub(super) struct LocaleDraft {
    pub(super) tag: String,
    pub(super) subject: String,
    pub(super) html_body: String,
    pub(super) plain_body: String,
}

/// An error, with its line.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Text, language and line, as the page names them.
    pub(super) place: String,
    pub(super) text: String,
    /// Content of the line.
    pub(super) line: String,
    /// Name of the field in the form.
    pub(super) field: String,
    /// Number of the line, from 1; 0 for the whole field.
    pub(super) number: usize,
}

/// Result of the last form, in addition to the page itself.
pub(super) struct Outcome {
    pub(super) status: StatusCode,
    pub(super) problem: Option<String>,
    pub(super) mistakes: Vec<Mistake>,
    /// Result, if the texts were checked and not saved.
    pub(super) checked: Option<CheckResult>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { status: StatusCode::OK, problem: None, mistakes: Vec::new(), checked: None }
    }
}

impl Outcome {
    /// The outcome of a form that was not saved, for this reason.
    pub(super) fn problem(text: String) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, problem: Some(text), ..Self::default() }
    }
}

/// Result of a check, besides mistakes.
pub(super) struct CheckResult {
    /// Variables of the texts, such as `user.name` and `items[].price`.
    pub(super) variables: Vec<String>,
    pub(super) suggested_model: String,
}

/// The mail of the version on the page.
struct RenderedMail {
    subject: String,
    plain_body: String,
    /// Why the mail cannot be rendered.
    problem: Option<String>,
}

/// A template that can be the layout of others.
struct LayoutChoice {
    value: String,
    name: String,
    is_chosen: bool,
}

pub(super) struct VersionRow {
    number: i64,
    created_at: When,
    is_published: bool,
}

/// Facts about an existing template, in addition to the texts in the form.
pub(super) struct SavedTemplate {
    id: i64,
    latest: i64,
    /// Version of the preview.
    shown: i64,
    published: Option<i64>,
    /// The version that was published before `published`.
    previous: Option<i64>,
    alias: Option<String>,
    versions: Vec<VersionRow>,
    /// Query of the page with older versions.
    older: Option<String>,
    rendered: RenderedMail,
}

impl SavedTemplate {
    /// Versions that a test message can use: number, label, and whether it is the version on the page.
    fn test_choices(&self) -> Vec<(i64, String, bool)> {
        let mut numbers: Vec<i64> = self.versions.iter().map(|version| version.number).collect();
        numbers.extend(self.published.into_iter().chain([self.shown]));
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
        numbers.dedup();
        let label = |number: i64| match self.published {
            Some(published) if published == number => format!("{number}, published"),
            _ => format!("{number}, not published"),
        };
        numbers.into_iter().map(|number| (number, label(number), number == self.shown)).collect()
    }
}

#[derive(Template)]
#[template(path = "templates/editor.html")]
struct EditorPage {
    layout: Layout,
    server: i64,
    draft: Draft,
    saved: Option<SavedTemplate>,
    problem: Option<String>,
    mistakes: Vec<Mistake>,
    checked: Option<CheckResult>,
    layouts: Vec<LayoutChoice>,
    /// Language of the preview.
    locale: String,
    /// Model of the preview, if it is not the sample.
    model: String,
    /// Command that sends the template.
    api_call: String,
    /// Sender of a test: an address of a verified domain, or empty.
    test_from: String,
    person: String,
    /// Idempotency key of the form that sends a test.
    once: String,
}

impl EditorPage {
    /// Numbers of the lines with mistakes in a field, separated by commas.
    fn bad_lines(&self, field: &str) -> String {
        let lines = self.mistakes.iter().filter(|mistake| mistake.field == field && mistake.number > 0);
        lines.map(|mistake| mistake.number.to_string()).collect::<Vec<_>>().join(",")
    }

    /// Query for the preview of the version on the page, in a language.
    fn of_locale(&self, tag: &str) -> String {
        let version = match &self.saved {
            Some(saved) if saved.shown != saved.latest => saved.shown.to_string(),
            _ => String::new(),
        };
        query(&[("version", &version), ("locale", tag), ("model", &self.model)])
    }

    /// Link to the page with the preview in a language.
    fn link_to_locale(&self, tag: &str) -> String {
        let query = self.of_locale(tag);
        // An empty `href` would keep the current query string.
        if query.is_empty() { "?".to_owned() } else { query }
    }

    /// Like `bad_lines`, for a text of the language at this position of the form.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn bad_lines_of(&self, part: &str, at: &usize) -> String {
        self.bad_lines(&format!("locale_{part}_{at}"))
    }
}

pub(super) async fn show_new(Path(server): Path<i64>, visit: Visit) -> Answer {
    visit.caller(server, Operation::TemplatesCreate).await?;
    let draft = Draft {
        subject: "Hello {{ name }}".to_owned(),
        html_body: "<p>Hello {{ name }},</p>\n<p>your code is <b>{{ code }}</b>.</p>\n".to_owned(),
        sample_model: "{\n  \"name\": \"Ann\",\n  \"code\": \"123456\"\n}".to_owned(),
        // The API's default.
        inline_css: true,
        ..Draft::default()
    };
    page_of(&visit, server, draft, None, Outcome::default()).await
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesGet).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let found = visit.app().find_template(&caller, template, visit.query.number("version")).await?;
    page_of(&visit, server, draft_of(&found), Some(id), Outcome::default()).await
}

fn draft_of(found: &FoundTemplate) -> Draft {
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
        is_layout: found.template.kind == TemplateKind::Layout,
        layout: text(&found.layout),
        is_mjml: found.version.content.format == TemplateFormat::Mjml,
        inline_css: found.version.content.inline_css,
        locales: found
            .version
            .content
            .locales
            .iter()
            .map(|(tag, texts)| LocaleDraft {
                tag: tag.clone(),
                subject: text(&texts.subject),
                html_body: text(&texts.html_body),
                plain_body: text(&texts.plain_body),
            })
            .collect(),
        seen_version: Some(found.template.latest),
    }
}

/// The editor with these texts, of a template that exists or a new one.
pub(super) async fn page_of(
    visit: &Visit,
    server: i64,
    mut draft: Draft,
    id: Option<i64>,
    outcome: Outcome,
) -> Answer {
    let Outcome { status, problem, mistakes, checked } = outcome;
    // Adds an empty row for one more language.
    if draft.locales.last().is_none_or(|last| !last.tag.is_empty()) {
        draft.locales.push(LocaleDraft::default());
    }
    let title = if draft.name.is_empty() { "New template" } else { &draft.name };
    let (_, layout) = visit.server_layout(server, title, Section::Templates).await?;
    let saved = match id {
        Some(id) => Some(read_saved(visit, server, id).await?),
        None => None,
    };
    let (api_call, test_from) = match &saved {
        Some(saved) => api_call(visit, server, saved, &draft.sample_model).await?,
        None => (String::new(), String::new()),
    };
    let person = visit.person.user.email.clone();
    let layouts = layouts(visit, server, id, &draft.layout).await?;
    let (locale, model) = (visit.query.text("locale").to_owned(), visit.query.text("model").to_owned());
    page_with_status(
        status,
        &EditorPage {
            layout,
            server,
            draft,
            saved,
            problem,
            mistakes,
            checked,
            layouts,
            locale,
            model,
            api_call,
            test_from,
            person,
            once: new_once(),
        },
    )
}

/// A curl command without the key, and the sender for tests. Without a verified domain, the sender is empty and the
/// command has a placeholder.
async fn api_call(
    visit: &Visit,
    server: i64,
    saved: &SavedTemplate,
    sample_model: &str,
) -> Result<(String, String), Problem> {
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let verified = find_verified_domain(visit, &caller).await?;
    let test_from = verified.map(|domain| format!("hello@{domain}")).unwrap_or_default();
    let model: Value = serde_json::from_str(sample_model).unwrap_or_else(|_| json!({}));
    let template = match &saved.alias {
        Some(alias) => json!({ "alias": alias, "model": model }),
        None => json!({ "id": saved.id, "model": model }),
    };
    let from = if test_from.is_empty() { "hello@your-domain.example" } else { &test_from };
    let message = json!({ "to": [visit.person.user.email], "from": from, "template": template });
    // In a shell, `'\''` is a single quote within single quotes.
    let message = message.to_string().replace('\'', "'\\''");
    let url = format!("{}/api/v1/send/message", visit.base_url);
    let call = format!(
        "curl {url} \\\n  -H 'X-Server-API-Key: YOUR_API_KEY' \\\n  -H 'Content-Type: application/json' \\\n  -d '{message}'"
    );
    Ok((call, test_from))
}

async fn layouts(
    visit: &Visit,
    server: i64,
    id: Option<i64>,
    chosen: &str,
) -> Result<Vec<LayoutChoice>, Problem> {
    let caller = visit.caller(server, Operation::TemplatesList).await?;
    let (found, _) = visit.app().list_templates(&caller, None, None, TEMPLATES_MAX).await?;
    let layouts = found.into_iter().filter(|one| one.kind == TemplateKind::Layout && Some(one.id.0) != id);
    Ok(layouts
        .map(|one| {
            let value = one.alias.unwrap_or_else(|| one.id.to_string());
            LayoutChoice { is_chosen: value == chosen || one.id.to_string() == chosen, value, name: one.name }
        })
        .collect())
}

async fn read_saved(visit: &Visit, server: i64, id: i64) -> Result<SavedTemplate, Problem> {
    let caller = visit.caller(server, Operation::TemplatesVersions).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let before = visit.query.number("versions_before");
    let (template, versions, has_more) =
        visit.app().list_template_versions(&caller, template, before, VERSION_ROWS_MAX).await?;
    let older = versions.last().filter(|_| has_more);
    let older = older.map(|last| query(&[("versions_before", &last.version.to_string())]));
    let rendered = match preview::render(visit, &caller, id).await {
        Ok(rendered) => RenderedMail {
            subject: rendered.subject.unwrap_or_default(),
            plain_body: rendered.plain_body.unwrap_or_default(),
            problem: None,
        },
        Err(problem) => RenderedMail {
            subject: String::new(),
            plain_body: String::new(),
            problem: Some(problem.into_form_text()?),
        },
    };
    let row = |version: postroad_store::TemplateVersionInfo| VersionRow {
        number: version.version,
        created_at: When(version.created_at),
        is_published: Some(version.version) == template.published,
    };
    Ok(SavedTemplate {
        id,
        latest: template.latest,
        shown: visit.query.number("version").unwrap_or(template.latest),
        published: template.published,
        previous: template.previous,
        alias: template.alias.clone(),
        versions: versions.into_iter().map(row).collect(),
        older,
        rendered,
    })
}
