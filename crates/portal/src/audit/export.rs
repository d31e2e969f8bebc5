//! Downloads the audit log as JSON lines, oldest first, with the filters of the list.

use axum::body::{Body, Bytes};
use futures_util::stream;
use postroad_app::App;
use postroad_app::accounts::{AccountRefusal, Requester};
use postroad_model::AccountId;
use postroad_store::AuditFilter;

use super::Log;
use super::filter::Filters;
use crate::answer::{Answer, download};
use crate::visit::Visit;

/// Entries read at once; each read is one piece of the answer.
const PIECE_ROWS: usize = 200;

struct Export {
    app: App,
    requester: Requester,
    account: AccountId,
    filter: AuditFilter,
    after: i64,
}

impl Export {
    async fn piece(&self) -> Result<(String, Option<i64>), AccountRefusal> {
        let filter = self.filter.clone();
        self.app.export_audit_lines(&self.requester, Some(self.account), filter, self.after, PIECE_ROWS).await
    }
}

/// Sends the log. The first piece is read before the answer begins, so that a refusal is an ordinary page.
pub(super) async fn send(visit: &Visit, log: Log) -> Answer {
    let filters = Filters::read(&visit.query, &visit.zone)?;
    filters.days.check()?;
    let filter = filters.selection();
    let (app, requester, account) = (visit.app().clone(), visit.requester.clone(), log.account_id());
    let export = Export { app, requester, account, filter, after: 0 };
    let (first, next) = export.piece().await?;
    let rest = next.map(|after| Export { after, ..export });
    let rest = stream::try_unfold(rest, next_piece);
    let first = stream::once(async move { Ok::<_, std::io::Error>(Bytes::from(first)) });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok(download("application/jsonl; charset=utf-8", "audit.jsonl", body))
}

async fn next_piece(export: Option<Export>) -> Result<Option<(Bytes, Option<Export>)>, std::io::Error> {
    let Some(export) = export else { return Ok(None) };
    let (lines, next) = export.piece().await.map_err(std::io::Error::other)?;
    Ok(Some((lines.into(), next.map(|after| Export { after, ..export }))))
}
