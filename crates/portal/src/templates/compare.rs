//! Differences of a mail between two versions of its template.

use askama::Template;
use postroad_app::access::Operation;
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use super::preview::read_model;
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::visit::Visit;

struct Line {
    class: &'static str,
    text: String,
}

struct Part {
    name: &'static str,
    lines: Vec<Line>,
}

#[derive(Template)]
#[template(path = "templates/compare.html")]
struct ComparePage {
    layout: Layout,
    server: i64,
    id: i64,
    from: i64,
    to: i64,
    latest: i64,
    /// Language in which both versions are rendered.
    locale: String,
    /// Model of both versions, if it is not the sample.
    model: String,
    /// The model that was used.
    used_model: String,
    parts: Vec<Part>,
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesDiff).await?;
    let (_, layout) = visit.server_layout(server, "Compare versions", Section::Templates).await?;
    let versions = (visit.query.number("from"), visit.query.number("to"));
    let template = TemplateRef::Id(TemplateId(id));
    let latest = visit.app().find_template(&caller, template.clone(), None).await?.template.latest;
    let (model, locale) = (read_model(&visit.query)?, visit.query.filled("locale").map(ToOwned::to_owned));
    let diff = visit.app().diff_template(&caller, template, versions, model, locale).await?;
    let line = |text: &str| Line {
        class: match text.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            _ => "",
        },
        text: text.to_owned(),
    };
    let parts = diff
        .parts
        .iter()
        .map(|part| Part { name: part_words(part.part), lines: part.diff.lines().map(line).collect() });
    let parts = parts.collect();
    page(&ComparePage {
        layout,
        server,
        id,
        from: diff.from,
        to: diff.to,
        latest,
        locale: visit.query.text("locale").to_owned(),
        model: visit.query.text("model").to_owned(),
        used_model: serde_json::to_string_pretty(&diff.model).unwrap_or_default(),
        parts,
    })
}

fn part_words(part: &'static str) -> &'static str {
    match part {
        "subject" => "Subject",
        "html_body" => "HTML",
        "plain_body" => "Text",
        other => other,
    }
}
