//! Revokes or rotates a key.

use std::time::Duration;

use axum::extract::Path;
use postroad_model::{CredentialId, ServerId};

use super::shown_once;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// The old key stays good for this long, so that it can be replaced where it is used.
const GRACE: Duration = Duration::from_hours(24);

pub(super) async fn revoke(Path((server, key)): Path<(i64, i64)>, form: Form) -> Answer {
    let id = of_server(&form.visit, server, key).await?;
    form.visit.app().revoke_credential_of(&form.visit.by, id).await?;
    Ok(see_other(&format!("/servers/{server}/keys?done=revoked")))
}

pub(super) async fn rotate(Path((server, key)): Path<(i64, i64)>, form: Form) -> Answer {
    let id = of_server(&form.visit, server, key).await?;
    let created = form.visit.app().rotate_credential_of(&form.visit.by, id, GRACE).await?;
    shown_once::show(&form.visit, server, created).await
}

/// A key is changed on the page of its own server.
async fn of_server(visit: &Visit, server: i64, key: i64) -> Result<CredentialId, Problem> {
    let credential = visit.app().find_credential_of(&visit.by, CredentialId(key)).await?;
    if credential.server_id == ServerId(server) { Ok(credential.id) } else { Err(Problem::NotFound) }
}
