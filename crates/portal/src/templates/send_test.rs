//! Sends one test message with the sample model of a version. The published version is sent as programs send it, by
//! naming the template. Of any other version, the rendered texts are sent.

use postroad_app::access::Operation;
use postroad_app::send::{ListEntry, MessageDraft, SendContext, TemplateDraft};
use postroad_app::templates::{FoundTemplate, RenderRequest, RenderedTemplate};
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
    let wanted = form.fields.number("version");
    let found = form.visit.app().find_template(&reader, template, wanted).await?;
    let caller = form.visit.caller(server, Operation::SendMessage).await?;
    // Without a choice, the published version is sent.
    let other = wanted.filter(|version| Some(*version) != found.template.published);
    let published = found.template.published.map(|version| version.to_string()).unwrap_or_default();
    let rendered = match other {
        Some(version) => Some(render(&form, server, &found, version).await?),
        None => None,
    };
    let mut draft = MessageDraft {
        to: vec![ListEntry { pointer: "/to".to_owned(), text: form.fields.text("to").into() }],
        from: Some(form.fields.text("from").into()),
        tag: Some("template-test".into()),
        ..MessageDraft::default()
    };
    if let Some(RenderedTemplate { subject, html_body, plain_body }) = rendered {
        draft.subject = subject.map(Into::into);
        draft.html_body = html_body.map(Into::into);
        draft.plain_body = plain_body.map(Into::into);
    } else {
        draft.template = Some(TemplateDraft {
            name: Some(id.to_string().into()),
            model: found.version.content.sample_model.unwrap_or_default(),
            locale: form.fields.filled("locale").map(Into::into),
        });
    }
    // A form sent again is another test if its language or version differs, or if another version was published since.
    let fields = &form.fields;
    let (number, version) = (id.to_string(), other.map_or(published, |version| version.to_string()));
    let parts = [fields.text("from"), fields.text("to"), &number, fields.text("locale"), &version];
    let idempotency = once::send_key(&form.fields, &parts);
    let context = SendContext { caller, test: false, idempotency, warnings: Vec::new() };
    let answer = form.visit.app().send_message(context, draft).await?;
    let message = answer
        .messages
        .first()
        .ok_or_else(|| Problem::Internal("an accepted send has no messages".to_owned()))?;
    Ok(see_other(&format!("/servers/{server}/messages/{}", message.id)))
}

/// The mail of a version that is not published, with its sample model.
async fn render(
    form: &Form,
    server: i64,
    found: &FoundTemplate,
    version: i64,
) -> Result<RenderedTemplate, Problem> {
    let caller = form.visit.caller(server, Operation::TemplatesRender).await?;
    let request = RenderRequest {
        template: TemplateRef::Id(found.template.id),
        version: Some(version),
        model: found.version.content.sample_model.clone().unwrap_or_default(),
        locale: form.fields.filled("locale").map(ToOwned::to_owned),
    };
    let (_, _, rendered) = form.visit.app().render_template(&caller, request).await?;
    Ok(rendered)
}
