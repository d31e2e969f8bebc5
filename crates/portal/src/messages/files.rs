//! Downloads: the message as it is stored, and its attachments.

use super::content::{self, ParsedMessage};
use crate::answer::{Answer, download};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

pub(super) async fn raw(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let _permit = visit.state.work.body(visit.person.user.account_id).await?;
    let bytes = content::bytes(&visit, server, &record).await?.ok_or(Problem::NotFound)?;
    let bytes = content::with_memory_share(&visit, bytes).await?;
    Ok(download("message/rfc822", &format!("message-{id}.eml"), bytes))
}

pub(super) async fn attachment(Path((server, id, number)): Path<(i64, i64, usize)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let parsed = content::view(&visit, server, &record).await?.ok_or(Problem::NotFound)?;
    attachment_of(&visit, parsed, number).await
}

/// One attachment of a message, counted from 1.
pub(crate) async fn attachment_of(visit: &Visit, parsed: ParsedMessage, number: usize) -> Answer {
    let ParsedMessage { mut view, permit: _permit } = parsed;
    let at = number.checked_sub(1).filter(|at| *at < view.attachments.len()).ok_or(Problem::NotFound)?;
    let file = view.attachments.swap_remove(at);
    let content = content::with_memory_share(visit, file.content).await?;
    Ok(download("application/octet-stream", &file.filename, content))
}
