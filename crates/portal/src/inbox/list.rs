//! List of caught messages.

use askama::Template;
use postroad_app::access::Operation;
use postroad_delivery::CaughtMessage;

use super::inbox;
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::live_watch;
use crate::redirect::see_other;
use crate::shown::{When, bytes};
use crate::visit::{Form, Visit};

const ROWS_MAX: usize = 100;

struct Row {
    id: u64,
    to: String,
    from: String,
    subject: String,
    size: String,
    at: When,
}

#[derive(Template)]
#[template(path = "inbox/list.html")]
struct ListPage {
    layout: Layout,
    rows: Vec<Row>,
    q: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let q = visit.query.text("q").to_lowercase();
    let fits = |message: &CaughtMessage| {
        [message.rcpt_to.as_str(), &message.mail_from, &message.subject]
            .iter()
            .any(|text| text.to_lowercase().contains(&q))
    };
    let caught = inbox(&visit, Operation::InstallationInbox)?.list(usize::MAX);
    let rows =
        caught.iter().filter(|message| fits(message)).take(ROWS_MAX).map(|message| row(message)).collect();
    let layout = visit.layout("Inbox", Section::Inbox).await?;
    page(&ListPage { layout, rows, q: visit.query.text("q").to_owned() })
}

fn row(message: &CaughtMessage) -> Row {
    Row {
        id: message.id,
        to: message.rcpt_to.to_string(),
        from: message.mail_from.clone(),
        subject: message.subject.clone(),
        size: bytes(message.raw.len() as u64),
        at: When(message.received_at),
    }
}

pub(super) async fn clear(form: Form) -> Answer {
    inbox(&form.visit, Operation::InstallationClearInbox)?.clear();
    Ok(see_other("/inbox?done=removed"))
}

pub(super) async fn live(visit: Visit) -> Answer {
    let changed = inbox(&visit, Operation::InstallationInbox)?.follow();
    live_watch::stream(&visit, changed)
}
