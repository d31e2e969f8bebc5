//! Changes of pools, their addresses and warm-ups.

use std::net::IpAddr;

use axum::response::Response;
use postroad_app::ip_pools::{AddressChange, NewAddress, NewPoolRequest, WarmUpChange};
use postroad_model::{AccountId, PoolId};

use crate::answer::Answer;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::visit::Form;

const LIST: &str = "/account/pools";

pub(super) async fn create(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let name = fields.text("name").to_owned();
    let account = fields.number("account").map(AccountId);
    let request = NewPoolRequest { name, shared: fields.is_ticked("shared"), account, idempotency_key: None };
    visit.app().create_ip_pool(&visit.requester, request).await?;
    Ok(redirect_to_list("created"))
}

pub(super) async fn delete(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let id = fields.number("pool").map(PoolId).ok_or(Problem::NotFound)?;
    visit.app().delete_ip_pool(&visit.requester, id).await?;
    Ok(redirect_to_list("removed"))
}

pub(super) async fn add_address(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let address = read_address(&fields)
        .map_err(|_| Problem::Invalid("The address should look like 192.0.2.1 or 2001:db8::1.".to_owned()))?;
    let new = NewAddress {
        pool: fields.number("pool").map(PoolId).ok_or(Problem::NotFound)?,
        address,
        helo: fields.text("helo").to_owned(),
        weight: read_weight(&fields)?.unwrap_or(1),
        warm_up: fields.is_ticked("warm_up"),
        idempotency_key: None,
    };
    visit.app().add_pool_address(&visit.requester, new).await?;
    Ok(redirect_to_list("created"))
}

pub(super) async fn update_address(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let address = read_address(&fields)?;
    let change = AddressChange {
        if_version: fields.number("version"),
        helo: fields.filled("helo").map(ToOwned::to_owned),
        weight: read_weight(&fields)?,
    };
    visit.app().update_pool_address(&visit.requester, address, change).await?;
    let query = query(&[("address", &address.to_string()), ("done", "saved")]);
    Ok(see_other(&format!("{LIST}/address{query}")))
}

pub(super) async fn remove_address(form: Form) -> Answer {
    let Form { visit, fields } = form;
    visit.app().remove_pool_address(&visit.requester, read_address(&fields)?).await?;
    Ok(redirect_to_list("removed"))
}

pub(super) async fn change_warm_up(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let wanted = WarmUpChange::ALL.into_iter().find(|(name, _)| *name == fields.text("act"));
    let (_, change) = wanted.ok_or_else(|| Problem::Invalid("Choose what to do.".to_owned()))?;
    visit.app().change_warm_up(&visit.requester, read_address(&fields)?, change).await?;
    Ok(redirect_to_list("saved"))
}

/// Redirects to the list, which shows the notice.
fn redirect_to_list(notice: &str) -> Response {
    see_other(&format!("{LIST}?done={notice}"))
}

fn read_address(fields: &Fields) -> Result<IpAddr, Problem> {
    fields.text("address").parse().map_err(|_| Problem::NotFound)
}

fn read_weight(fields: &Fields) -> Result<Option<u32>, Problem> {
    let number = fields.filled("weight").map(str::parse).transpose();
    number.map_err(|_| Problem::Invalid("The weight is a whole number from 1 on.".to_owned()))
}
