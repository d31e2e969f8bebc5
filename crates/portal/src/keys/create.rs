//! Creates an API key of a server and shows it once.

use axum::http::StatusCode;
use ipnet::IpNet;
use postroad_app::accounts::NewCredentialRequest;
use postroad_model::{Scope, ServerId, Timestamp};

use super::list::list;
use super::shown_once;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::refill::refill_answer;
use crate::visit::Form;
use crate::{days, once};

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let created = match read_request(server, &fields) {
        Ok(request) => visit.app().create_credential(&visit.requester, request).await.map_err(Problem::from),
        Err(text) => Err(Problem::Invalid(text)),
    };
    match created {
        Ok(created) => shown_once::show(&visit, server, created.value).await,
        Err(problem) => {
            let text = problem.into_form_text()?;
            let page = list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text.clone())).await;
            refill_answer(page, &format!("/servers/{server}/keys"), &fields, &text).await
        }
    }
}

/// Reads the field `allow`: networks or addresses, empty for any.
pub(crate) fn read_networks(fields: &Fields) -> Result<Vec<IpNet>, String> {
    let words = fields.text("allow").split([',', ' ', '\n', '\r']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let network = word.parse().or_else(|_| word.parse::<std::net::IpAddr>().map(Into::into));
            network.map_err(|_| format!("“{word}” is not a network such as 192.0.2.0/24."))
        })
        .collect()
}

/// Reads the field `expires_at`: the last day on which the key works, empty for none. The key expires when that day
/// ends in UTC.
pub(crate) fn read_last_day(fields: &Fields) -> Result<Option<Timestamp>, String> {
    let Some(day) = fields.filled("expires_at") else { return Ok(None) };
    days::end(day).map(Some).ok_or_else(|| "The last day should look like 2027-01-31.".to_owned())
}

fn read_request(server: i64, fields: &Fields) -> Result<NewCredentialRequest, String> {
    let (allow, expires_at) = (read_networks(fields)?, read_last_day(fields)?);
    let scope = Scope::parse(fields.text("scope"));
    let scope = scope.ok_or("Choose what the key may do: everything, send only or read only.")?;
    Ok(NewCredentialRequest {
        server: ServerId(server),
        name: fields.text("name").to_owned(),
        scope,
        test: fields.is_ticked("test"),
        hold: fields.is_ticked("hold"),
        allow,
        expires_at,
        login: None,
        idempotency_key: once::creation_key(fields),
    })
}
