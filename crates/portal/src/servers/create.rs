//! Creates a server and continues to its first key.

use axum::http::StatusCode;
use postroad_app::accounts::NewServerRequest;
use postroad_model::{PoolId, ServerMode};

use super::list::list;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn submit(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let name = fields.text("name").to_owned();
    let mode = ServerMode::parse(fields.text("mode")).unwrap_or(ServerMode::Live);
    let pool = fields.number("pool").map(PoolId);
    let request = NewServerRequest { account: None, name: name.clone(), mode, pool, idempotency_key: None };
    match visit.app().create_server_as(&visit.requester, request).await {
        Ok(created) => Ok(see_other(&format!("/servers/{}/keys?ceiling=servers", created.value.id))),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text), &name).await
        }
    }
}
