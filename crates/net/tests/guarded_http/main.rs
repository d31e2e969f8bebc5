//! Guarded HTTP client against real sockets: dialling, refusing and reading.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

mod bounds;
mod dialling;

use bytes::Bytes;
use hyper::HeaderMap;
use postroad_model::WebhookUrl;
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings, HttpAnswer, HttpFailure};
use postroad_testkit::{DnsServer, TestCertificate};
use std::time::Duration;

/// Allows 127.0.0.0/8 and no other private network.
fn settings() -> GuardedHttpSettings {
    GuardedHttpSettings { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..GuardedHttpSettings::default() }
}

fn client(
    dns: &DnsServer,
    certificate: Option<&TestCertificate>,
    settings: GuardedHttpSettings,
) -> GuardedHttp {
    let dns = DnsSettings {
        nameservers: vec![dns.address()],
        timeout: Duration::from_secs(2),
        ..DnsSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roots.pem");
    let roots = certificate.map(|certificate| {
        std::fs::write(&file, &certificate.ca_pem).unwrap();
        file.as_path()
    });
    GuardedHttp::new(Dns::new(&dns).unwrap(), ClientTls::new(roots).unwrap().verified(), settings)
}

async fn post(client: &GuardedHttp, url: &str) -> Result<HttpAnswer, HttpFailure> {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "evt_1".parse().unwrap());
    client.post(&WebhookUrl::parse(url).unwrap(), &headers, &Bytes::from_static(b"{\"a\":1}")).await
}

async fn failure_class(client: &GuardedHttp, url: &str) -> &'static str {
    post(client, url).await.expect_err("this must not work").class().as_str()
}
