//! Changes, revokes or rotates an API key of a server.

use std::time::Duration;

use postroad_app::accounts::CredentialChangeRequest;
use postroad_model::{Change, CredentialId, ServerId, Timestamp};

use super::create::{read_last_day, read_networks};
use super::shown_once;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Hours for which a rotated key can stay valid, so that its users have time to switch to the new key. The first
/// value is the default.
const GRACE_HOURS: [i64; 5] = [24, 0, 1, 7 * 24, 30 * 24];

pub(super) async fn revoke(Path((server, key)): Path<(i64, i64)>, form: Form) -> Answer {
    let id = find_key(&form.visit, server, key).await?;
    form.visit.app().revoke_credential_as(&form.visit.requester, id).await?;
    Ok(see_other(&format!("/servers/{server}/keys?done=revoked")))
}

pub(super) async fn rotate(Path((server, key)): Path<(i64, i64)>, form: Form) -> Answer {
    let id = find_key(&form.visit, server, key).await?;
    let hours = form.fields.number("hours").filter(|hours| GRACE_HOURS.contains(hours));
    let grace = Duration::from_hours(hours.unwrap_or(GRACE_HOURS[0]).unsigned_abs());
    let created = form.visit.app().rotate_credential_as(&form.visit.requester, id, grace).await?;
    shown_once::show(&form.visit, server, created).await
}

/// Changes name, networks, last day, and whether the key holds messages.
pub(super) async fn update(Path((server, key)): Path<(i64, i64)>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let id = find_key(&visit, server, key).await?;
    let request = read(&fields).map_err(Problem::Invalid)?;
    visit.app().update_credential(&visit.requester, id, request).await?;
    Ok(see_other(&format!("/servers/{server}/keys?done=saved")))
}

fn read(fields: &Fields) -> Result<CredentialChangeRequest, String> {
    Ok(CredentialChangeRequest {
        if_version: fields.number("version"),
        name: Some(fields.text("name").to_owned()),
        allow: Some(read_networks(fields)?),
        hold: Some(fields.is_ticked("hold")),
        expires_at: read_new_last_day(fields)?,
    })
}

/// Reads a new last day. If the day was not changed, the stored time of expiry stays: it may be before the day's end.
fn read_new_last_day(fields: &Fields) -> Result<Change<Timestamp>, String> {
    if fields.text("expires_at") == fields.text("had_last_day") {
        return Ok(Change::Keep);
    }
    Ok(read_last_day(fields)?.map_or(Change::Clear, Change::Set))
}

/// The key, if it belongs to this server: a key is changed on the page of its own server.
async fn find_key(visit: &Visit, server: i64, key: i64) -> Result<CredentialId, Problem> {
    let credential = visit.app().find_credential_as(&visit.requester, CredentialId(key)).await?;
    if credential.server_id == ServerId(server) { Ok(credential.id) } else { Err(Problem::NotFound) }
}
