//! Publishes a version, returns to the previously published one, or deletes a template.

use postroad_app::access::Operation;
use postroad_app::templates::VersionRequest;
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use crate::answer::Answer;
use crate::path::Path;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn publish(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::TemplatesPublish).await?;
    let request =
        VersionRequest { template: TemplateRef::Id(TemplateId(id)), version: form.fields.number("version") };
    form.visit.app().publish_template(&caller, request).await?;
    Ok(see_other(&format!("/servers/{server}/templates/{id}?done=published")))
}

/// Publishes the version that was published before. The form names that version, so that a form sent twice rolls back
/// once.
pub(super) async fn roll_back(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::TemplatesRollback).await?;
    let request =
        VersionRequest { template: TemplateRef::Id(TemplateId(id)), version: form.fields.number("version") };
    form.visit.app().roll_back_template(&caller, request).await?;
    Ok(see_other(&format!("/servers/{server}/templates/{id}?done=rolled-back")))
}

pub(super) async fn delete(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::TemplatesDelete).await?;
    form.visit.app().delete_template(&caller, TemplateRef::Id(TemplateId(id))).await?;
    Ok(see_other(&format!("/servers/{server}/templates?done=removed")))
}
