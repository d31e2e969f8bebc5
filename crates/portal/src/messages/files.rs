//! Downloads: the message as it is stored, and its attachments.

use super::content;
use crate::answer::{Answer, download};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

pub(super) async fn raw(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let _permit = visit.state.work.body(visit.person.user.account_id).await?;
    let bytes = content::bytes(&visit, server, &record).await?.ok_or(Problem::NotFound)?;
    Ok(download("message/rfc822", &format!("message-{id}.eml"), bytes))
}

pub(super) async fn attachment(Path((server, id, number)): Path<(i64, i64, usize)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let mut view = content::view(&visit, server, &record).await?.ok_or(Problem::NotFound)?;
    let at = number.checked_sub(1).filter(|at| *at < view.attachments.len()).ok_or(Problem::NotFound)?;
    let file = view.attachments.swap_remove(at);
    Ok(download("application/octet-stream", &file.filename, file.content))
}
