//! Every page without JavaScript: its content is there, its links lead somewhere, and its forms can be sent.

use std::collections::{BTreeSet, HashSet};

use postroad_testkit::Browser;

use crate::pages::{self, OPEN_PAGES, PAGES};
use crate::routes::{Kind, ROUTES, without_names};
use crate::service::{DevService, FreshService, server_of};

#[tokio::test]
async fn every_page_works_without_javascript() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let (signed_in, signed_out) = (service.signed_in_browser().await, Browser::start().await);
    let cookie = service.sign_in().await;
    let mut faults = Vec::new();
    let mut visited = HashSet::new();
    for (browser, cookie, page_examples) in
        [(&signed_in, cookie.as_str(), PAGES), (&signed_out, "", OPEN_PAGES)]
    {
        browser.set_scripts(false).await;
        for (name, route, query, expected) in page_examples {
            let path = pages::path_of(&placeholders, route, query);
            browser.open(&service.url_of(&path)).await;
            browser.until("h1").await;
            assert!(!browser.has("button.copy").await, "{name}: no script runs");
            let text = browser.text("main").await;
            if browser.text("h1").await.is_empty() || !text.contains(expected) {
                faults.push(format!("{name} does not say {expected:?}: {text}"));
            }
            let html = service.get(&path, cookie).await.text();
            for form in forms(&html) {
                faults.extend(form_fault(&form, &path).map(|fault| format!("{name}: {fault}: {form}")));
            }
            for link in links(&html, &path) {
                if visited.insert((cookie, link.clone())) {
                    let reply = service.get(&link, cookie).await;
                    if ![200, 303].contains(&reply.status) {
                        faults.push(format!("{name}: {} at {link}", reply.status));
                    }
                }
            }
        }
    }
    assert!(visited.len() > 100, "the links are found: {}", visited.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The HTML of the page's POST forms.
pub(crate) fn forms(html: &str) -> Vec<String> {
    let all = html.split("<form").skip(1).map(|part| part.split("</form>").next().unwrap());
    all.filter(|form| form.split('>').next().unwrap().contains("method=\"post\""))
        .map(ToOwned::to_owned)
        .collect()
}

/// Why a browser could not send the form without scripts.
fn form_fault(form: &str, page: &str) -> Option<&'static str> {
    let tag = form.split('>').next().unwrap();
    let action = attribute(tag, "action").unwrap_or_else(|| page.to_owned());
    let visible = form.replace("<input type=\"hidden\"", "");
    let has_fields = ["<input", "<select", "<textarea"].iter().any(|field| visible.contains(field));
    let is_empty = !has_fields && !form.contains("<button");
    let is_open = ROUTES.iter().any(|(kind, route, _, access)| {
        *kind == Kind::Form && *route == action && *access == crate::routes::Access::Anybody
    });
    if is_empty {
        // A list without anything to tick.
        None
    } else if !takes_forms(&action) {
        Some("no such form")
    } else if !form.contains("<button") {
        Some("no button")
    } else if !is_open && !form.contains("name=\"csrf\"") {
        Some("no token")
    } else if form.contains(" disabled") {
        Some("something is disabled")
    } else {
        None
    }
}

/// Whether a form may be sent to the path.
fn takes_forms(path: &str) -> bool {
    let forms: BTreeSet<String> = ROUTES
        .iter()
        .filter(|(kind, _, _, _)| *kind == Kind::Form)
        .map(|(_, route, _, _)| without_names(&route.replace("example.org", "{name}")))
        .collect();
    let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
    forms.iter().any(|route| {
        let route: Vec<&str> = route.split('/').collect();
        route.len() == parts.len() && route.iter().zip(&parts).all(|(one, part)| *one == "{}" || one == part)
    })
}

/// Paths on this site that links and frames of a page lead to.
fn links(html: &str, page: &str) -> Vec<String> {
    let here = page.split('?').next().unwrap();
    let tags = html.split('<').filter(|tag| tag.starts_with("a ") || tag.starts_with("iframe "));
    tags.filter_map(|tag| {
        let tag = tag.split('>').next().unwrap();
        let target = attribute(tag, "href").or_else(|| attribute(tag, "src"))?;
        let target = target.split('#').next().unwrap().to_owned();
        if target.starts_with('?') {
            Some(format!("{here}{target}"))
        } else {
            Some(target).filter(|target| target.starts_with('/'))
        }
    })
    .collect()
}

pub(crate) fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let value = rest.split('"').next().unwrap();
    Some(value.replace("&#38;", "&").replace("&#34;", "\"").replace("&#39;", "'"))
}

#[tokio::test]
async fn an_installation_is_set_up_and_changed_without_javascript() {
    let fresh = FreshService::start("");
    let browser = Browser::start().await;
    browser.set_scripts(false).await;
    browser.open(&fresh.set_up_link).await;
    browser.fill("input[name=account]", "Shop Ltd").await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form button").await;
    browser.until_text("Create the first one").await;
    browser.fill("form.stack input[name=name]", "shop").await;
    browser.click("input[value=development]").await;
    browser.click("form.stack button").await;
    browser.until("input[name=once]").await;
    let server = server_of(&browser).await;
    let server_url = |path: &str| fresh.url_of(&format!("/servers/{server}{path}"));
    browser.click("form.stack > button").await;
    browser.until_text("they are not shown again").await;
    assert!(browser.text("pre.code").await.contains("curl"), "the command is there");
    assert!(browser.page_text().await.contains("without JavaScript, look again"));
    // A form with a mistake keeps its fields, and says what is wrong.
    browser.open(&server_url("/domains")).await;
    browser.fill("input[name=name]", "no name").await;
    browser.click("form.stack > button").await;
    browser.until(".problem").await;
    browser.fill("input[name=name]", "shop.test").await;
    browser.click("form.stack > button").await;
    browser.until_text("_domainkey.shop.test").await;
    browser.open(&server_url("/webhooks")).await;
    browser.fill("input[name=url]", "https://example.com/events").await;
    browser.click("form.stack > button").await;
    browser.until_text("Copy the secret now").await;
    browser.open(&server_url("/templates/new")).await;
    browser.fill("input[name=name]", "Welcome").await;
    browser.fill("input[name=subject]", "Hello").await;
    browser.fill("textarea[name=html_body]", "<p>Hello</p>").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Version 1 published").await;
    browser.open(&server_url("/suppressions")).await;
    browser.fill("form.stack input[name=address]", "bob@example.net").await;
    browser.click("form.stack button").await;
    browser.until_text("bob@example.net").await;
    browser.open(&server_url("/messages")).await;
    browser.fill("input[name=q]", "to:bob@example.net").await;
    browser.click("form.search button").await;
    browser.until_text("No message matches").await;
    browser.open(&server_url("/settings")).await;
    browser.fill("form.stack input[name=name]", "shop two").await;
    browser.click("form[action$='/settings'] button").await;
    browser.until_text("Saved").await;
    browser.open(&fresh.url_of("/account/people")).await;
    browser.fill("input[name=email]", "guest@shop.example").await;
    browser.click("form.stack button").await;
    browser.until_text("guest@shop.example").await;
    browser.open(&fresh.url_of("/account/audit")).await;
    browser.until_text("templates/create").await;
    // Without a script nobody asks before something is deleted; the form works all the same.
    browser.open(&server_url("/webhooks")).await;
    browser.click(".rows a").await;
    browser.click("form[action$='/delete'] button").await;
    browser.until_text("Removed").await;
    browser.click(".person summary").await;
    browser.click("form[action='/sign_out'] button").await;
    browser.until_text("You are signed out").await;
}

#[tokio::test]
async fn held_mail_is_cancelled_and_the_inboxes_are_emptied_without_javascript() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let browser = service.signed_in_browser().await;
    browser.set_scripts(false).await;
    browser.open(&service.url_of(&format!("/servers/{}/messages?tab=held", placeholders["server"]))).await;
    browser.click("input[name=id]").await;
    browser.click("button[value=cancel_hold]").await;
    browser.until(".notice").await;
    browser.open(&service.url_of("/inbox")).await;
    browser.click("form[action='/inbox/clear'] button").await;
    browser.until_text("Nothing was caught yet").await;
    let inbox = service.url_of(&format!("/servers/{}/inbox", placeholders["development"]));
    browser.open(&inbox).await;
    browser.click("form[action$='/inbox/clear'] button").await;
    browser.until_text("The inbox is being emptied").await;
    for _ in 0..200 {
        if browser.page_text().await.contains("Nothing was caught yet") {
            return;
        }
        browser.open(&inbox).await;
    }
    panic!("the inbox is not empty: {}", browser.page_text().await);
}
