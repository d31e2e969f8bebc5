//! The first person of an installation opens the set-up link, creates the account, signs out, and signs in again. Also
//! the authenticator apps of the first person and of an invited one.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::Client;
use postroad_testkit::{Browser, daemon, eventually, totp_code};
use serde_json::json;
use tempfile::TempDir;

use crate::roles::call;
use crate::service::{DevService, FreshService, pictures, program};

#[tokio::test]
async fn first_person_chooses_an_authenticator_app_at_once() {
    let fresh = FreshService::start("");
    let browser = Browser::start().await;
    browser.open(&fresh.set_up_link).await;
    browser.fill("input[name=account]", "Shop Ltd").await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("input[name=app]").await;
    browser.screenshot(&pictures().join("set-up.png")).await;
    browser.click("form button").await;
    browser.click("form[action='/account/you/app'] button").await;
    browser.until("svg.qr").await;
    let secret = browser.text("form[action$='/enable'] .secret").await;
    let code = totp_code(&secret, SystemClock.now().as_micros() / 1_000_000);
    browser.fill("input[name=code]", &code).await;
    browser.click("form[action$='/enable'] > button").await;
    browser.until_text("Keep these recovery codes").await;
    browser.screenshot(&pictures().join("set-up-codes.png")).await;
    browser.click("section a.button").await;
    browser.until_text("Create the first one").await;
    assert_eq!(browser.console().await, [""; 0]);
}

/// A process, which is killed when the guard is dropped.
struct ProcessGuard(Child);

impl ProcessGuard {
    /// Stops the service with SIGTERM. After that, its output is complete.
    fn terminate(&mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn without_https_serve_prints_a_link_that_opens_on_this_machine() {
    for (extra_config, has_plain_link) in [
        ("", true),
        ("[portal]\nbase_url = \"https://portal.example.com\"\n", false),
        ("trusted_proxies = [\"127.0.0.1\"]\n", false),
    ] {
        let folder = TempDir::new().unwrap();
        let config = FreshService::write_configuration(&folder, extra_config);
        let mut command = daemon::command(program(), &[]);
        command.args(["serve", "--config", config.to_str().unwrap()]).stderr(Stdio::null());
        let output = folder.path().join("output");
        command.stdout(File::create(&output).unwrap());
        let mut service = ProcessGuard(command.spawn().unwrap());
        let links = eventually(async || {
            let output = std::fs::read_to_string(&output).unwrap();
            let links: Vec<String> =
                output.lines().filter(|line| line.contains("token=")).map(str::to_owned).collect();
            if links.len() > usize::from(has_plain_link) { Ok(links) } else { Err(output) }
        })
        .await;
        assert!(links[0].starts_with("https://"), "{links:?}");
        if has_plain_link {
            let (base, path) = links[1].split_once("/set_up").unwrap();
            let page = Client::new(base).get(&format!("/set_up{path}")).await.unwrap();
            assert!(
                page.status == 200 && page.text().contains("You become the owner"),
                "{links:?} {}",
                page.text()
            );
        }
        service.terminate();
        let output = std::fs::read_to_string(&output).unwrap();
        assert_eq!(output.contains("HTTPS is off"), has_plain_link, "{output}");
    }
}

#[tokio::test]
async fn an_invited_person_may_choose_an_authenticator_app_at_once() {
    let service = DevService::start();
    let account =
        call(&service, "x-account-api-key", &service.ready("account_api_key"), "account/get", &json!({}))
            .await;
    let wanted =
        json!({ "account": account["id"], "email": "anna@example.com", "role": "member", "mail": false });
    let invited =
        call(&service, "x-operator-api-key", &service.ready("operator_api_key"), "users/invite", &wanted)
            .await;
    let token = invited["link"].as_str().unwrap().split_once("token=").unwrap().1.to_owned();
    let own = [("sec-fetch-site", "same-origin")];
    let join = async |password: &str| {
        let form = format!("token={token}&name=Anna&app=1&password={password}");
        service.post("/invitation", &own, &form).await
    };
    let page = service.get(&format!("/invitation?token={token}"), "").await.text();
    assert!(page.contains("name=\"app\"") && !page.contains(" checked"), "{page}");
    let refused = join("short").await;
    assert!(refused.status == 422 && refused.text().contains(" checked"), "{}", refused.text());
    let joined = join("a+road+of+seven+posts").await;
    assert_eq!((joined.status, joined.header("location")), (303, Some("/account/you#app")));
}

#[tokio::test]
async fn first_person_sets_up_signs_out_and_in_again() {
    let fresh = FreshService::start("");
    let (url, link) = (&fresh.url, &fresh.set_up_link);

    let browser = Browser::start().await;
    browser.open(url).await;
    browser.until("input[name=password]").await;
    assert!(browser.url().await.ends_with("/sign_in"));
    browser.open(link).await;
    browser.fill("input[name=account]", "Shop Ltd").await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "short").await;
    browser.click("input[name=app]").await;
    browser.click("form button").await;
    browser.until(".problem").await;
    // The refused form keeps the tick.
    assert!(browser.has("input[name=app]:checked").await);
    browser.click("input[name=app]").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form button").await;
    browser.until_text("Create the first one").await;
    // The link works once.
    browser.open(link).await;
    browser.until_text("The link was used").await;

    browser.open(&format!("{url}/servers")).await;
    browser.click(".person summary").await;
    browser.click("form[action='/sign_out'] button").await;
    browser.until_text("You are signed out").await;
    browser.back().await;
    browser.reload().await;
    browser.until("input[name=password]").await;

    browser.open(&format!("{url}/servers?after=1")).await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "something else entirely").await;
    browser.click("form button").await;
    browser.until_text("The e-mail address or the password is wrong").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form button").await;
    browser.until("nav.side").await;
    assert!(
        browser.url().await.ends_with("/servers?after=1"),
        "signing in leads to the page that was opened"
    );
}
