//! Suppresses a list of addresses, given as CSV or one per line.

use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::suppressions::{SuppressionRequest, read_csv};

use super::change::end_of_last_day;
use super::list::list;
use crate::answer::Answer;
use crate::display::counted;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::sentences;
use crate::redirect::see_other;
use crate::refill::refill_answer;
use crate::visit::{Form, Visit};

/// Maximum number of lines of one form; also of one call of the API. `postroad admin suppression import` takes any
/// number.
const LINES_MAX: usize = 10_000;
/// Lines passed to `app` at once.
const PART_LINES: usize = 500;
/// Maximum number of refused lines that are named.
const SHOWN_MAX: usize = 10;

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::SuppressionsImport).await?;
    let Some(read) = read_csv(fields.raw("csv"), LINES_MAX) else {
        let text = "The list has more than 10,000 lines: send it in parts.";
        return show_refused(&visit, server, &fields, text).await;
    };
    // Reason for lines without one.
    let reason = fields.filled("reason").map(ToOwned::to_owned);
    let expires_at = end_of_last_day(&fields);
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for line in read.lines {
        match line.request {
            Ok(request) => {
                let request = SuppressionRequest {
                    reason: request.reason.or_else(|| reason.clone()),
                    expires_at: request.expires_at.or_else(|| expires_at.clone()),
                    ..request
                };
                good.push((line.number, request));
            }
            Err(message) => wrong.push((line.number, message)),
        }
    }
    for part in good.chunks(PART_LINES) {
        let requests: Vec<_> = part.iter().map(|(_, request)| request.clone()).collect();
        let added = visit.app().add_suppressions(&caller.requester(), caller.server_id, &requests).await?;
        for ((number, _), added) in part.iter().zip(added) {
            wrong.extend(added.err().map(|problems| (*number, sentences(&problems))));
        }
    }
    if wrong.is_empty() {
        return Ok(see_other(&format!("/servers/{server}/suppressions?done=imported")));
    }
    wrong.sort_unstable();
    let named = wrong.iter().take(SHOWN_MAX).map(|(number, message)| format!("Line {number}: {message}"));
    let named = named.collect::<Vec<_>>().join(" ");
    let text =
        format!("{} not taken; the others are suppressed. {named}", counted(wrong.len() as u64, "line"));
    show_refused(&visit, server, &fields, &text).await
}

/// The page with the list as it was sent.
async fn show_refused(visit: &Visit, server: i64, fields: &Fields, text: &str) -> Answer {
    let page = list(visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text.to_owned())).await;
    refill_answer(page, &format!("/servers/{server}/suppressions/import"), fields, text).await
}
