//! Domain forms that only the operator may send: verification without DNS, and tracking.

use postroad_app::domains::NamedOwner;
use postroad_model::{DomainName, ServerId};
use postroad_store::DomainTracking;

use super::of_account::{DomainPath, NamedDomain};
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

/// Reads a switch. `None` means that the domain uses the setting of its server.
fn read_switch(fields: &Fields, name: &str) -> Option<bool> {
    match fields.text(name) {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Owner of a server's domains, and path of their list.
fn of_server(server: i64) -> (NamedOwner, String) {
    let owner = NamedOwner { server: Some(ServerId(server)), account: None };
    (owner, format!("/servers/{server}/domains"))
}

pub(super) async fn set_verified(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    save_verified(of_server(server), &name, &form).await
}

pub(super) async fn set_verified_of_account(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let domain = NamedDomain::find(&form.visit, path).await?;
    save_verified((domain.owner, domain.list), &domain.name, &form).await
}

pub(super) async fn set_tracking(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    save_tracking(of_server(server), &name, &form).await
}

pub(super) async fn set_tracking_of_account(Path(path): Path<DomainPath>, form: Form) -> Answer {
    let domain = NamedDomain::find(&form.visit, path).await?;
    save_tracking((domain.owner, domain.list), &domain.name, &form).await
}

/// Reads the field `verified`: filled marks the domain as verified, empty removes the mark.
async fn save_verified((owner, list): (NamedOwner, String), name: &str, form: &Form) -> Answer {
    let (visit, verified) = (&form.visit, form.fields.is_ticked("verified"));
    let view = visit.app().set_domain_verified_as(&visit.requester, owner, name, verified).await?;
    Ok(see_other(&format!("{list}/{}?done=saved", view.domain.name)))
}

async fn save_tracking((owner, list): (NamedOwner, String), name: &str, form: &Form) -> Answer {
    let (visit, fields) = (&form.visit, &form.fields);
    let tracking = DomainTracking {
        opens: read_switch(fields, "opens"),
        clicks: read_switch(fields, "clicks"),
        host: fields.filled("host").map(ToOwned::to_owned),
    };
    visit.app().set_domain_tracking_as(&visit.requester, owner, name, tracking).await?;
    let name = DomainName::parse(name).map_err(|_| Problem::NotFound)?;
    Ok(see_other(&format!("{list}/{name}?done=saved")))
}
