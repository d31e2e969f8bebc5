//! Scripts in texts that strangers choose never run in the portal, and displayed mail loads nothing.

use std::collections::BTreeSet;

use bytes::Bytes;
use postroad_testkit::http::Method;
use postroad_testkit::smtp_peer::{Answer, RuleContext, Script, Stage};
use postroad_testkit::{Browser, CatcherAnswer, SmtpClient, SmtpPeer, WebhookCatcher};
use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, SecondServer, pictures, server_of};

/// Texts that would set `window.hit` if a page ran them.
pub(crate) const PAYLOADS: [&str; 40] = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<svg/onload=window.hit=1>",
    "\"><script>window.hit=1</script>",
    "'><script>window.hit=1</script>",
    "\" autofocus onfocus=window.hit=1 x=\"",
    "' autofocus onfocus=window.hit=1 x='",
    "</title><script>window.hit=1</script>",
    "</textarea><script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "--><script>window.hit=1</script>",
    "]]><script>window.hit=1</script>",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "<iframe src=javascript:parent.hit=1>",
    "<a href=javascript:window.hit=1>x</a>",
    "javascript:window.hit=1",
    "data:text/html,<script>window.hit=1</script>",
    "<body onload=window.hit=1>",
    "<details open ontoggle=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<input autofocus onfocus=window.hit=1>",
    "<select autofocus onfocus=window.hit=1>",
    "<math><mtext></mtext><script>window.hit=1</script></math>",
    "<style>@import 'javascript:window.hit=1'</style>",
    "<link rel=stylesheet href=javascript:window.hit=1>",
    "<meta http-equiv=refresh content='0;url=javascript:window.hit=1'>",
    "<base href='javascript:/a/'>",
    "<object data=javascript:window.hit=1>",
    "<embed src=javascript:window.hit=1>",
    "<form action=javascript:window.hit=1><button>x</button></form>",
    "<template><script>window.hit=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=window.hit=1>'>",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
    "%3Cscript%3Ewindow.hit=1%3C/script%3E",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "\u{ff1c}script\u{ff1e}window.hit=1\u{ff1c}/script\u{ff1e}",
    "<ScRiPt>window.hit=1</sCrIpT>",
    "<img src='x' title=`><script>window.hit=1</script>`>",
];

/// Fields of messages, replies of other mail servers, and answers of webhooks.
#[tokio::test]
async fn texts_of_messages_replies_and_answers_run_nothing() {
    // The smart host refuses each recipient with a different payload, and announces all payloads as SMTP extensions.
    let reply = |context: &RuleContext<'_>| {
        let number: usize = context.line.split_once("<u")?.1.split('@').next()?.parse().ok()?;
        Some(Answer::reply(&format!("550 5.1.1 {}", only_ascii(PAYLOADS[number]))))
    };
    let announced = PAYLOADS.map(only_ascii);
    let script = Script::new().offering(&announced.each_ref().map(String::as_str));
    let peer = SmtpPeer::start(
        script.when(move |context| if context.stage == Stage::RcptTo { reply(context) } else { None }),
    );
    let receiver = WebhookCatcher::start();
    let answers = PAYLOADS.map(|payload| CatcherAnswer::Full(200, Vec::new(), payload.as_bytes().to_vec()));
    receiver.answer_next("/hook", answers);
    let service =
        DevService::start_with(None, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())]);
    let by_server = async |path: &str, body: serde_json::Value| {
        call(&service, "x-server-api-key", &service.ready("api_key"), path, &body).await
    };
    // A page shows 25 attempts, so one webhook gets the events of the first half of the messages, and another the rest.
    let new_hook = json!({ "url": receiver.url("/hook"), "events": ["message.accepted"] });
    let mut hooks = vec![by_server("webhooks/create", new_hook.clone()).await["id"].clone()];
    let mut ids = Vec::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        if number == PAYLOADS.len() / 2 {
            receiver.wait_for("/hook", number);
            by_server("webhooks/update", json!({ "id": hooks[0], "enabled": false })).await;
            hooks.push(by_server("webhooks/create", new_hook.clone()).await["id"].clone());
        }
        let name = quoted(payload);
        let id = service
            .send(json!({
                "subject": payload, "tag": payload, "metadata": { "note": payload },
                "from": format!("{name} <shop@example.test>"), "to": [format!("{name} <u{number}@example.net>")],
                "plain_body": payload, "html_body": payload,
                "headers": { "X-Note": payload },
                "attachments": [{ "name": payload, "data": "aGk=" }],
            }))
            .await;
        ids.push(id);
    }
    for id in &ids {
        service.until_status(*id, "HardFail").await;
    }
    receiver.wait_for("/hook", PAYLOADS.len());
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages"));
    browser.open(&list).await;
    browser.until(".rows tbody tr:nth-child(40)").await;
    check_nothing_ran(&browser, "the list").await;
    check_texts_shown(&browser, "the list", PAYLOADS).await;
    for payload in PAYLOADS {
        browser.open(&format!("{list}?q={}", percent_encoded(payload))).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, &format!("the search for {payload}")).await;
    }
    for (payload, id) in PAYLOADS.iter().zip(&ids) {
        for (view, texts) in [
            ("timeline", vec![(*payload).to_owned(), format!("550 5.1.1 {}", only_ascii(payload))]),
            ("events", vec![(*payload).to_owned()]),
            ("preview", vec![(*payload).to_owned()]),
            ("links", vec![(*payload).to_owned()]),
            ("text", vec![(*payload).to_owned()]),
            ("source", vec![(*payload).to_owned()]),
            ("headers", vec!["x-note".to_owned(), (*payload).to_owned()]),
            ("attachments", vec![(*payload).to_owned()]),
        ] {
            browser.open(&format!("{list}/{id}?view={view}")).await;
            browser.until("#message").await;
            if view == "timeline" {
                open_details(&browser).await;
            }
            let what = format!("{payload} in {view}");
            check_view(&browser, view, &what).await;
            check_texts_shown(&browser, &what, texts).await;
        }
    }
    browser.screenshot(&pictures().join("hostile.png")).await;
    for (hook, payloads) in hooks.iter().zip(PAYLOADS.chunks(PAYLOADS.len() / 2)) {
        browser.open(&service.url_of(&format!("/servers/{server}/webhooks/{hook}"))).await;
        browser.until("#attempts .rows tbody tr:nth-child(20)").await;
        open_details(&browser).await;
        check_nothing_ran(&browser, "answers of a receiver").await;
        check_texts_shown(&browser, "answers of a receiver", payloads).await;
    }
    for page in ["", "/queue", "/analytics?by=tag", "/first_message?since=0", "/suppressions"] {
        browser.open(&service.url_of(&format!("/servers/{server}{page}"))).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, page).await;
    }
}

/// Addresses with quoted local parts, and errors of webhooks: refusals and redirects with payloads.
#[tokio::test]
async fn quoted_addresses_and_errors_of_webhooks_run_nothing() {
    let receiver = WebhookCatcher::start();
    let service = DevService::start();
    let by_server = async |path: &str, body: serde_json::Value| {
        call(&service, "x-server-api-key", &service.ready("api_key"), path, &body).await
    };
    // A local part has at most 64 characters. The same letters in another case are the same mailbox.
    let mut known = BTreeSet::new();
    let local_parts = PAYLOADS.iter().map(|payload| quoted(&only_ascii(payload)));
    let local_parts: Vec<String> = local_parts
        .filter(|local_part| local_part.len() <= 64 && known.insert(local_part.to_ascii_lowercase()))
        .collect();
    assert!(local_parts.len() > PAYLOADS.len() / 2, "{local_parts:?}");
    let mut ids = Vec::new();
    for local_part in &local_parts {
        let address = format!("{local_part}@example.net");
        let from = format!("{local_part}@example.test");
        let id = service.send(json!({ "to": [&address], "from": &from, "reply_to": &from })).await;
        // Sent before its address is suppressed, or it would be held too.
        service.until_status(id, "Sent").await;
        ids.push(id);
        by_server("suppressions/add", json!({ "address": &address, "details": local_part })).await;
        service.send(json!({ "to": [&address], "from": &from })).await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let shown = |local_part: &String| format!("{local_part}@example.net");
    for page in
        ["/messages", "/messages?tab=held", "/events", "/suppressions", "/analytics?by=recipient_domain", ""]
    {
        browser.open(&service.url_of(&format!("/servers/{server}{page}"))).await;
        browser.until("h1").await;
        open_details(&browser).await;
        check_nothing_ran(&browser, page).await;
        match page {
            "/messages?tab=held" => check_texts_shown(&browser, page, local_parts.iter().map(shown)).await,
            "/suppressions" => {
                check_texts_shown(
                    &browser,
                    page,
                    local_parts.iter().map(|local_part| shown(local_part).to_ascii_lowercase()),
                )
                .await;
            }
            _ => {}
        }
    }
    for (local_part, id) in local_parts.iter().zip(&ids) {
        for view in ["timeline", "events", "headers"] {
            browser.open(&service.url_of(&format!("/servers/{server}/messages/{id}?view={view}"))).await;
            browser.until("#message").await;
            open_details(&browser).await;
            check_nothing_ran(&browser, &format!("{local_part} in {view}")).await;
            check_texts_shown(&browser, view, [shown(local_part)]).await;
        }
        let search =
            format!("/servers/{server}/suppressions?address={}", percent_encoded(&shown(local_part)));
        browser.open(&service.url_of(&search)).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, &search).await;
    }
    for (number, payloads) in PAYLOADS.chunks(PAYLOADS.len() / 2).enumerate() {
        let path = format!("/hook{number}");
        let hook = json!({ "url": receiver.url(&path), "events": ["message.bounced"] });
        let hook = by_server("webhooks/create", hook).await["id"].clone();
        for (at, payload) in payloads.iter().enumerate() {
            let headers = [
                ("location", only_ascii(payload)),
                ("content-type", only_ascii(payload)),
                ("server", only_ascii(payload)),
            ];
            let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
            let status = [400, 500, 410, 302][at % 4];
            receiver.answer(&path, CatcherAnswer::Full(status, headers, payload.as_bytes().to_vec()));
            by_server("webhooks/test", json!({ "id": hook })).await;
        }
        let page = format!("/servers/{server}/webhooks/{hook}");
        browser.open(&service.url_of(&page)).await;
        browser.until("#attempts .rows tbody tr:nth-child(20)").await;
        open_details(&browser).await;
        check_nothing_ran(&browser, "errors of a receiver").await;
        // The page shows no body of a redirect.
        let with_body = payloads.iter().enumerate().filter(|(at, _)| at % 4 != 3).map(|(_, payload)| payload);
        check_texts_shown(&browser, "errors of a receiver", with_body).await;
        browser.open(&service.url_of(&format!("/servers/{server}/webhooks"))).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, "the webhooks").await;
    }
}

/// Mail that anybody on the machine sends to the port of `postroad dev` that needs no login: we composed nothing of it.
#[tokio::test]
async fn raw_mail_in_the_inbox_runs_nothing() {
    let service = DevService::start();
    let mut caught = Vec::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let text = only_ascii(payload);
        // Names of headers have neither spaces nor colons.
        let name: String = text.chars().filter(|c| c.is_ascii_graphic() && *c != ':').collect();
        let in_quotes = quoted(&text);
        let mail = format!(
            "From: {} <sender@other.example>\r\nTo: {text}\r\nCc: {text}\r\nReply-To: {text}\r\n\
             Subject: {text}\r\nDate: {text}\r\nX-Note: {text}\r\n{name}: {text}\r\n\
             MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/html; charset={in_quotes}\r\n\r\n<p>{text}</p>\r\n\
             --b\r\nContent-Type: image/{name}; name={in_quotes}\r\nContent-ID: <{text}>\r\n\
             Content-Disposition: attachment; filename={in_quotes}\r\n\r\nx\r\n\
             --b\r\nContent-Type: {text}\r\nContent-Disposition: {text}; filename*=utf-8''{}\r\n\r\nx\r\n--b--\r\n",
            encoded_word(&text),
            percent_encoded(&text)
        );
        let mut client = SmtpClient::connect(service.plain_address()).await;
        let to = format!("u{number}@example.net");
        let reply = client.deliver("sender@other.example", &[&to], &mail).await;
        assert!(reply.starts_with("250"), "{payload}: {reply}");
        let found = service.client.get(&format!("/dev/messages/wait?to={to}&timeout=20")).await.unwrap();
        assert_eq!(found.status, 200);
        caught.push(found.json()["id"].to_string());
    }
    let browser = service.signed_in_browser().await;
    for list in ["/inbox", "/dev/"] {
        browser.open(&service.url_of(list)).await;
        browser.until("tr:nth-child(40)").await;
        check_nothing_ran(&browser, list).await;
        check_texts_shown(&browser, list, PAYLOADS.map(only_ascii)).await;
    }
    for (payload, id) in PAYLOADS.iter().zip(&caught) {
        for view in ["preview", "headers"] {
            let page = format!("/inbox/{id}?view={view}");
            browser.open(&service.url_of(&page)).await;
            browser.until("h1").await;
            check_view(&browser, view, &page).await;
            if view == "headers" {
                check_texts_shown(&browser, &page, ["x-note".to_owned(), only_ascii(payload)]).await;
            }
        }
        // Mailpit's page shows the HTML itself, in a sandbox.
        let html = service.client.get(&format!("/view/{id}.html")).await.unwrap();
        let policy = html.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("sandbox; default-src 'none'"), "{policy}");
        let cookie = service.sign_in().await;
        for number in [1, 2] {
            let file = service.get(&format!("/inbox/{id}/attachments/{number}"), &cookie).await;
            if number == 2 && file.status == 404 {
                // The type of this part cannot be parsed, so the part is shown as text, not as an attachment.
                continue;
            }
            assert_eq!(file.status, 200, "{payload}: {}", file.text());
            assert_eq!(file.headers["content-type"], "application/octet-stream");
            let disposition = file.headers["content-disposition"].to_str().unwrap();
            let name =
                disposition.strip_prefix("attachment; filename=\"").and_then(|rest| rest.strip_suffix('"'));
            let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            assert!(name.is_some_and(is_plain), "{disposition}");
        }
    }
}

/// Requests to the inspector, user agents of sessions, and mail in the inboxes.
#[tokio::test]
async fn requests_sessions_and_caught_mail_run_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let inspector = service.url_of(&format!("/servers/{server}/webhooks/inspector"));
    browser.open(&inspector).await;
    browser.click(".empty button").await;
    browser.until_text("Waiting for a request").await;
    let address = browser.text("section.card .secret").await;
    let address = address.strip_prefix(&service.url).unwrap();
    let development = SecondServer::create_development(&service).await;
    let sign_in = service.ready("sign_in_url");
    let sign_in = sign_in.strip_prefix(&service.url).unwrap();
    let mut held = Vec::new();
    for payload in PAYLOADS {
        let text = only_ascii(payload);
        let headers = [("x-note", text.as_str()), ("user-agent", text.as_str())];
        let path = format!("{address}?{}", percent_encoded(&text));
        assert_eq!(service.post(&path, &headers, payload).await.status, 200);
        let agent = [("user-agent", text.as_str())];
        service.client.request(Method::GET, sign_in, &agent, Bytes::new()).await.unwrap();
        let message = json!({
            "subject": payload, "from": format!("{} <shop@dev.test>", quoted(payload)), "plain_body": payload,
            "html_body": format!("{payload} <a href=\"https://x.example/{}\">x</a>", percent_encoded(payload)),
            "headers": { "X-Note": payload }, "attachments": [{ "name": payload, "data": "aGk=" }],
        });
        held.push(development.send(&service, message.clone()).await);
        let caught = json!({ "from": format!("{} <shop@example.test>", quoted(payload)) });
        let mut message = message;
        message.as_object_mut().unwrap().extend(caught.as_object().unwrap().clone());
        let id = service.send(message).await;
        service.until_status(id, "Sent").await;
    }
    browser.open(&inspector).await;
    browser.until("details.card:nth-of-type(40)").await;
    open_details(&browser).await;
    check_nothing_ran(&browser, "the inspector").await;
    check_texts_shown(&browser, "the inspector", PAYLOADS).await;
    let script = "%22%3E%3Cscript%3Ewindow.hit%3D1%3C%2Fscript%3E";
    for page in [
        &format!("/servers/{server}/analytics?tag={script}"),
        &format!("/servers/{server}/domains?q={script}"),
        &format!("/servers/{server}/suppressions?address={script}"),
        &format!("/servers/{server}/keys?revoked={script}"),
        &format!("/account/audit?operation={script}"),
        &format!("/account/people?q={script}"),
        &format!("/account/keys?q={script}"),
        &format!("/operator/accounts?q={script}"),
        "/operator/audit",
    ] {
        browser.open(&service.url_of(page)).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, page).await;
    }
    for page in ["/account/you", "/account/people/1"] {
        browser.open(&service.url_of(page)).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, page).await;
        check_texts_shown(&browser, page, PAYLOADS.map(only_ascii)).await;
    }
    let inboxes = [
        ("/inbox".to_owned(), (1..=PAYLOADS.len()).map(|id| id.to_string()).collect::<Vec<_>>()),
        (format!("/servers/{}/inbox", development.id), held.iter().map(ToString::to_string).collect()),
    ];
    for (inbox, ids) in inboxes {
        browser.open(&service.url_of(&inbox)).await;
        browser.until(".rows tbody tr:nth-child(40)").await;
        check_nothing_ran(&browser, &inbox).await;
        check_texts_shown(&browser, &inbox, PAYLOADS).await;
        // Each payload in one view only: the views of messages are the same, and
        // `texts_of_messages_replies_and_answers_run_nothing` shows all payloads in all of them.
        let views = ["preview", "text", "headers", "source"];
        for ((payload, id), view) in PAYLOADS.iter().zip(&ids).zip(views.iter().cycle()) {
            let page = format!("{inbox}/{id}?view={view}");
            browser.open(&service.url_of(&page)).await;
            browser.until("h1").await;
            check_view(&browser, view, &page).await;
            check_texts_shown(&browser, &page, [*payload]).await;
        }
    }
}

/// Like `check_nothing_ran`, but for a preview the console may report what the frame's sandbox and policy blocked.
async fn check_view(browser: &Browser, view: &str, what: &str) {
    if view == "preview" {
        let is_report =
            |line: &String| line.contains("Content Security Policy") || line.contains("sandboxed");
        let log = browser.console().await;
        assert!(log.iter().all(is_report), "{what}: {log:?}");
    }
    check_nothing_ran(browser, what).await;
}

/// Checks that no payload ran, and that the page has no element or attribute that could run one.
pub(crate) async fn check_nothing_ran(browser: &Browser, what: &str) {
    assert!(browser.run("return window.hit").await.is_null(), "{what} ran");
    let dangerous = "const bad = [];
        for (const one of document.querySelectorAll('*')) {
          if (one.matches('script:not([src]), object, embed, base, math, svg script, iframe[srcdoc]')) bad.push(one.outerHTML);
          for (const { name, value } of one.attributes) {
            const isAddress = ['href', 'src', 'action', 'formaction', 'data', 'xlink:href'].includes(name);
            if (name.startsWith('on') || (isAddress && /^\\s*(javascript|data|vbscript):/i.test(value))) bad.push(one.outerHTML);
          }
        }
        return bad";
    assert_eq!(browser.run(dangerous).await, json!([]), "{what}");
    assert_eq!(browser.console().await, [""; 0], "{what}");
}

/// Checks that the page shows each text as it is, apart from white space.
pub(crate) async fn check_texts_shown(
    browser: &Browser,
    what: &str,
    texts: impl IntoIterator<Item = impl AsRef<str>>,
) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(&browser.page_text().await);
    for text in texts {
        assert!(page.contains(&words(text.as_ref())), "{what} does not show {:?}: {page}", text.as_ref());
    }
}

pub(crate) async fn open_details(browser: &Browser) {
    browser
        .run("document.querySelectorAll('main details').forEach((one) => { one.removeAttribute('name'); one.open = true; }); return 1")
        .await;
}

/// An encoded word (RFC 2047) for a name in an address header. The From check would refuse some payloads as quoted
/// strings.
fn encoded_word(text: &str) -> String {
    format!("=?utf-8?q?{}?=", percent_encoded(text).replace('%', "="))
}

/// Quotes a text for the display name of an address.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Only the ASCII characters of a text, for fields that accept no others.
pub(crate) fn only_ascii(text: &str) -> String {
    text.chars().filter(char::is_ascii).collect()
}

/// Percent-encodes a text for a query.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn displayed_mail_loads_and_runs_nothing() {
    let remote = WebhookCatcher::start();
    let html = format!(
        "<h1>Hello</h1><img src=\"{0}\"><link rel=stylesheet href=\"{0}\"><script src=\"{0}\"></script>\
         <script>parent.hit=1; fetch('{0}')</script><style>body{{background:url({0})}}</style>\
         <iframe src=\"{0}\"></iframe><object data=\"{0}\"></object><video src=\"{0}\" autoplay></video>\
         <meta http-equiv=\"refresh\" content=\"0;url={0}\"><form action=\"{0}\"><button>go</button></form>\
         <a href=\"{0}\" id=out>out</a><p onclick=\"parent.hit=1\">text</p>\
         <noscript><iframe src=\"{0}\"></iframe><link rel=preconnect href=\"{0}\"></noscript>\
         <noframes><iframe src=\"{0}\"></iframe></noframes><noembed><iframe src=\"{0}\"></iframe></noembed>\
         <<link>iframe src=\"{0}\"><svg><foreignObject><noscript><iframe src=\"{0}\"></iframe></noscript>\
         </foreignObject></svg><template shadowrootmode=open><iframe src=\"{0}\"></iframe></template>",
        remote.url("/spy")
    );
    let service = DevService::start();
    let attached = json!([{ "name": "page.html", "content_type": "text/html", "data": "PHNjcmlwdD4=" }]);
    let id = service.send(json!({ "html_body": html, "attachments": attached })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&service.url_of(&format!("{message}?view=preview"))).await;
    browser.until("iframe.preview").await;
    // The frame has a separate origin: the page cannot reach into it, nor it into the page.
    assert!(browser.run("return document.querySelector('iframe').contentDocument").await.is_null());
    browser.screenshot(&pictures().join("preview.png")).await;
    assert!(browser.run("return window.hit").await.is_null());
    assert_eq!(remote.connections(), 0, "nothing was fetched");
    // The same mail in the inbox of `dev`, and at Mailpit's address.
    service.until_status(id, "Sent").await;
    for page in ["/inbox/1?view=preview", "/inbox/1/preview", "/view/latest.html"] {
        browser.open(&service.url_of(page)).await;
        browser.until("iframe.preview, h1").await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert_eq!(remote.connections(), 0, "{page}: nothing was fetched");
    }
    let cookie = service.sign_in().await;
    let reply = service.get(&format!("{message}/preview"), &cookie).await;
    let policy = reply.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox; default-src 'none'; img-src data:"), "{policy}");
    for path in ["raw", "attachments/1"] {
        let reply = service.get(&format!("{message}/{path}"), &cookie).await;
        assert_eq!(reply.status, 200, "{path}");
        let disposition = reply.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment"), "{path}: {disposition}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{path}");
        assert_ne!(reply.headers["content-type"], "text/html", "{path}");
    }
}
