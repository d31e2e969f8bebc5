//! Adds a domain and shows its records.

use postroad_app::access::Operation;
use postroad_app::domains::DomainRefusal;

use super::change::read_dkim_key;
use crate::answer::Answer;
use crate::path::Path;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn submit(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::DomainsCreate).await?;
    let name = fields.text("name");
    match visit.app().create_domain(&caller, name, read_dkim_key(&fields)).await {
        Ok(view) => Ok(see_other(&format!("/servers/{server}/domains/{}?ceiling=domains", view.domain.name))),
        // The form was submitted twice, or the domain was added earlier: in both cases show the domain's page.
        Err(DomainRefusal::Exists) => {
            let view = visit.app().find_domain(&caller, name).await?;
            Ok(see_other(&format!("/servers/{server}/domains/{}", view.domain.name)))
        }
        Err(refusal) => Err(refusal.into()),
    }
}
