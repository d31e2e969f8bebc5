//! Creates a webhook and shows its secret once.

use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::WebhookDraft;
use postroad_app::access::Operation;

use super::list::{list, read_events};
use super::one;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::visit::Form;

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::WebhooksCreate).await?;
    let url = fields.text("url").to_owned();
    let draft = WebhookDraft {
        url: url.clone(),
        events: read_events(&fields),
        format: fields.filled("format").map(ToOwned::to_owned),
        enabled: true,
    };
    match visit.app().create_webhook(&caller, draft, None).await {
        Ok(created) => {
            let webhook = created.value;
            let secret = webhook.secret.0.clone();
            one::page_of(&visit, server, webhook, Some(secret), None).await
        }
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text), &url).await
        }
    }
}
