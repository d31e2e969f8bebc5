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
pub(crate) const PAGE_BYTES_MAX: usize = 16 << 20;
/// Types of inputs that are not refilled: no person types them, or they must not be repeated.
const NOT_REFILLED_TYPES: [&str; 6] = ["hidden", "password", "submit", "button", "file", "image"];
/// Hidden fields that do not identify the object of a form.
const NON_IDENTIFYING_FIELDS: [&str; 4] = ["csrf", "once", "version", "had_last_day"];

/// Like `refill_html`, for the answer with the page.
pub(crate) async fn refill_answer(page: Answer, action: &str, fields: &Fields, problem: &str) -> Answer {
    let (head, body) = page?.into_parts();
    let internal = |error: &dyn std::fmt::Display| Problem::Internal(error.to_string());
    let bytes = to_bytes(body, PAGE_BYTES_MAX).await.map_err(|error| internal(&error))?;
    let html = String::from_utf8(bytes.into()).map_err(|error| internal(&error))?;
    Ok(Response::from_parts(head, Body::from(refill_html(html, action, fields, problem))))
}

/// The page, with the submitted values in the form that is sent to `action`. Of several such forms, the one with the
/// same hidden fields is filled. If somebody else changed the object meanwhile, the page keeps the current values:
/// submitted again, the old ones would undo that change.
///
/// Searching the HTML as text is safe: askama has escaped angle brackets and quotation marks in text from outside.
pub(crate) fn refill_html(html: String, action: &str, fields: &Fields, problem: &str) -> String {
    if is_other_version(problem) {
        return html;
    }
    let target = format!("action=\"{action}\"");
    let (mut filled, mut rest) = (String::with_capacity(html.len() + 1_000), html.as_str());
    while let Some(at) = rest.find("<form") {
        filled.push_str(&rest[..at]);
        let end = rest[at..].find("</form>").map_or(rest.len(), |length| at + length);
        let form = &rest[at..end];
        let head = form.split('>').next().unwrap_or_default();
        if head.contains(&target) && has_same_hidden_fields(form, fields) {
            open_details(&mut filled);
            filled.push_str(&fill_form(&with_option_values(form), fields));
        } else {
            filled.push_str(form);
        }
        rest = &rest[end..];
    }
    filled.push_str(rest);
    filled
}

/// The page with a problem at its top. Links and forms that are relative to the page's URL become absolute, because the
/// page is shown at the URL of the form's action.
pub(crate) fn with_problem(html: &str, problem: &str, page: &str) -> String {
    let path = page.split('?').next().unwrap_or(page);
    let text = problem.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let main = element!("main", |main| {
        main.prepend(&format!("<p class=\"problem\" role=\"alert\">{text}</p>"), ContentType::Html);
        Ok(())
    });
    let link = element!("a[href^=\"?\"]", |link| {
        let query = link.get_attribute("href").unwrap_or_default();
        link.set_attribute("href", &format!("{path}{query}"))?;
        Ok(())
    });
    let form = element!("form", |form| {
        if !form.has_attribute("action") {
            form.set_attribute("action", path)?;
        }
        Ok(())
    });
    let live = element!("[data-live], [data-poll]", |region| {
        if !region.has_attribute("data-source") {
            region.set_attribute("data-source", page)?;
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(main)
        .append_element_content_handler(link)
        .append_element_content_handler(form)
        .append_element_content_handler(live);
    rewrite_str(html, settings).unwrap_or_else(|_| html.to_owned())
}

/// Whether the hidden fields of a form have the submitted values.
fn has_same_hidden_fields(form: &str, fields: &Fields) -> bool {
    form.split("<input type=\"hidden\" name=\"").skip(1).all(|rest| {
        let mut parts = rest.split('"');
        let (name, value) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
        let value = unescaped(value);
        NON_IDENTIFYING_FIELDS.contains(&name) || fields.all(name).any(|sent| sent == value)
    })
}

/// The text of an attribute that askama has escaped.
fn unescaped(text: &str) -> String {
    let references = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    references.iter().fold(text.to_owned(), |text, (reference, one)| text.replace(reference, one))
}

/// Gives each option without a value its text as value, as browsers do.
fn with_option_values(form: &str) -> String {
    let mut parts = form.split("<option");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let head = part.split('>').next().unwrap_or_default();
        let text = part[head.len()..].trim_start_matches('>').split('<').next().unwrap_or_default().trim();
        filled.push_str("<option");
        if !head.contains("value=") {
            filled.extend([" value=\"", text, "\""]);
        }
        filled.push_str(part);
    }
    filled
}

fn fill_form(form: &str, fields: &Fields) -> String {
    // Name of the `select` that was read last; its options follow.
    let select_name = RefCell::new(String::new());
    let name_of = |element: &Element<'_, '_>| element.get_attribute("name").unwrap_or_default();
    let input = element!("input[name]", |input| {
        let (name, kind) = (name_of(input), input.get_attribute("type").unwrap_or_default());
        if kind == "checkbox" || kind == "radio" {
            let value = input.get_attribute("value").unwrap_or_default();
            set_flag(input, "checked", fields.all(&name).any(|sent| sent == value))?;
        } else if let Some(exact) = input.get_attribute("data-moment").and_then(|exact| fields.filled(&exact))
        {
            // The script has sent the exact time, as in `2027-01-31T09:00:00.000Z`; the field of the page is in UTC.
            let minute: String = exact.chars().take("2027-01-31T09:00".len()).collect();
            input.set_attribute("value", &minute.replace('&', "&amp;"))?;
        } else if !NOT_REFILLED_TYPES.contains(&kind.as_str()) {
            input.set_attribute("value", &fields.raw(&name).replace('&', "&amp;"))?;
        }
        Ok(())
    });
    let area = element!("textarea[name]", |area| {
        // A browser drops the first line break.
        area.set_inner_content(&format!("\n{}", fields.raw(&name_of(area))), ContentType::Text);
        Ok(())
    });
    let select = element!("select[name]", |select| {
        *select_name.borrow_mut() = name_of(select);
        Ok(())
    });
    let option = element!("select option[value]", |option| {
        let value = option.get_attribute("value").unwrap_or_default();
        set_flag(option, "selected", fields.all(&select_name.borrow()).any(|sent| sent == value))?;
        Ok(())
    });
    let details = element!("details", |details| {
        details.set_attribute("open", "")?;
        Ok(())
    });
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(input)
        .append_element_content_handler(area)
        .append_element_content_handler(select)
        .append_element_content_handler(option)
        .append_element_content_handler(details);
    rewrite_str(form, settings).unwrap_or_else(|_| form.to_owned())
}

/// Opens the last `details` element of `before` if it is not closed there, because it then contains the form.
fn open_details(before: &mut String) {
    if let Some(at) = before.rfind("<details")
        && !before[at..].contains("</details>")
        && !before[at..].split('>').next().is_some_and(|head| head.contains(" open"))
    {
        before.insert_str(at + "<details".len(), " open");
    }
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
    use crate::problem::OTHER_VERSION;

    #[test]
    fn a_refused_form_keeps_the_submitted_values() {
        let html = "<form action=\"/b\"><input name=\"a\" value=\"other\"></form><details class=\"x\"><summary>More</summary>\
                    <form action=\"/a\"><input type=\"hidden\" name=\"csrf\" value=\"t\"><input name=\"a\" value=\"old\">\
                    <textarea name=\"t\">old</textarea><select name=\"s\"><option value=\"1\" selected>1</option>\
                    <option value=\"2\">2</option></select><input type=\"checkbox\" name=\"c\" value=\"1\" checked>\
                    <input type=\"checkbox\" name=\"d\" value=\"1\"><input type=\"password\" name=\"p\"></form></details>";
        let fields =
            Fields::parse(b"csrf=x&a=%22%3E%3Cb%3E%26lt%3B&t=%3C%2Ftextarea%3E%3Cscript%3E&s=2&d=1&p=secret");
        let filled = refill_html(html.to_owned(), "/a", &fields, "No.");
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
        assert_eq!(refill_html(html.to_owned(), "/a", &fields, OTHER_VERSION), html);
    }

    #[test]
    fn options_without_value_and_the_right_one_of_several_forms_are_filled() {
        let html = "<form action=\"/a\"><input type=\"hidden\" name=\"pool\" value=\"1\"><input name=\"x\"></form>\
                    <form action=\"/a\"><input type=\"hidden\" name=\"pool\" value=\"2\"><input name=\"x\">\
                    <select name=\"s\"><option selected>live</option><option>development</option></select></form>";
        let fields = Fields::parse(b"pool=2&x=typed&s=development");
        let filled = refill_html(html.to_owned(), "/a", &fields, "No.");
        let (first, second) = filled.split_once("</form>").expect("two forms");
        assert!(!first.contains("typed") && second.contains("value=\"typed\""), "{filled}");
        assert!(second.contains("<option value=\"development\" selected=\"\">development"), "{filled}");
        assert!(second.contains("<option value=\"live\">live"), "{filled}");
    }

    #[test]
    fn a_page_shown_at_the_url_of_a_form_links_to_itself() {
        let html = "<main><form method=\"get\"></form><a href=\"?after=1\">More</a><div data-live=\"/l\"></div></main>";
        let shown = with_problem(html, "<b>&", "/list?q=1");
        assert_eq!(
            shown,
            "<main><p class=\"problem\" role=\"alert\">&lt;b&gt;&amp;</p><form method=\"get\" action=\"/list\"></form>\
             <a href=\"/list?after=1\">More</a><div data-live=\"/l\" data-source=\"/list?q=1\"></div></main>"
        );
    }
}
