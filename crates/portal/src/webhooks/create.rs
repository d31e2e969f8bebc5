//! Creates a webhook and shows its secret once.

use axum::http::StatusCode;
use postroad_app::WebhookDraft;
use postroad_app::access::Operation;
use postroad_app::accounts::Created;
use postroad_model::LimitedObject;

use super::list::{list, read_events};
use super::one::{self, Outcome};
use crate::answer::Answer;
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::refill::refill_answer;
use crate::visit::Form;

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { mut visit, fields } = form;
    let caller = visit.caller(server, Operation::WebhooksCreate).await?;
    let draft = WebhookDraft {
        url: fields.text("url").to_owned(),
        events: read_events(&fields),
        format: fields.filled("format").map(ToOwned::to_owned),
        enabled: !fields.is_ticked("disabled"),
    };
    match visit.app().create_webhook(&caller, draft, once::creation_key(&fields)).await {
        // The form was sent before: the secret was shown then.
        Ok(Created { value, is_replay: true }) => {
            Ok(see_other(&format!("/servers/{server}/webhooks/{}?done=exists", value.id)))
        }
        Ok(Created { value: webhook, .. }) => {
            visit.warning = visit.app().ceiling_warning(caller.account_id, LimitedObject::Webhooks).await;
            let secret = Some(webhook.secret.0.clone());
            one::page_of(&visit, server, webhook, Outcome { secret, ..Outcome::default() }).await
        }
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            let page = list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text.clone())).await;
            refill_answer(page, &format!("/servers/{server}/webhooks"), &fields, &text).await
        }
    }
}
