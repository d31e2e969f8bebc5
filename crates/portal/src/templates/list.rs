//! List of templates.

use askama::Template;
use postroad_app::access::Operation;
use postroad_model::TemplateId;
use postroad_store::TemplateKind;

use crate::answer::{Answer, page};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::query::page_after;
use crate::visit::Visit;

const PAGE_ROWS: usize = 100;

struct Row {
    id: i64,
    name: String,
    alias: Option<String>,
    is_layout: bool,
    latest: i64,
    published: Option<i64>,
    /// Whether the newest version is not published.
    has_draft: bool,
    updated_at: When,
}

#[derive(Template)]
#[template(path = "templates/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    /// Part of the name or alias to search for.
    q: String,
    rows: Vec<Row>,
    next: Option<String>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesList).await?;
    let (_, layout) = visit.server_layout(server, "Templates", Section::Templates).await?;
    let after = visit.query.number("after").map(TemplateId);
    let q = visit.query.text("q").to_owned();
    let part = Some(q.clone()).filter(|part| !part.is_empty());
    let (found, has_more) = visit.app().list_templates(&caller, part, after, PAGE_ROWS).await?;
    let next = page_after(&q, found.last().map(|last| last.id), has_more);
    let row = |template: postroad_store::Template| Row {
        id: template.id.0,
        name: template.name,
        alias: template.alias,
        is_layout: template.kind == TemplateKind::Layout,
        latest: template.latest,
        published: template.published,
        has_draft: template.published != Some(template.latest),
        updated_at: When(template.updated_at),
    };
    page(&ListPage { layout, server, q, rows: found.into_iter().map(row).collect(), next })
}
