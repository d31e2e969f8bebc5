//! Messages rendered from templates: the texts come from the template, everything else from the request.

use std::borrow::Cow;
use std::sync::Arc;

use postroad_mail::{Attachment, AttachmentView, NewContent, RawMessage};
use postroad_model::ServerId;

use super::accept::run_blocking_if_large;
use super::draft::{MessageDraft, TemplateDraft};
use super::options::{quotable_part, too_large};
use super::submission_options::TemplateCall;
use crate::templates::{
    BatchWork, MODEL_BYTES_MAX, Model, RenderFailure, TemplateRefusal, parse_template_ref,
};
use crate::{App, FieldProblem, Refusal};

/// Result of rendering a template into a draft.
#[derive(Debug, Default)]
pub(super) struct FillResult {
    /// Name of the template in analytics.
    pub(super) name: Option<String>,
    pub(super) problems: Vec<FieldProblem>,
}

impl App {
    /// Renders the texts of a template into a draft. A subject in the draft takes precedence.
    pub(super) async fn fill_in(
        &self,
        server_id: ServerId,
        draft: &mut MessageDraft<'_>,
        template: TemplateDraft<'_>,
        batch: Option<&Arc<BatchWork>>,
    ) -> Result<FillResult, Refusal> {
        let name = template.name.as_deref().unwrap_or_default();
        let locale = template.locale.map(Cow::into_owned);
        let rendered =
            self.render_mail(server_id, parse_template_ref(name), template.model, locale, batch).await;
        let mail = match rendered {
            Ok(mail) => mail,
            Err(TemplateRefusal::NotFound) => {
                // There is no such template; do not also report the subject as missing.
                draft.subject.get_or_insert_default();
                return Ok(FillResult {
                    name: None,
                    problems: vec![template_not_found_problem("/template", name)],
                });
            }
            Err(other) => return Err(send_refusal(other)),
        };
        let mut problems = Vec::new();
        for (pointer, body) in [("/plain_body", &draft.plain_body), ("/html_body", &draft.html_body)] {
            if body.is_some() {
                let field = pointer.trim_start_matches('/');
                let message = format!("`{field}` comes from the template; leave it out");
                problems.push(FieldProblem::new(pointer, message));
            }
        }
        if draft.subject.as_deref().is_none_or(|subject| subject.trim().is_empty()) {
            draft.subject = Some(mail.rendered.subject.unwrap_or_default().into());
        }
        draft.plain_body = mail.rendered.plain_body.map(Cow::Owned);
        draft.html_body = mail.rendered.html_body.map(Cow::Owned);
        Ok(FillResult { name: Some(mail.template), problems })
    }

    /// Replaces the model in the body of a submitted message by the rendered texts. Also returns the template's name.
    pub(super) async fn fill_in_submission(
        &self,
        server_id: ServerId,
        raw: RawMessage,
        call: TemplateCall,
    ) -> Result<(RawMessage, String), Refusal> {
        let bytes = raw.bytes.len();
        let (raw, read) = run_blocking_if_large(bytes, move || {
            let read = read_model(&raw.bytes);
            (raw, read)
        })
        .await?;
        let (model, files) = read.map_err(|message| Refusal::Validation(vec![data_problem(message)]))?;
        let rendered =
            self.render_mail(server_id, parse_template_ref(&call.name), model, call.locale, None).await;
        let mail = match rendered {
            Err(TemplateRefusal::NotFound) => {
                return Err(Refusal::Validation(vec![template_not_found_problem("/data", &call.name)]));
            }
            other => other.map_err(send_refusal)?,
        };
        let bytes_max = self.inner.limits.message_bytes_max;
        let rendered = mail.rendered;
        let raw = run_blocking_if_large(bytes, move || {
            let mut raw = raw;
            let subject = rendered.subject.filter(|_| raw.subject.trim().is_empty());
            let attachments: Vec<Attachment<'_>> = files
                .iter()
                .map(|file| Attachment {
                    name: &file.filename,
                    content_type: &file.content_type,
                    content: Cow::Borrowed(&file.content),
                    content_id: file.content_id.as_deref(),
                })
                .collect();
            let content = NewContent {
                subject: subject.as_deref(),
                plain_body: rendered.plain_body.as_deref(),
                html_body: rendered.html_body.as_deref(),
                attachments: &attachments,
            };
            raw.replace_content(&content);
            raw
        })
        .await?;
        if raw.bytes.len() > bytes_max {
            return Err(Refusal::Validation(vec![too_large(&self.inner.limits)]));
        }
        Ok((raw, mail.template))
    }
}

/// The model in the body of a message, and the attached files.
fn read_model(bytes: &[u8]) -> Result<(Model, Vec<AttachmentView>), String> {
    let view = postroad_mail::view(bytes);
    let mut attachments = view.attachments;
    let json = attachments.iter().position(|file| file.content_type == "application/json");
    let text = match (view.plain_body, json) {
        (Some(text), _) if !text.trim().is_empty() => text,
        (_, Some(at)) => String::from_utf8(attachments.remove(at).content)
            .map_err(|_| "The model in the body of the message is not UTF-8".to_owned())?,
        _ => "{}".to_owned(),
    };
    if text.len() > MODEL_BYTES_MAX {
        return Err(format!("The model in the body of the message is larger than {MODEL_BYTES_MAX} bytes"));
    }
    let text = text.trim_start_matches('\u{feff}');
    let model = serde_json::from_str(text).map_err(|error| {
        // Without the error's text, which may quote a value.
        let (line, column) = (error.line(), error.column());
        format!("The body of a message by template must be a JSON object, the model; the mistake is at line {line} column {column}")
    })?;
    if let Some(number) = find_inexact_number(text) {
        return Err(format!(
            "The model in the body of the message has a whole number of more than 64 bits in line {}; send it as a text",
            1 + text[..number].matches('\n').count()
        ));
    }
    Ok((model, attachments))
}

/// Offset of the first whole number in valid JSON that a model cannot keep exactly.
fn find_inexact_number(json: &str) -> Option<usize> {
    let mut rest = json;
    while let Some(at) = rest.find(|char: char| char == '"' || char == '-' || char.is_ascii_digit()) {
        let token = &rest[at..];
        let length = if token.starts_with('"') {
            string_length(token)
        } else {
            let is_part = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
            let number = token.split(|char| !is_part(char)).next().unwrap_or_default();
            let is_whole = !number.contains(['.', 'e', 'E']);
            if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                return Some(json.len() - token.len());
            }
            number.len()
        };
        rest = &token[length..];
    }
    None
}

/// Length in bytes of the string that the JSON begins with, including its quotes.
fn string_length(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

fn template_not_found_problem(pointer: &str, name: &str) -> FieldProblem {
    FieldProblem::new(pointer, format!("There is no template `{}` on this server", quotable_part(name)))
}

fn data_problem(message: String) -> FieldProblem {
    FieldProblem::new("/data", message)
}

fn send_refusal(refusal: TemplateRefusal) -> Refusal {
    match refusal {
        TemplateRefusal::NotPublished => Refusal::TemplateNotPublished,
        // The version was not found even after the cache was cleared: another node is changing the template or its
        // layout.
        TemplateRefusal::VersionNotFound => {
            Refusal::Unavailable("a template or its layout is being changed".to_owned())
        }
        TemplateRefusal::Render(failure) => Refusal::TemplateRendering(Box::new(failure)),
        TemplateRefusal::Store(refusal) => refusal,
        TemplateRefusal::Validation(problems) => Refusal::Validation(problems),
        TemplateRefusal::Invalid(problems) => {
            // The template compiled when it was saved, so an older release saved it.
            let found = problems.into_iter().next();
            let (part, line, message) =
                found.map_or_else(Default::default, |found| (found.part, found.line, found.message));
            let message = format!("The template cannot be rendered any more: {message}; save it again");
            Refusal::TemplateRendering(Box::new(RenderFailure::Failed { part, line, message }))
        }
        other => Refusal::Internal(format!("a template that is published cannot be used: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_beyond_64_bits_are_found() {
        for fine in [
            "{}",
            r#"{"a": 18446744073709551615, "b": -9223372036854775808}"#,
            r#"{"a": 1e300, "b": 123456789012345678901234567890.5, "é": 1.0E+2}"#,
            r#"{"99999999999999999999\"99999999999999999999": "99999999999999999999\\"}"#,
        ] {
            assert_eq!(find_inexact_number(fine), None, "{fine}");
        }
        assert_eq!(find_inexact_number(r#"{"a": [1, 18446744073709551616]}"#), Some(10));
        assert_eq!(find_inexact_number(r#"{"\\": -9223372036854775809}"#), Some(7));
    }
}
