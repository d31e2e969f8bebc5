//! Suppressed addresses as CSV: all, or the ones that the filters of the list select.

use axum::body::{Body, Bytes};
use futures_util::stream;
use postroad_app::App;
use postroad_app::access::Operation;
use postroad_model::ServerId;
use postroad_store::{StoreError, SuppressionCursor};

use super::filter::Filters;
use crate::answer::{Answer, download};
use crate::path::Path;
use crate::visit::Visit;

/// Addresses read for one piece.
const PIECE_ROWS: usize = 500;

/// Position at which the next piece begins.
enum Position {
    /// In the order of addresses.
    All { after: Option<String> },
    /// Newest first.
    Selected { filters: Filters, after: Option<SuppressionCursor> },
}

struct Export {
    app: App,
    server_id: ServerId,
    position: Position,
    is_first: bool,
}

/// The list, read and sent piece by piece.
pub(super) async fn download_csv(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::SuppressionsExport).await?;
    let filters = Filters::read(&visit.query, &visit.zone);
    filters.days.check()?;
    let position = if filters.is_set() {
        Position::Selected { filters, after: None }
    } else {
        Position::All { after: None }
    };
    let start =
        Some(Export { app: visit.app().clone(), server_id: caller.server_id, position, is_first: true });
    let body = Body::from_stream(stream::try_unfold(start, next_piece));
    Ok(download("text/csv; charset=utf-8", "suppressions.csv", body))
}

async fn next_piece(export: Option<Export>) -> Result<Option<(Bytes, Option<Export>)>, StoreError> {
    let Some(Export { app, server_id, position, is_first }) = export else { return Ok(None) };
    let (csv, next_position) = match position {
        Position::All { after } => {
            let page = app.export_suppressions(server_id, after, PIECE_ROWS).await?;
            (page.csv, page.next.map(|after| Position::All { after: Some(after) }))
        }
        Position::Selected { filters, after } => {
            let selection = filters.selection();
            let (csv, next) =
                app.export_selected_suppressions(server_id, selection, after, PIECE_ROWS).await?;
            (csv, next.map(|after| Position::Selected { filters, after: Some(after) }))
        }
    };
    // Every piece has a header line; the file gets only the first.
    let text =
        if is_first { csv } else { csv.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned()) };
    let rest = next_position.map(|position| Export { app, server_id, position, is_first: false });
    Ok(Some((text.into(), rest)))
}
