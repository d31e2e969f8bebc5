//! The button that signs in at `postroad dev` without a link: only on the same machine, and only on the portal's pages.

use postroad_testkit::{Browser, Daemon, http::Client};
use tempfile::TempDir;

use crate::service::{DevService, FreshService, pictures, program};

const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");

#[tokio::test]
async fn a_button_signs_in_the_developer() {
    let service = DevService::start();
    let browser = Browser::start().await;
    browser.open(&service.url_of("/account/you")).await;
    browser.until_text("Continue as the developer").await;
    assert!(!browser.page_text().await.contains("terminal"));
    browser.screenshot(&pictures().join("sign-in-dev.png")).await;
    browser.click("a[href='/dev/']").await;
    browser.until_text("Nothing was caught yet").await;
    browser.back().await;
    browser.set_scripts(false).await;
    browser.click("form[action='/sign_in/developer'] button").await;
    browser.until("nav.side").await;
    assert!(browser.url().await.ends_with("/account/you"), "{}", browser.url().await);
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn signing_in_as_the_developer_is_refused_to_other_sites_and_host_names() {
    let service = DevService::start();
    let path = "/sign_in/developer";
    for headers in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "http://evil.example")],
        &[("origin", "null")],
        // A host name that an attacker points at 127.0.0.1 (DNS rebinding).
        &[SAME_ORIGIN, ("host", "evil.example")],
        &[("host", "evil.example"), ("origin", "http://evil.example")],
    ] {
        let reply = service.post(path, headers, "next=/").await;
        assert_eq!(reply.status, 403, "{headers:?}");
        assert!(!reply.headers.contains_key("set-cookie"), "{headers:?}");
    }
    // The path takes no GET: an image or a frame of another site cannot open it.
    assert_eq!(service.get(path, "").await.status, 404);
    let reply = service.post(path, &[SAME_ORIGIN], "next=//evil.example/").await;
    assert_eq!((reply.status, reply.headers["location"].to_str().unwrap()), (303, "/"));
    assert!(reply.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn serve_has_no_button_for_the_developer() {
    // With and without an inbox of caught mail.
    for extra_config in ["[delivery]\ncatch_all = \"on\"\n", ""] {
        let page = FreshService::start(extra_config).client.get("/sign_in").await.unwrap().text();
        assert!(page.contains("Password") && !page.contains("developer"), "{page}");
        assert!(!page.contains("postroad dev"), "{page}");
    }
    let fresh = FreshService::start("");
    let headers = [("content-type", "application/x-www-form-urlencoded"), SAME_ORIGIN];
    let sent = fresh.client.request("POST".parse().unwrap(), "/sign_in/developer", &headers, "next=/".into());
    let reply = sent.await.unwrap();
    assert_eq!(reply.status, 404);
    assert!(!reply.headers.contains_key("set-cookie"));
}

/// Behind a proxy on the same machine, the client address that the proxy reports decides.
#[tokio::test]
async fn other_machines_get_no_button() {
    let folder = TempDir::new().unwrap();
    let data_dir = folder.path().join("data");
    let args =
        ["dev", "--json", "--listen", "0.0.0.0", "--http-port", "0", "--plain-port", "0", "--smtp-port", "0"];
    let args = args.into_iter().chain(["--smtps-port", "0", "--bounce-port", "0", "--data-dir"]);
    let proxies = [("POSTROAD_HTTP_TRUSTED_PROXIES", "127.0.0.0/8")];
    let daemon = Daemon::start(program(), args.chain([data_dir.to_str().unwrap()]), &proxies);
    let port = daemon.ready()["url"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let client = Client::new(&format!("http://127.0.0.1:{port}"));
    for (address, status) in [("127.0.0.1", 303), ("192.0.2.7", 404), ("10.0.0.7", 404), ("::1", 303)] {
        let from = ("x-forwarded-for", address);
        let page =
            client.request("GET".parse().unwrap(), "/sign_in", &[from], "".into()).await.unwrap().text();
        assert_eq!(page.contains("Continue as the developer"), status == 303, "{address}: {page}");
        assert_eq!(page.contains("the link that its terminal shows"), status == 404, "{address}: {page}");
        let headers = [from, SAME_ORIGIN, ("content-type", "application/x-www-form-urlencoded")];
        let sent = client.request("POST".parse().unwrap(), "/sign_in/developer", &headers, "next=/".into());
        assert_eq!(sent.await.unwrap().status, status, "{address}");
    }
}
