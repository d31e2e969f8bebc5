//! Texts that strangers choose run nothing in the portal, and mail that is looked at loads nothing.

use bytes::Bytes;
use postroad_testkit::http::Method;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{CatcherAnswer, SmtpPeer, WebhookCatcher};
use serde_json::json;

use crate::site::{Site, pictures, server_of};

/// Each sets `window.hit` if it runs.
const PAYLOADS: [&str; 40] = [
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

#[tokio::test]
async fn texts_of_strangers_run_nothing() {
    // The other mail server answers with a payload too.
    let reply = "550 5.1.1 <script>window.hit=1</script><img src=x onerror=window.hit=1>";
    let peer = SmtpPeer::start(Script::new().on(Stage::RcptTo, Answer::reply(reply)));
    let site = Site::start_with(None, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())]);
    let mut ids = Vec::new();
    for payload in PAYLOADS {
        let id = site
            .send(json!({
                "subject": payload, "tag": payload, "metadata": { "note": payload },
                "from": format!("{} <shop@example.test>", quoted(payload)),
                "plain_body": payload, "html_body": payload,
                "headers": { "X-Note": payload },
                "attachments": [{ "name": payload, "data": "aGk=" }],
            }))
            .await;
        ids.push(id);
    }
    site.until(ids[0], "HardFail").await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let list = site.path(&format!("/servers/{server}/messages"));
    browser.open(&list).await;
    browser.until(".rows tbody tr:nth-child(40)").await;
    check(&browser, "the list").await;
    let text = browser.page_text().await;
    for payload in PAYLOADS {
        let words: String = payload.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&words), "the list shows {payload} as text");
    }
    browser.open(&format!("{list}?q=%22%3E%3Cscript%3Ewindow.hit=1%3C/script%3E")).await;
    check(&browser, "the search").await;
    for (at, id) in ids.iter().enumerate() {
        let views: &[&str] = if at % 8 == 0 {
            &["timeline", "preview", "text", "source", "headers", "attachments"]
        } else {
            &["timeline"]
        };
        for view in views {
            browser.open(&format!("{list}/{id}?view={view}")).await;
            browser.until("#message").await;
            check(&browser, &format!("{} in {view}", PAYLOADS[at])).await;
        }
    }
    browser.open(&format!("{list}/{}", ids[0])).await;
    browser.until_text("550 5.1.1 <script>window.hit=1</script>").await;
    browser.screenshot(&pictures().join("hostile.png")).await;
}

#[tokio::test]
async fn texts_of_strangers_run_nothing_on_other_pages() {
    let answer = CatcherAnswer::Full(500, Vec::new(), PAYLOADS.join("\n").into_bytes());
    let receiver = WebhookCatcher::start();
    receiver.answer("/hook", answer);
    let site = Site::start();
    let key = site.ready("api_key");
    let call = async |path: &str, body: serde_json::Value| {
        let answer =
            site.client.post_json(&format!("/api/v1/{path}"), Some(&key), &body).await.unwrap().json();
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    };
    let hook =
        call("webhooks/create", json!({ "url": receiver.url("/hook"), "events": "all" })).await["id"].clone();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let inspector = site.path(&format!("/servers/{server}/webhooks/inspector"));
    browser.open(&inspector).await;
    browser.click(".empty button").await;
    browser.until_text("Waiting for a request").await;
    let address = browser.text("section.card .secret").await;
    let address = address.strip_prefix(&site.url).unwrap();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let ascii: String = payload.chars().filter(char::is_ascii).collect();
        let query = ascii.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
        let headers = [("x-note", ascii.as_str()), ("user-agent", ascii.as_str())];
        assert_eq!(site.post(&format!("{address}?{query}"), &headers, payload).await.status, 200);
        let body = json!({ "name": payload.chars().take(90).collect::<String>(), "subject": "x", "html_body": payload.replace('{', "") });
        if number % 4 == 0 {
            call("templates/create", body).await;
            call("suppressions/add", json!({ "address": format!("a{number}@example.net"), "reason": "manual", "details": payload }))
                .await;
        }
        // Sessions show the browser's name for itself.
        let link = site.ready("sign_in_url");
        let path = link.strip_prefix(&site.url).unwrap();
        if number < 5 {
            let agent = [("user-agent", ascii.as_str())];
            site.client.request(Method::GET, path, &agent, Bytes::new()).await.unwrap();
        }
    }
    site.send(json!({ "subject": PAYLOADS[0], "html_body": PAYLOADS.join(" "), "attachments": [{ "name": PAYLOADS[1], "data": "aGk=" }] }))
        .await;
    receiver.wait_for("/hook", 1);
    browser.open(&inspector).await;
    browser.until("details.card").await;
    browser
        .run("document.querySelectorAll('details').forEach((one) => { one.open = true; }); return 1")
        .await;
    check(&browser, "the inspector").await;
    browser.open(&site.path(&format!("/servers/{server}/webhooks/{hook}"))).await;
    browser.until_text("message.accepted").await;
    check(&browser, "answers of a receiver").await;
    browser.open(&site.path("/inbox")).await;
    browser.until(".rows tbody tr").await;
    check(&browser, "the inbox").await;
    browser.open(&site.path("/inbox/1")).await;
    browser.until("iframe").await;
    check(&browser, "a caught message").await;
    // An account and a job with the same texts.
    let operator_key = site.ready("operator_api_key");
    let name = json!({ "name": "<img src=x onerror=window.hit=1>" });
    let account =
        crate::roles::call(&site, "x-operator-api-key", &operator_key, "accounts/create", &name).await;
    let cookie = site.cookie().await;
    let form = "tab=held&act=release&all=1&q=%3Cscript%3Ewindow.hit%3D1%3C%2Fscript%3E";
    let job = site.submit(&format!("/servers/{server}/messages/bulk"), &cookie, form).await;
    let job = job.headers["location"].to_str().unwrap().to_owned();
    for page in [job, format!("/operator/accounts/{}", account["id"])] {
        browser.open(&site.path(&page)).await;
        browser.until("h1").await;
        check(&browser, &page).await;
    }
    let script = "%22%3E%3Cscript%3Ewindow.hit%3D1%3C%2Fscript%3E";
    for page in [
        "/templates",
        "/suppressions",
        "/queue",
        "",
        "/reports?domain=example.test",
        "/domains/example.test",
        "/events",
        "/analytics?by=tag",
        &format!("/analytics?tag={script}"),
        &format!("/domains?q={script}"),
        &format!("/suppressions?address={script}"),
        &format!("/keys?revoked={script}"),
    ] {
        browser.open(&site.path(&format!("/servers/{server}{page}"))).await;
        browser.until("h1").await;
        check(&browser, page).await;
    }
    for page in [
        "/account/you",
        "/account/people/1",
        "/account/audit",
        "/operator",
        "/operator/accounts",
        "/operator/keys",
        "/operator/nodes",
        "/operator/audit",
        &format!("/operator/accounts/{}/people", account["id"]),
        &format!("/account/audit?operation={script}"),
        &format!("/account/people?q={script}"),
        &format!("/account/keys?q={script}"),
        &format!("/operator/accounts?q={script}"),
    ] {
        browser.open(&site.path(page)).await;
        browser.until("h1").await;
        check(&browser, page).await;
    }
}

async fn check(browser: &postroad_testkit::Browser, what: &str) {
    assert!(browser.run("return window.hit").await.is_null(), "{what} ran");
    assert_eq!(
        browser.run("return document.querySelectorAll('script:not([src])').length").await,
        0,
        "{what}"
    );
    assert_eq!(browser.console().await, [""; 0], "{what}");
}

/// As the display name of an address.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[tokio::test]
async fn mail_that_is_looked_at_loads_and_runs_nothing() {
    let remote = WebhookCatcher::start();
    let html = format!(
        "<h1>Hello</h1><img src=\"{0}\"><link rel=stylesheet href=\"{0}\"><script src=\"{0}\"></script>\
         <script>parent.hit=1; fetch('{0}')</script><style>body{{background:url({0})}}</style>\
         <iframe src=\"{0}\"></iframe><object data=\"{0}\"></object><video src=\"{0}\" autoplay></video>\
         <meta http-equiv=\"refresh\" content=\"0;url={0}\"><form action=\"{0}\"><button>go</button></form>\
         <a href=\"{0}\" id=out>out</a><p onclick=\"parent.hit=1\">text</p>",
        remote.url("/spy")
    );
    let site = Site::start();
    let attached = json!([{ "name": "page.html", "content_type": "text/html", "data": "PHNjcmlwdD4=" }]);
    let id = site.send(json!({ "html_body": html, "attachments": attached })).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&site.path(&format!("{message}?view=preview"))).await;
    browser.until("iframe.preview").await;
    // The frame has an origin of its own: the page cannot reach into it, nor it into the page.
    assert!(browser.run("return document.querySelector('iframe').contentDocument").await.is_null());
    browser.screenshot(&pictures().join("preview.png")).await;
    assert!(browser.run("return window.hit").await.is_null());
    assert_eq!(remote.connections(), 0, "nothing was fetched");
    let cookie = site.cookie().await;
    let reply = site.get(&format!("{message}/preview"), &cookie).await;
    let policy = reply.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox; default-src 'none'; img-src data:"), "{policy}");
    for path in ["raw", "attachments/1"] {
        let reply = site.get(&format!("{message}/{path}"), &cookie).await;
        assert_eq!(reply.status, 200, "{path}");
        let disposition = reply.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment"), "{path}: {disposition}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{path}");
        assert_ne!(reply.headers["content-type"], "text/html", "{path}");
    }
}
