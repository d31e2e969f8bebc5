//! Checks a domain now, adds a new DKIM key, or removes the domain.

use postroad_app::access::Operation;
use postroad_app::domains::DkimKeyRequest;

use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn verify(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::DomainsVerify).await?;
    let view = form.visit.app().verify_domain(&caller, &name).await?;
    Ok(see_other(&format!("/servers/{server}/domains/{}?done=checked", view.domain.name)))
}

pub(super) async fn rotate_dkim(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::DomainsRotateDkim).await?;
    let view = form.visit.app().rotate_dkim(&caller, &name, read_dkim_key(&form.fields)).await?;
    Ok(see_other(&format!("/servers/{server}/domains/{}?done=created", view.domain.name)))
}

/// Reads the fields `algorithm`, `private_key` and `selector`; without `private_key` a key is generated.
pub(super) fn read_dkim_key(fields: &Fields) -> DkimKeyRequest {
    let filled = |name: &str| fields.filled(name).map(ToOwned::to_owned);
    DkimKeyRequest {
        private_key: filled("private_key"),
        selector: filled("selector"),
        algorithm: filled("algorithm"),
    }
}

pub(super) async fn delete(Path((server, name)): Path<(i64, String)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::DomainsDelete).await?;
    form.visit.app().delete_domain(&caller, &name).await?;
    Ok(see_other(&format!("/servers/{server}/domains?done=removed")))
}
