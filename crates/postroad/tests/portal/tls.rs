//! The portal over TLS, and behind a proxy that terminates TLS: cookies, HSTS, and URLs on pages.

use postroad_testkit::http::{Bytes, Method};
use postroad_testkit::{Client, Reply, TestCertificate};
use tempfile::TempDir;

use crate::service::{FreshService, form_token};

/// URL-encoded, for the body of a form.
const PASSWORD: &str = "a+road+of+seven+posts";
const HSTS: &str = "strict-transport-security";

/// A browser of the portal: its connection, and the headers that come with every request.
struct PortalClient<'a> {
    client: Client,
    /// Scheme and host that the browser uses.
    origin: String,
    headers: Vec<(&'a str, &'a str)>,
}

impl PortalClient<'_> {
    async fn get(&self, path: &str, cookie: &str) -> Reply {
        let headers = [self.headers.as_slice(), &[("cookie", cookie)]].concat();
        self.client.request(Method::GET, path, &headers, Bytes::new()).await.unwrap()
    }

    async fn post(&self, path: &str, cookie: &str, form: &str) -> Reply {
        let own = [
            ("cookie", cookie),
            ("origin", &self.origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let headers = [self.headers.as_slice(), &own].concat();
        self.client.request(Method::POST, path, &headers, form.to_owned().into()).await.unwrap()
    }

    /// Sets up the service, and checks all that depends on whether the browser's connection has TLS (`is_tls`).
    async fn check(&self, set_up_link: &str, is_tls: bool) {
        let token = set_up_link.split_once("token=").unwrap().1;
        let form = format!("token={token}&account=Shop&email=owner@shop.example&password={PASSWORD}");
        let reply = self.post("/set_up", "", &form).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let set_cookie = reply.headers["set-cookie"].to_str().unwrap().to_owned();
        assert!(
            set_cookie.starts_with(if is_tls { "__Host-postroad=" } else { "postroad=" }),
            "{set_cookie}"
        );
        assert!(
            set_cookie.contains("; HttpOnly")
                && set_cookie.contains("; SameSite=Lax")
                && set_cookie.contains("; Path=/;"),
            "{set_cookie}"
        );
        assert_eq!(set_cookie.contains("; Secure"), is_tls, "{set_cookie}");
        assert!(!set_cookie.contains("Domain"), "{set_cookie}");
        let cookie = set_cookie.split(';').next().unwrap();
        for path in ["/servers", "/sign_in", "/account/you", "/servers/999"] {
            let reply = self.get(path, cookie).await;
            let hsts = reply.headers.get(HSTS).map(|value| value.to_str().unwrap());
            assert_eq!(hsts, is_tls.then_some("max-age=31536000"), "{path}");
        }
        // The page with a new key shows commands with the base URL that the browser uses.
        let csrf = form_token(&self.get("/servers", cookie).await);
        let server = self.post("/servers", cookie, &format!("csrf={csrf}&name=shop&mode=live")).await;
        assert_eq!(server.status, 303, "{}", server.text());
        let keys = server.headers["location"].to_str().unwrap().split('?').next().unwrap().to_owned();
        let key = self.post(&keys, cookie, &format!("csrf={csrf}&name=first&scope=full")).await;
        assert!(key.text().contains(&format!("{}/api/v1/send/message", self.origin)), "{}", key.text());
        let other = if is_tls { "http://" } else { "https://" };
        assert!(!key.text().contains(&format!("{other}{}", self.origin.split_once("://").unwrap().1)));
        let server_cookie = self.get(&keys, cookie).await.headers["set-cookie"].to_str().unwrap().to_owned();
        assert!(
            server_cookie.starts_with("server=") && server_cookie.contains("; HttpOnly"),
            "{server_cookie}"
        );
        assert_eq!(server_cookie.contains("; Secure"), is_tls, "{server_cookie}");
        // A form of another site is refused.
        let foreign =
            [self.headers.as_slice(), &[("cookie", cookie), ("origin", "https://evil.example")]].concat();
        let form = format!("csrf={csrf}&name=stolen").into();
        assert_eq!(self.client.request(Method::POST, "/servers", &foreign, form).await.unwrap().status, 403);
        let gone = self.post("/sign_out", cookie, &format!("csrf={csrf}")).await;
        let removed = gone.headers["set-cookie"].to_str().unwrap();
        assert!(removed.contains("Max-Age=0") && removed.contains("; Secure") == is_tls, "{removed}");
    }
}

#[tokio::test]
async fn over_tls_cookies_are_secure_and_urls_are_https() {
    let folder = TempDir::new().unwrap();
    let certificate = TestCertificate::for_localhost();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("cert.pem"), &certificate.certificate_pem).unwrap();
    std::fs::write(path("key.pem"), &certificate.key_pem).unwrap();
    let fresh = FreshService::start(&format!(
        "https_listen = \"127.0.0.1:0\"\n[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
        path("cert.pem"),
        path("key.pem")
    ));
    let origin = format!("https://localhost:{}", fresh.https_port());
    let client = Client::https(&origin, &certificate.ca_pem);
    PortalClient { client, origin, headers: Vec::new() }.check(&fresh.set_up_link, true).await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_with_tls_cookies_are_secure_and_urls_are_https() {
    let fresh = FreshService::start("trusted_proxies = [\"127.0.0.0/8\"]\n");
    let headers =
        vec![("host", "portal.example"), ("x-forwarded-proto", "https"), ("x-forwarded-for", "198.51.100.7")];
    let portal =
        PortalClient { client: fresh.client.clone(), origin: "https://portal.example".to_owned(), headers };
    portal.check(&fresh.set_up_link, true).await;
}

#[tokio::test]
async fn tls_reported_by_an_untrusted_proxy_is_ignored() {
    let fresh = FreshService::start("");
    let headers = vec![("host", "portal.example"), ("x-forwarded-proto", "https")];
    let portal =
        PortalClient { client: fresh.client.clone(), origin: "http://portal.example".to_owned(), headers };
    portal.check(&fresh.set_up_link, false).await;
}
