//! Reports of receivers about domains: limits on what is kept of them.

use std::net::IpAddr;
use std::sync::Arc;

use postroad_app::{App, Destination, ReturnedMail, Settings as AppSettings};
use postroad_model::DomainName;
use postroad_store::{Database, Role, Settings, Store};
use postroad_testkit::ManualClock;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A name of the installation, so that reports about it are taken.
const HOST: &str = "mail.example.com";

/// Policy with 30 failure types, those from `first` on, each with one failed session.
fn policy(kind: &str, first: usize) -> Value {
    let failure = |number: usize| json!({"result-type": format!("f{number:02}"), "failed-session-count": 1});
    json!({
        "policy": {"policy-type": kind, "policy-domain": HOST},
        "summary": {"total-successful-session-count": 10, "total-failure-session-count": 30},
        "failure-details": (first..first + 30).map(failure).collect::<Vec<_>>(),
    })
}

/// Each policy of a report may have fifty types, and a report may have a hundred policies.
#[tokio::test]
async fn a_domain_keeps_fifty_failure_types_of_a_tls_report_with_several_policies() {
    let folder = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::default());
    let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
    let role = Role::Node { identity: "test".into() };
    let store = Store::open(settings, role, clock.clone()).await.unwrap();
    let app = App::with_settings(store, clock, AppSettings::of(DomainName::parse(HOST).unwrap()));

    // Sixty types, `f00` to `f59`, in policies that overlap.
    let report = json!({
        "organization-name": "isp.example",
        "date-range": {"start-datetime": "2026-11-14T00:00:00Z", "end-datetime": "2026-11-14T23:59:59Z"},
        "report-id": "7",
        "policies": [policy("sts", 0), policy("tlsa", 20), policy("no-policy-found", 30), policy("sts", 0)],
    });
    let mail = format!("Content-Type: application/tlsrpt+json\r\n\r\n{report}\r\n");
    let mail = ReturnedMail {
        mail_from: String::new(),
        bytes: mail.into(),
        received_with_ssl: true,
        peer: IpAddr::from([192, 0, 2, 1]),
    };
    app.return_receiver().await.unwrap().take(&[Destination::Reports], mail).await.unwrap();

    let shown = app.domain_reports(Some(HOST)).await.unwrap();
    let report = &shown["reports"][0];
    assert_eq!((&report["sessions"], &report["failed"]), (&json!(160), &json!(120)), "{shown}");
    let failures = report["details"]["failures"].as_object().unwrap();
    let kept: Vec<&str> = failures.keys().map(String::as_str).collect();
    assert_eq!(kept, (0..50).map(|number| format!("f{number:02}")).collect::<Vec<_>>());
    // Further sessions of a type that is kept still count.
    let of = |kind: &str| failures[kind].as_u64();
    assert_eq!((of("f00"), of("f20"), of("f35"), of("f49")), (Some(2), Some(3), Some(2), Some(2)));
}
