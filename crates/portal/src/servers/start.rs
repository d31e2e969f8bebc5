//! The start page: the server that was looked at last, else the first one, or the list when there is none yet.

use axum::http::HeaderMap;

use super::last_server;
use crate::answer::Answer;
use crate::redirect::see_other;
use crate::visit::Visit;

pub(super) async fn show(headers: HeaderMap, visit: Visit) -> Answer {
    if let Some(last) = last_server::find(&headers)
        && let Ok(server) = visit.app().find_server_as(&visit.requester, last).await
        && server.delete_at.is_none()
    {
        return Ok(see_other(&format!("/servers/{}", server.id)));
    }
    let (servers, _) = visit.app().list_servers_as(&visit.requester, visit.own_servers(), None, 1).await?;
    let path =
        servers.first().map_or_else(|| "/servers".to_owned(), |server| format!("/servers/{}", server.id));
    Ok(see_other(&path))
}
