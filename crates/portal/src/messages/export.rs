//! Results of a search as CSV, read and sent piece by piece.

use std::fmt::Write as _;

use axum::body::{Body, Bytes};
use futures_util::stream;
use postroad_app::access::Operation;
use postroad_app::{App, Caller};
use postroad_model::MessageId;
use postroad_store::{SearchFilter, SearchItem, StoreError};

use super::search::Search;
use crate::answer::{Answer, download};
use crate::csv::cell;
use crate::path::Path;
use crate::problem::{Problem, sentences};
use crate::visit::Visit;

/// Maximum number of rows of one file.
const ROWS_MAX: usize = 100_000;
/// Rows of one read.
const PIECE_ROWS: usize = 500;
const HEADER_LINE: &str =
    "id,accepted_at,status,to,from,subject,tag,template,message_id,size,test,held_reason,token\r\n";

struct Export {
    app: App,
    caller: Caller,
    filter: SearchFilter,
    before: Option<MessageId>,
    rows_left: usize,
}

pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let filter = Search::of(&visit.query).request().filter();
    let filter = filter.map_err(|problems| Problem::Invalid(sentences(&problems)))?;
    let export = Export { app: visit.app().clone(), caller, filter, before: None, rows_left: ROWS_MAX };
    let head = stream::once(async { Ok(Bytes::from_static(HEADER_LINE.as_bytes())) });
    let rows = stream::try_unfold(Some(export), next_piece);
    let body = Body::from_stream(futures_util::StreamExt::chain(head, rows));
    Ok(download("text/csv; charset=utf-8", "messages.csv", body))
}

/// Fails while the service stops: the body then ends with an error, so that no client takes the file for complete.
async fn next_piece(export: Option<Export>) -> Result<Option<(Bytes, Option<Export>)>, StoreError> {
    let Some(export) = export.filter(|export| export.rows_left > 0) else { return Ok(None) };
    if export.app.is_stopping() {
        return Err(StoreError::Unavailable("the service is stopping".to_owned()));
    }
    let rows = PIECE_ROWS.min(export.rows_left);
    let found =
        export.app.search_messages(&export.caller, export.filter.clone(), export.before, rows).await?;
    let mut text = String::new();
    for item in &found.items {
        push(&mut text, item);
    }
    let rows_left = export.rows_left.saturating_sub(found.items.len());
    let rest = found.next.map(|next| Export { before: Some(next), rows_left, ..export });
    Ok(Some((text.into(), rest)))
}

fn push(text: &mut String, item: &SearchItem) {
    // Writing into a String cannot fail.
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
        item.id,
        item.created_at.to_rfc3339_millis(),
        item.status,
        cell(&item.rcpt_to),
        cell(&item.mail_from),
        cell(&item.subject),
        cell(item.tag.as_deref().unwrap_or_default()),
        cell(item.template.as_deref().unwrap_or_default()),
        cell(&item.message_id),
        item.size,
        item.test,
        cell(item.held_reason.as_deref().unwrap_or_default()),
        item.token,
    );
}
