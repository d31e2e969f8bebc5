//! Sends one message rendered from the published version and its sample model.

use postroad_app::access::Operation;
use postroad_app::send::{ListEntry, MessageDraft, SendContext, TemplateDraft};
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use crate::answer::Answer;
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let reader = form.visit.caller(server, Operation::TemplatesGet).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let found = form.visit.app().find_template(&reader, template, None).await?;
    let caller = form.visit.caller(server, Operation::SendMessage).await?;
    let draft = MessageDraft {
        to: vec![ListEntry { pointer: "/to".to_owned(), text: form.fields.text("to").into() }],
        from: Some(form.fields.text("from").into()),
        tag: Some("template-test".into()),
        template: Some(TemplateDraft {
            name: Some(id.to_string().into()),
            model: found.version.content.sample_model.unwrap_or_default(),
            locale: form.fields.filled("locale").map(Into::into),
        }),
        ..MessageDraft::default()
    };
    // With another language, or after another version was published, the form sends another test.
    let published = found.template.published.map(|version| version.to_string()).unwrap_or_default();
    let fields = &form.fields;
    let parts = [fields.text("from"), fields.text("to"), &id.to_string(), fields.text("locale"), &published];
    let idempotency = once::send_key(&form.fields, &parts);
    let context = SendContext { caller, test: false, idempotency, warnings: Vec::new() };
    let answer = form.visit.app().send_message(context, draft).await?;
    let message = answer
        .messages
        .first()
        .ok_or_else(|| Problem::Internal("an accepted send has no messages".to_owned()))?;
    Ok(see_other(&format!("/servers/{server}/messages/{}", message.id)))
}
