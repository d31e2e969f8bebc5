//! Saves settings; suspends, resumes, deletes and restores a server.

use axum::http::StatusCode;
use postroad_app::ServerChangeRequest;
use postroad_app::access::Operation;
use postroad_app::accounts::ServerUpdateRequest;
use postroad_model::{Change, PoolId, ServerId};

use super::show::page_of;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::refill::refill_answer;
use crate::visit::{Form, Visit};

pub(super) async fn update(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::ServerUpdate).await?;
    let changed = match read(&fields) {
        Ok(request) => {
            let version = fields.number("version");
            visit.app().update_server_of_key(&caller, version, request).await.map_err(Problem::from)
        }
        Err(text) => Err(Problem::Invalid(text)),
    };
    match changed {
        Ok(_) => Ok(see_other(&format!("/servers/{server}/settings?done=saved"))),
        Err(problem) => show_refused(&visit, server, "settings", &fields, problem).await,
    }
}

/// The page with the refused form as it was sent. The form's action is `/servers/ID/` followed by `path`.
async fn show_refused(visit: &Visit, server: i64, path: &str, fields: &Fields, problem: Problem) -> Answer {
    let text = problem.into_form_text()?;
    let page = page_of(visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text.clone())).await;
    refill_answer(page, &format!("/servers/{server}/{path}"), fields, &text).await
}

fn read(fields: &Fields) -> Result<ServerChangeRequest, String> {
    let number = |name: &str, label: &str| read_number(fields, name, label);
    let hosts = fields.raw("excluded_hosts").split_whitespace().map(ToOwned::to_owned).collect();
    Ok(ServerChangeRequest {
        name: Some(fields.text("name").to_owned()),
        mode: Some(fields.text("mode").to_owned()),
        send_rate: fields.filled("send_rate").map_or(Change::Clear, |rate| Change::Set(rate.to_owned())),
        hourly_limit: number("hourly_limit", "Messages an hour")?,
        track_opens: Some(fields.is_ticked("track_opens")),
        track_clicks: Some(fields.is_ticked("track_clicks")),
        track_excluded_hosts: Some(hosts),
        bodies_days: number("bodies_days", "Days that content is kept")?,
        messages_days: number("messages_days", "Days that messages are kept")?,
    })
}

/// Sets the pool that mail leaves from; an empty field means the shared pool.
pub(super) async fn save_pool(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let request = ServerUpdateRequest {
        if_version: fields.number("version"),
        change: ServerChangeRequest::default(),
        pool: fields.number("pool").map_or(Change::Clear, |pool| Change::Set(PoolId(pool))),
        ceilings: ServerChangeRequest::default(),
    };
    match visit.app().update_server_as(&visit.requester, ServerId(server), request).await {
        Ok(_) => Ok(see_other(&format!("/servers/{server}/settings?done=saved"))),
        Err(refusal) => show_refused(&visit, server, "pool", &fields, refusal.into()).await,
    }
}

/// Sets the ceilings for the server's keys. Ceilings of the operator and of the account are stored separately.
pub(super) async fn save_ceilings(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let changed = match read_ceilings(&fields) {
        Ok(ceilings) => {
            let request = ServerUpdateRequest {
                if_version: fields.number("version"),
                change: ServerChangeRequest::default(),
                pool: Change::Keep,
                ceilings,
            };
            visit
                .app()
                .update_server_as(&visit.requester, ServerId(server), request)
                .await
                .map_err(Problem::from)
        }
        Err(text) => Err(Problem::Invalid(text)),
    };
    match changed {
        Ok(_) => Ok(see_other(&format!("/servers/{server}/settings?done=saved"))),
        Err(problem) => show_refused(&visit, server, "ceilings", &fields, problem).await,
    }
}

fn read_ceilings(fields: &Fields) -> Result<ServerChangeRequest, String> {
    let mode = if fields.is_ticked("development") { "development" } else { "live" };
    Ok(ServerChangeRequest {
        mode: Some(mode.to_owned()),
        send_rate: fields.filled("send_rate").map_or(Change::Clear, |rate| Change::Set(rate.to_owned())),
        hourly_limit: read_number(fields, "hourly_limit", "Messages an hour")?,
        bodies_days: read_number(fields, "bodies_days", "Days that content is kept")?,
        messages_days: read_number(fields, "messages_days", "Days that messages are kept")?,
        ..ServerChangeRequest::default()
    })
}

/// Reads a number; an empty field removes the limit.
fn read_number(fields: &Fields, name: &str, label: &str) -> Result<Change<i64>, String> {
    match fields.filled(name) {
        None => Ok(Change::Clear),
        Some(text) => {
            text.parse().map(Change::Set).map_err(|_| format!("{label} should be a number, or empty."))
        }
    }
}

pub(super) async fn suspend(Path(server): Path<i64>, form: Form) -> Answer {
    let reason = Some(form.fields.text("reason").to_owned());
    form.visit.app().set_server_suspension_as(&form.visit.requester, ServerId(server), reason).await?;
    Ok(see_other(&format!("/servers/{server}/settings?done=suspended")))
}

pub(super) async fn resume(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.app().set_server_suspension_as(&form.visit.requester, ServerId(server), None).await?;
    Ok(see_other(&format!("/servers/{server}/settings?done=resumed")))
}

pub(super) async fn restore(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.app().restore_server(&form.visit.requester, ServerId(server)).await?;
    Ok(see_other(&format!("/servers/{server}?done=restored")))
}

pub(super) async fn delete(Path(server): Path<i64>, form: Form) -> Answer {
    let record = form.visit.app().find_server_as(&form.visit.requester, ServerId(server)).await?;
    if form.fields.text("name") != record.name {
        let text = "Type the name of the server to delete it. Nothing was changed.";
        return Err(Problem::Invalid(text.to_owned()));
    }
    form.visit.app().delete_server(&form.visit.requester, ServerId(server)).await?;
    Ok(see_other("/servers?done=removed"))
}
