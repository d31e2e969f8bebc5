//! Actions on many messages, such as releasing them: on the ticked ones, or as a job on all that a search finds.
//! Also the job that erases an address.

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::{MessageAction, StartedJob};
use postroad_model::{EmailAddress, MessageId};

use super::act::Act;
use super::search::Search;
use crate::answer::{Answer, page};
use crate::display::count;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Maximum number of ticked messages in one form; a page lists fewer.
const TICKED_MAX: usize = 500;

#[derive(Template)]
#[template(path = "messages/ask.html")]
struct AskPage {
    layout: Layout,
    server: i64,
    question: String,
    /// The search in the query language.
    query: String,
    /// The list that the form came from.
    back: String,
    search: Search,
    act: &'static str,
    label: &'static str,
    consequence: &'static str,
    /// Whether the action cannot be undone.
    is_final: bool,
    matched: u64,
    count: String,
    /// Whether all matches were counted before the time limit of the count.
    is_complete: bool,
}

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    // Scheduled messages have a separate button for the whole search: of their actions, only cancelling can be a job.
    let is_cancel_all = form.fields.text("act") == "cancel_all";
    let act = Act::parse(if is_cancel_all { "cancel" } else { form.fields.text("act") })?;
    let caller = act.caller(&form.visit, server).await?;
    let (app, search) = (form.visit.app(), Search::of(&form.fields));
    if is_cancel_all || form.fields.is_ticked("all") {
        let Act::Message(action) = act else {
            return Err(Problem::Invalid(
                "This action changes only ticked messages: untick “all that match”, and tick messages. Nothing was changed."
                    .to_owned(),
            ));
        };
        if action == MessageAction::Erase && !search.is_searching() {
            return Err(Problem::Invalid(
                "Search for the messages to erase first. Nothing was changed.".to_owned(),
            ));
        }
        let query = search.whole_query();
        let is_dry_run = !form.fields.is_ticked("confirmed");
        let job = app.start_job(&caller, action, &query, is_dry_run).await?;
        if is_dry_run {
            return ask(&form.visit, server, action, search, job).await;
        }
        return redirect_to_job(server, job);
    }
    let ids: Vec<i64> = form.fields.all("id").take(TICKED_MAX).filter_map(|id| id.parse().ok()).collect();
    if ids.is_empty() {
        return Err(Problem::Invalid(
            "No message is ticked. Go back and tick some, or choose all.".to_owned(),
        ));
    }
    let mut is_partial = false;
    for id in ids {
        match act.run(app, &caller, MessageId(id)).await {
            Ok(()) => {}
            Err(Problem::Invalid(_) | Problem::NotFound) => is_partial = true,
            Err(other) => return Err(other),
        }
    }
    let done = search.query_with_notice(act.bulk_notice(is_partial));
    Ok(see_other(&format!("/servers/{server}/messages{done}")))
}

/// Says how many messages a job would change, and asks whether to start it.
async fn ask(
    visit: &Visit,
    server: i64,
    action: MessageAction,
    search: Search,
    counted: StartedJob,
) -> Answer {
    let (_, layout) = visit.server_layout(server, "All that match", Section::Messages).await?;
    let (act, label, consequence) = match action {
        MessageAction::Retry => ("retry", "Try again now", "Each is tried now."),
        MessageAction::Release => (
            "release",
            "Release",
            "They are queued, except those whose recipient is suppressed or that exceed a limit.",
        ),
        MessageAction::CancelHold => ("cancel_hold", "Cancel", "They are never sent; this cannot be undone."),
        MessageAction::CancelScheduled => ("cancel", "Cancel", "They are never sent; this cannot be undone."),
        MessageAction::Erase => ("erase", "Erase", "Recipient, subject and content go for good."),
    };
    let is_final = !matches!(action, MessageAction::Retry | MessageAction::Release);
    page(&AskPage {
        layout,
        server,
        question: format!("{label}: all that match?"),
        query: search.whole_query(),
        back: format!("/servers/{server}/messages{}", search.query()),
        search,
        act,
        label,
        consequence,
        is_final,
        matched: counted.matched,
        count: count(counted.matched),
        is_complete: counted.is_complete,
    })
}

/// Starts a job that erases all messages to an address, and the address itself.
pub(super) async fn erase(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::MessagesErase).await?;
    let address = EmailAddress::parse(form.fields.text("address"))
        .map_err(|error| Problem::Invalid(format!("This is not an e-mail address: {error}.")))?;
    let is_dry_run = false;
    redirect_to_job(server, form.visit.app().start_erasure(&caller, &address, is_dry_run).await?)
}

fn redirect_to_job(server: i64, started: StartedJob) -> Answer {
    let id = started.id.ok_or_else(|| Problem::Internal("a started job has no id".to_owned()))?;
    Ok(see_other(&format!("/servers/{server}/jobs/{id}")))
}
