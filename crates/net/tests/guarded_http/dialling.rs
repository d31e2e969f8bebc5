//! Dialling: addresses are checked after DNS, for every new connection. Also reuse of connections, certificates, and
//! classes of failures.

use std::time::Duration;

use postroad_model::WebhookUrl;
use postroad_net::guarded_http::{GuardedHttpSettings, TokenUrls};
use postroad_testkit::{CatcherAnswer, DnsServer, TestCertificate, WebhookCatcher};

use super::{client, failure_class, post, settings};

#[tokio::test]
async fn a_post_arrives_unchanged() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    dns.a("hooks.example.com", [127, 0, 0, 1]);
    catcher.answer("/in?x=1", CatcherAnswer::Full(201, Vec::new(), b"thanks".to_vec()));
    let client = client(&dns, None, settings());
    let url = format!("http://hooks.example.com:{}/in?x=1", catcher.address().port());
    let answer = post(&client, &url).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (201, &b"thanks"[..]));
    assert_eq!(answer.address.to_string(), "127.0.0.1");
    let received = catcher.received().remove(0);
    assert_eq!(received.target, "/in?x=1");
    assert_eq!(received.body, b"{\"a\":1}");
    assert_eq!(received.header("webhook-id"), Some("evt_1"));
    let host = format!("hooks.example.com:{}", catcher.address().port());
    assert_eq!(received.header("host"), Some(host.as_str()));
}

#[tokio::test]
async fn addresses_that_are_not_public_are_never_dialled() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    dns.a("private.example.com", [10, 0, 0, 1]).a("loopback.example.com", [127, 0, 0, 1]);
    dns.aaaa("mapped.example.com", "::ffff:127.0.0.1".parse::<std::net::Ipv6Addr>().unwrap());
    let client = client(&dns, None, GuardedHttpSettings::default());
    let port = catcher.address().port();
    for host in [
        "private.example.com",
        "loopback.example.com",
        "mapped.example.com",
        "localhost",
        "a.localhost",
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
    ] {
        assert_eq!(
            failure_class(&client, &format!("http://{host}:{port}/")).await,
            "refused_address",
            "{host}"
        );
    }
    assert_eq!(catcher.connections(), 0);
}

#[tokio::test]
async fn a_name_that_now_has_a_private_address_is_refused_at_the_next_connection() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    dns.ttl_secs(0).a("rebind.example.com", [127, 0, 0, 1]);
    catcher.answer("/", CatcherAnswer::Close);
    let client = client(&dns, None, settings());
    let url = format!("http://rebind.example.com:{}/", catcher.address().port());
    assert_eq!(post(&client, &url).await.unwrap().status, 200);
    dns.remove("rebind.example.com").a("rebind.example.com", [10, 0, 0, 1]);
    assert_eq!(failure_class(&client, &url).await, "refused_address");
    assert_eq!(catcher.received().len(), 1);
}

#[tokio::test]
async fn open_connection_is_reused_and_closed_one_is_replaced() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    let client = client(&dns, None, settings());
    for _ in 0..3 {
        assert_eq!(post(&client, &catcher.url("/")).await.unwrap().status, 200);
    }
    assert_eq!(catcher.connections(), 1);
    catcher.answer_next("/", [CatcherAnswer::Close]);
    for _ in 0..2 {
        assert_eq!(post(&client, &catcher.url("/")).await.unwrap().status, 200);
    }
    assert_eq!(catcher.connections(), 2);
    assert_eq!(catcher.received().len(), 5);
}

#[tokio::test]
async fn certificates_are_checked() {
    let dns = DnsServer::start();
    dns.a("hooks.example.com", [127, 0, 0, 1]);
    let good = TestCertificate::for_names(&["hooks.example.com"]);
    let catcher = WebhookCatcher::start_tls(&good);
    let url = format!("https://hooks.example.com:{}/", catcher.address().port());
    assert_eq!(post(&client(&dns, Some(&good), settings()), &url).await.unwrap().status, 200);
    assert_eq!(failure_class(&client(&dns, None, settings()), &url).await, "tls");
    let by_address = format!("https://127.0.0.1:{}/", catcher.address().port());
    assert_eq!(failure_class(&client(&dns, Some(&good), settings()), &by_address).await, "tls");
}

#[tokio::test]
async fn failures_have_a_class() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    let short = GuardedHttpSettings { exchange_timeout: Duration::from_millis(300), ..settings() };
    let client = client(&dns, None, short);
    assert_eq!(failure_class(&client, "http://nowhere.example.com/").await, "dns");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(failure_class(&client, &format!("http://{closed}/")).await, "connect");
    catcher.answer("/", CatcherAnswer::Hang);
    assert_eq!(failure_class(&client, &catcher.url("/")).await, "timeout");
}

#[tokio::test]
async fn exempt_urls_are_dialled_at_private_addresses_and_no_other_urls() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    dns.a("own.example.com", [127, 0, 0, 1]).a("other.example.com", [127, 0, 0, 1]);
    let other = WebhookCatcher::start();
    let client = client(&dns, None, GuardedHttpSettings::default());
    let port = catcher.address().port();
    let exempt = [format!("http://own.example.com:{port}"), format!("http://127.0.0.1:{port}")];
    let below = |base: &String| TokenUrls::below(&WebhookUrl::parse(&format!("{base}/inspect/")).unwrap());
    client.set_exempt(exempt.iter().map(below).collect());
    catcher.answer("/inspect/moved", CatcherAnswer::redirect(&other.url("/inspect/abc")));
    for base in &exempt {
        assert_eq!(post(&client, &format!("{base}/inspect/abc?status=200")).await.unwrap().status, 200);
        // A redirect is an answer like any other.
        assert_eq!(post(&client, &format!("{base}/inspect/moved")).await.unwrap().status / 100, 3);
        // A connection to the same host and port is kept now; it is not used for the following paths.
        for path in ["/", "/inspect/", "/inspect", "/inspect/a/b", "/inspect/../api/v1/x", "/dev/messages"] {
            assert_eq!(failure_class(&client, &format!("{base}{path}")).await, "refused_address", "{path}");
        }
    }
    let other_port = other.address().port();
    for url in [
        format!("http://own.example.com:{other_port}/inspect/abc"),
        format!("http://127.0.0.1:{other_port}/inspect/abc"),
        format!("http://other.example.com:{port}/inspect/abc"),
        format!("http://localhost:{port}/inspect/abc"),
        format!("https://own.example.com:{port}/inspect/abc"),
    ] {
        assert_eq!(failure_class(&client, &url).await, "refused_address", "{url}");
    }
    assert_eq!(catcher.received().len(), 4);
    assert!(other.received().is_empty());
}
