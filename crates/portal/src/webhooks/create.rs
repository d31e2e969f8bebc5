//! Creates a webhook and shows its secret once.

use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::{Caller, WebhookDraft};
use postroad_model::{LimitedObject, Timestamp, WebhookId, WebhookUrl};

use super::list::{list, read_events};
use super::one::{self, Outcome};
use crate::answer::Answer;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Webhooks read at once to find one that the same form created.
const PAGE_ROWS: usize = 200;

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { mut visit, fields } = form;
    let caller = visit.caller(server, Operation::WebhooksCreate).await?;
    if let Some(id) = find_made_before(&visit, &caller, &fields).await? {
        return Ok(see_other(&format!("/servers/{server}/webhooks/{id}?done=exists")));
    }
    let url = fields.text("url").to_owned();
    let draft = WebhookDraft {
        url: url.clone(),
        events: read_events(&fields),
        format: fields.filled("format").map(ToOwned::to_owned),
        enabled: !fields.is_ticked("disabled"),
    };
    match visit.app().create_webhook(&caller, draft, None).await {
        Ok(created) => {
            let webhook = created.value;
            visit.warning = visit.app().ceiling_warning(caller.account_id, LimitedObject::Webhooks).await;
            let secret = Some(webhook.secret.0.clone());
            one::page_of(&visit, server, webhook, Outcome { secret, ..Outcome::default() }).await
        }
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text), &url).await
        }
    }
}

/// A webhook to the same address that was created since the form was made: the form was sent twice.
async fn find_made_before(
    visit: &Visit,
    caller: &Caller,
    fields: &Fields,
) -> Result<Option<WebhookId>, Problem> {
    let opened_at = fields.number("opened_at").map(Timestamp::from_micros);
    let (Some(opened_at), Ok(url)) = (opened_at, WebhookUrl::parse(fields.text("url"))) else {
        return Ok(None);
    };
    let mut after = None;
    loop {
        let (webhooks, has_more) = visit.app().list_webhooks(caller, after, PAGE_ROWS).await?;
        let same = webhooks.iter().find(|one| one.url == url.as_str() && one.created_at >= opened_at);
        if let Some(same) = same {
            return Ok(Some(same.id));
        }
        after = webhooks.last().map(|last| last.id);
        if !has_more {
            return Ok(None);
        }
    }
}
