//! Shows a refused form with the values that were typed into it, so that nobody types them again.

use std::cell::RefCell;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use lol_html::html_content::{ContentType, Element};
use lol_html::{RewriteStrSettings, element, rewrite_str};

use crate::answer::Answer;
use crate::fields::Fields;
use crate::problem::{Problem, is_other_version};

/// Longest page that is read; pages are smaller.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Types of fields that keep the value of the page: no person types them, or they must not be repeated.
const KEPT: [&str; 6] = ["hidden", "password", "submit", "button", "file", "image"];

/// The page, with the submitted values in the form that is sent to `action`. If somebody else changed the object meanwhile,
/// the page keeps the current values: submitted again, the old ones would undo that change.
pub(crate) async fn refilled(page: Answer, action: &str, fields: &Fields, problem: &str) -> Answer {
    if is_other_version(problem) {
        return page;
    }
    let (head, body) = page?.into_parts();
    let internal = |error: &dyn std::fmt::Display| Problem::Internal(error.to_string());
    let bytes = to_bytes(body, PAGE_BYTES_MAX).await.map_err(|error| internal(&error))?;
    let html = String::from_utf8(bytes.into()).map_err(|error| internal(&error))?;
    Ok(Response::from_parts(head, Body::from(fill(html, action, fields))))
}

fn fill(html: String, action: &str, fields: &Fields) -> String {
    let form = format!("form[action=\"{action}\"]");
    // Name of the `select` that was read last; its options follow.
    let select_name = RefCell::new(String::new());
    let name_of = |element: &Element<'_, '_>| element.get_attribute("name").unwrap_or_default();
    let input = element!(format!("{form} input[name]"), |input| {
        let (name, kind) = (name_of(input), input.get_attribute("type").unwrap_or_default());
        if kind == "checkbox" || kind == "radio" {
            let value = input.get_attribute("value").unwrap_or_default();
            set_flag(input, "checked", fields.all(&name).any(|sent| sent == value))?;
        } else if !KEPT.contains(&kind.as_str()) {
            input.set_attribute("value", &fields.raw(&name).replace('&', "&amp;"))?;
        }
        Ok(())
    });
    let area = element!(format!("{form} textarea[name]"), |area| {
        // A browser drops the first line break.
        area.set_inner_content(&format!("\n{}", fields.raw(&name_of(area))), ContentType::Text);
        Ok(())
    });
    let select = element!(format!("{form} select[name]"), |select| {
        *select_name.borrow_mut() = name_of(select);
        Ok(())
    });
    let option = element!(format!("{form} select option[value]"), |option| {
        let value = option.get_attribute("value").unwrap_or_default();
        set_flag(option, "selected", fields.all(&select_name.borrow()).any(|sent| sent == value))?;
        Ok(())
    });
    let details = element!(format!("{form} details"), |details| {
        details.set_attribute("open", "")?;
        Ok(())
    });
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(input)
        .append_element_content_handler(area)
        .append_element_content_handler(select)
        .append_element_content_handler(option)
        .append_element_content_handler(details);
    let html = open_details(html, action);
    rewrite_str(&html, settings).unwrap_or(html)
}

/// The page with the `details` element around the form open, if there is one. The page's own HTML is searched: text of others
/// has no angle brackets there.
fn open_details(mut html: String, action: &str) -> String {
    let before = html.find(&format!("action=\"{action}\"")).map(|at| &html[..at]);
    let details = before.and_then(|before| Some((before, before.rfind("<details")?)));
    if let Some((before, at)) = details
        && !before[at..].contains("</details>")
    {
        html.insert_str(at + "<details".len(), " open");
    }
    html
}

fn set_flag(
    element: &mut Element<'_, '_>,
    name: &str,
    is_set: bool,
) -> Result<(), lol_html::errors::AttributeNameError> {
    if is_set {
        element.set_attribute(name, "")?;
    } else {
        element.remove_attribute(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_form_keeps_the_submitted_values() {
        let html = "<form action=\"/b\"><input name=\"a\" value=\"other\"></form><details class=\"x\"><summary>More</summary>\
                    <form action=\"/a\"><input type=\"hidden\" name=\"csrf\" value=\"t\"><input name=\"a\" value=\"old\">\
                    <textarea name=\"t\">old</textarea><select name=\"s\"><option value=\"1\" selected>1</option>\
                    <option value=\"2\">2</option></select><input type=\"checkbox\" name=\"c\" value=\"1\" checked>\
                    <input type=\"checkbox\" name=\"d\" value=\"1\"><input type=\"password\" name=\"p\"></form></details>";
        let fields =
            Fields::parse(b"csrf=x&a=%22%3E%3Cb%3E%26lt%3B&t=%3C%2Ftextarea%3E%3Cscript%3E&s=2&d=1&p=secret");
        let filled = fill(html.to_owned(), "/a", &fields);
        for part in [
            "<input name=\"a\" value=\"other\">",
            "<details open class=\"x\">",
            "name=\"csrf\" value=\"t\"",
            "name=\"a\" value=\"&quot;><b>&amp;lt;\"",
            "&lt;/textarea&gt;&lt;script&gt;</textarea>",
            "<option value=\"2\" selected=\"\">",
            "<option value=\"1\">",
            "name=\"c\" value=\"1\">",
            "name=\"d\" value=\"1\" checked=\"\">",
        ] {
            assert!(filled.contains(part), "{part}: {filled}");
        }
        assert!(!filled.contains("secret"), "{filled}");
    }
}
