//! The start page: the only or first server, or the list when there is none yet.

use crate::answer::Answer;
use crate::redirect::see_other;
use crate::visit::Visit;

pub(super) async fn show(visit: Visit) -> Answer {
    let (servers, _) = visit.app().list_servers_as(&visit.by, visit.own_servers(), None, 1).await?;
    let path =
        servers.first().map_or_else(|| "/servers".to_owned(), |server| format!("/servers/{}", server.id));
    Ok(see_other(&path))
}
