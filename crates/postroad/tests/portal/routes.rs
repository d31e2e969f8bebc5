//! Every route of the portal with an example and the lowest role that may use it. A test compares the table with the
//! portal's source, so that a new page without a row here fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A signed-in person of each role, ordered by increasing rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Person {
    ReadOnly,
    Member,
    Admin,
    Owner,
    Operator,
}

/// People who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Also those who are not signed in.
    Anybody,
    AtLeast(Person),
}

use Access::{Anybody, AtLeast};
use Person::{Admin, Member, Operator, ReadOnly};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Page,
    /// Never ends: only its head is read.
    Stream,
    Form,
}

use Kind::{Form, Page, Stream};

/// Kind, route, query or fields of the form, and who may use it. Placeholders in braces get the
/// values that `roles::create_objects_with_held_message` returns.
pub(crate) const ROUTES: &[(Kind, &str, &str, Access)] = &[
    (Page, "/sign_in", "", Anybody),
    (Form, "/sign_in", "email=nobody@example.net&password=x", Anybody),
    (Form, "/sign_in/code", "token=x&code=1", Anybody),
    (Form, "/sign_in/developer", "", Anybody),
    (Page, "/set_up", "", Anybody),
    (Form, "/set_up", "token=x", Anybody),
    (Page, "/reset_password", "", Anybody),
    (Form, "/reset_password", "token=x", Anybody),
    (Page, "/invitation", "token=x", Anybody),
    (Form, "/invitation", "token=x", Anybody),
    (Page, "/dns/{token}", "", Anybody),
    (Page, "/dns/{token}/zone", "", Anybody),
    (Form, "/inspect/{token}", "", Anybody),
    (Page, "/inspect/{token}", "", Anybody),
    (Page, "/", "", AtLeast(ReadOnly)),
    (Page, "/servers", "", AtLeast(ReadOnly)),
    (Form, "/servers", "name=x&mode=live", AtLeast(Admin)),
    (Page, "/servers/{server}", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/first_message", "since=0", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/first_message", "from=a@x.test&to=b@x.test", AtLeast(Member)),
    (Stream, "/servers/{server}/live", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages", "q=order", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages", "tab=held", AtLeast(ReadOnly)),
    (Page, "/servers/{development}/messages", "tab=held", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages", "tab=scheduled", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/export", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/messages/searches", "q=a", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/messages/searches/forget", "search=999999", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/messages/bulk", "act=release&id=1", AtLeast(Member)),
    (Form, "/servers/{server}/messages/bulk", "act=cancel_hold&id=1", AtLeast(Member)),
    (Form, "/servers/{server}/messages/bulk", "act=retry&id=1", AtLeast(Member)),
    (Form, "/servers/{server}/messages/bulk", "act=cancel&id=1", AtLeast(Member)),
    (Form, "/servers/{server}/messages/bulk", "act=cancel_queued&id=1", AtLeast(Member)),
    (Form, "/servers/{server}/messages/bulk", "act=erase&all=1&q=nothing", AtLeast(Admin)),
    (Form, "/servers/{server}/messages/bulk", "act=cancel&all=1&tab=scheduled&q=nothing", AtLeast(Member)),
    (
        Form,
        "/servers/{server}/messages/bulk",
        "act=release&all=1&tab=held&q=nothing&confirmed=1",
        AtLeast(Member),
    ),
    (Form, "/servers/{server}/messages/bulk", "act=cancel_all&tab=scheduled&q=nothing", AtLeast(Member)),
    (Page, "/servers/{server}/jobs", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/jobs/{job}", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}", "view=events", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}", "view=headers", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}/preview", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}/raw", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/messages/{message}/attachments/{number}", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/messages/{message}/act", "act=retry", AtLeast(Member)),
    (Form, "/servers/{server}/messages/{message}/act", "act=release", AtLeast(Member)),
    (Form, "/servers/{server}/messages/{message}/act", "act=cancel_hold", AtLeast(Member)),
    (Form, "/servers/{server}/messages/{message}/act", "act=cancel", AtLeast(Member)),
    (Form, "/servers/{server}/messages/{message}/act", "act=cancel_queued", AtLeast(Member)),
    (Form, "/servers/{server}/messages/{missing}/act", "act=erase", AtLeast(Admin)),
    (
        Form,
        "/servers/{server}/messages/{message}/reschedule",
        "send_at_utc=2027-01-31T09:00",
        AtLeast(Member),
    ),
    (
        Form,
        "/servers/{server}/messages/reschedule",
        "tag=nothing&send_at_utc=2027-01-31T09:00",
        AtLeast(Member),
    ),
    (Form, "/servers/{server}/erase", "address=nobody@example.net", AtLeast(Admin)),
    (Page, "/servers/{server}/queue", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/queue/suspend", "reason=x&per_minute=60", AtLeast(Admin)),
    (Form, "/servers/{server}/queue/resume", "", AtLeast(Admin)),
    (Page, "/servers/{server}/events", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/events", "kind=message.delivered&since=2026-01-01", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/analytics", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/analytics", "tag=x&zone=Europe%2FBerlin&since=2026-01-01", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/analytics/csv", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/reports", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/templates", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/templates/new", "", AtLeast(Member)),
    (Form, "/servers/{server}/templates/new", "name=x", AtLeast(Member)),
    (Page, "/servers/{server}/templates/{template}", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/templates/{template}", "name=x&subject=y&plain_body=z", AtLeast(Member)),
    (Form, "/servers/{server}/templates/new/check", "name=x&subject=y", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/templates/{template}/check", "name=x&subject=y", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/templates/new/preview", "name=x&subject=y", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/templates/{template}/preview", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/templates/{template}/preview", "name=x&subject=y", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/templates/{template}/compare", "from=1&to=1", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/templates/{template}/publish", "version=1", AtLeast(Member)),
    (Form, "/servers/{server}/templates/{template}/rollback", "version=1", AtLeast(Member)),
    (Form, "/servers/{server}/templates/{template}/send_test", "from=a@x.test&to=b@x.test", AtLeast(Member)),
    (Form, "/servers/{server}/templates/{missing}/delete", "", AtLeast(Member)),
    (Page, "/servers/{server}/domains", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/domains", "name=example.org", AtLeast(Admin)),
    (Page, "/servers/{server}/domains/{name}", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/domains/{name}/zone", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/domains/{name}/verify", "", AtLeast(Admin)),
    (Form, "/servers/{server}/domains/{name}/rotate_dkim", "", AtLeast(Admin)),
    (Form, "/servers/{server}/domains/{name}/share", "", AtLeast(Admin)),
    (Form, "/servers/{server}/domains/{name}/unshare", "link=999999", AtLeast(Admin)),
    (Form, "/servers/{server}/domains/{name}/set_verified", "verified=1", AtLeast(Operator)),
    (Form, "/servers/{server}/domains/{name}/set_tracking", "opens=on", AtLeast(Operator)),
    // Deletes the domain that a row above adds, because other rows need the one of `{name}`.
    (Form, "/servers/{server}/domains/example.org/delete", "", AtLeast(Admin)),
    (Page, "/servers/{server}/webhooks", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/webhooks", "url=http%3A%2F%2F127.0.0.1%3A9%2F", AtLeast(Member)),
    (Page, "/servers/{server}/webhooks/{webhook}", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/webhooks/{webhook}", "url=http%3A%2F%2F127.0.0.1%3A9%2F", AtLeast(Member)),
    (Form, "/servers/{server}/webhooks/{webhook}/test", "event=message.delivered", AtLeast(Member)),
    (Form, "/servers/{server}/webhooks/{webhook}/replay", "attempt=1", AtLeast(Member)),
    (Form, "/servers/{server}/webhooks/{webhook}/replay", "hours=1", AtLeast(Member)),
    (
        Form,
        "/servers/{server}/webhooks/{webhook}/replay",
        "since=0&until=1&after=0&replayed=1",
        AtLeast(Member),
    ),
    (Form, "/servers/{server}/webhooks/{webhook}/rotate_secret", "", AtLeast(Member)),
    (Form, "/servers/{server}/webhooks/{missing}/delete", "", AtLeast(Member)),
    (Page, "/servers/{server}/webhooks/inspector", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/webhooks/inspector", "", AtLeast(Member)),
    (Stream, "/servers/{server}/webhooks/inspector/live", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/webhooks/inspector/clear", "", AtLeast(Member)),
    (Page, "/servers/{server}/suppressions", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/suppressions", "address=a@example.net", AtLeast(Member)),
    (Form, "/servers/{server}/suppressions/remove", "address=a@example.net", AtLeast(Member)),
    (Form, "/servers/{server}/suppressions/import", "csv=b@example.net", AtLeast(Member)),
    (Page, "/servers/{server}/suppressions/export", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/keys", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/keys", "name=x&scope=send", AtLeast(Admin)),
    (Form, "/servers/{server}/keys/{key}", "name=other", AtLeast(Admin)),
    (Form, "/servers/{server}/keys/{key}/rotate", "", AtLeast(Admin)),
    (Form, "/servers/{server}/keys/{key}/revoke", "", AtLeast(Admin)),
    (Page, "/servers/{server}/settings", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/settings", "name=dev&mode=live", AtLeast(Admin)),
    (Form, "/servers/{server}/pool", "pool=", AtLeast(Admin)),
    (Form, "/servers/{server}/ceilings", "hourly_limit=", AtLeast(Admin)),
    (Form, "/servers/{server}/suspend", "reason=x", AtLeast(Admin)),
    (Form, "/servers/{server}/resume", "", AtLeast(Admin)),
    (Form, "/servers/{spare}/delete", "name=spare", AtLeast(Admin)),
    (Form, "/servers/{spare}/restore", "", AtLeast(Admin)),
    (Page, "/account", "", AtLeast(ReadOnly)),
    (Form, "/account", "name=dev", AtLeast(Admin)),
    (Page, "/account/people", "", AtLeast(ReadOnly)),
    (Form, "/account/people", "email=new@example.net&role=read-only", AtLeast(Admin)),
    (Page, "/account/people/{colleague}", "", AtLeast(Admin)),
    (Form, "/account/people/{colleague}", "name=x", AtLeast(Admin)),
    (Form, "/account/people/{colleague}/sessions", "id=999999", AtLeast(Admin)),
    (Form, "/account/people/{colleague}/reset_link", "", AtLeast(Operator)),
    (Form, "/account/people/{colleague}/disable_app", "", AtLeast(Operator)),
    (Form, "/account/people/{person}/role", "role=read-only", AtLeast(Admin)),
    (Form, "/account/people/{person}/sign_out", "", AtLeast(Admin)),
    (Form, "/account/people/{person}/remove", "", AtLeast(Admin)),
    (Form, "/account/people/uninvite", "id=999999", AtLeast(Admin)),
    (Page, "/account/domains", "", AtLeast(ReadOnly)),
    (Form, "/account/domains", "name=second.example", AtLeast(Admin)),
    (Page, "/account/domains/{common}", "", AtLeast(ReadOnly)),
    (Page, "/account/domains/{common}/zone", "", AtLeast(ReadOnly)),
    (Form, "/account/domains/{common}/verify", "", AtLeast(Admin)),
    (Form, "/account/domains/{common}/rotate_dkim", "", AtLeast(Admin)),
    (Form, "/account/domains/{common}/share", "", AtLeast(Admin)),
    (Form, "/account/domains/{common}/unshare", "link=999999", AtLeast(Admin)),
    (Form, "/account/domains/{common}/set_verified", "", AtLeast(Operator)),
    (Form, "/account/domains/{common}/set_tracking", "", AtLeast(Operator)),
    (Form, "/account/domains/{missing}/delete", "", AtLeast(Admin)),
    (Page, "/account/pools", "", AtLeast(ReadOnly)),
    (Page, "/account/pools/address", "address=192.0.2.9", AtLeast(ReadOnly)),
    (Form, "/account/pools", "name=x", AtLeast(Operator)),
    (Form, "/account/pools/address", "pool={pool}&address=192.0.2.10&helo=a.example", AtLeast(Operator)),
    (Form, "/account/pools/address/update", "address=192.0.2.9&weight=2", AtLeast(Operator)),
    (Form, "/account/pools/address/warm_up", "address=192.0.2.9&act=pause", AtLeast(Admin)),
    (Form, "/account/pools/address/remove", "address=192.0.2.9", AtLeast(Operator)),
    (Form, "/account/pools/delete", "pool={pool}", AtLeast(Operator)),
    (Page, "/account/keys", "", AtLeast(Admin)),
    (Form, "/account/keys", "name=x&scopes=read", AtLeast(Admin)),
    (Form, "/account/keys/{missing}/revoke", "", AtLeast(Admin)),
    (Page, "/account/audit", "", AtLeast(Admin)),
    (Page, "/account/audit/export", "", AtLeast(Admin)),
    (Page, "/account/you", "", AtLeast(ReadOnly)),
    (Form, "/account/you/name", "name=x", AtLeast(ReadOnly)),
    (Form, "/account/you/password", "old=wrong&new=short", AtLeast(ReadOnly)),
    (Form, "/account/you/app", "", AtLeast(ReadOnly)),
    (Form, "/account/you/app/enable", "code=1", AtLeast(ReadOnly)),
    (Form, "/account/you/app/disable", "code=1", AtLeast(ReadOnly)),
    (Form, "/account/you/sessions", "id=999999", AtLeast(ReadOnly)),
    (Page, "/operator", "", AtLeast(Operator)),
    (Page, "/operator/queue", "", AtLeast(Operator)),
    (Form, "/operator/queue", "act=retry&id=1/1", AtLeast(Operator)),
    (Page, "/operator/doctor", "", AtLeast(Operator)),
    (Page, "/operator/doctor/zone", "", AtLeast(Operator)),
    (Page, "/operator/nodes", "", AtLeast(Operator)),
    (Page, "/operator/accounts", "", AtLeast(Operator)),
    (Form, "/operator/accounts", "name=x", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}", "name=x", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/domains", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains", "name=third.example", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/domains/{common}", "", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/domains/{common}/zone", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/verify", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/rotate_dkim", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/share", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/unshare", "link=999999", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/set_verified", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{common}/set_tracking", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/domains/{missing}/delete", "", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/people", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/people", "email=a@x.test&role=owner", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/keys", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/keys", "name=x&scopes=read", AtLeast(Operator)),
    (Form, "/operator/accounts/{account}/keys/{missing}/revoke", "", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/audit", "", AtLeast(Operator)),
    (Page, "/operator/accounts/{account}/audit/export", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/servers", "name=x", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/delete", "name=x", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/restore", "", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/suspend", "reason=x", AtLeast(Operator)),
    (Form, "/operator/accounts/{missing}/resume", "", AtLeast(Operator)),
    (Page, "/operator/audit", "", AtLeast(Operator)),
    (Page, "/operator/audit/export", "", AtLeast(Operator)),
    (Page, "/operator/keys", "", AtLeast(Operator)),
    (Form, "/operator/keys", "name=x&scopes=read", AtLeast(Operator)),
    (Form, "/operator/keys/{missing}/revoke", "", AtLeast(Operator)),
    (Form, "/operator/maintenance", "", AtLeast(Operator)),
    (Form, "/operator/suspend", "scope=everything&reason=x", AtLeast(Operator)),
    (Form, "/operator/resume", "scope=everything", AtLeast(Operator)),
    (Page, "/inbox", "", AtLeast(Operator)),
    (Stream, "/inbox/live", "", AtLeast(Operator)),
    (Page, "/inbox/{caught}", "", AtLeast(Operator)),
    (Page, "/inbox/{caught}/preview", "", AtLeast(Operator)),
    (Page, "/inbox/{caught}/raw", "", AtLeast(Operator)),
    (Page, "/inbox/{caught}/attachments/{number}", "", AtLeast(Operator)),
    (Form, "/inbox/{missing}/delete", "", AtLeast(Operator)),
    (Form, "/inbox/clear", "", AtLeast(Operator)),
    (Page, "/servers/{server}/inbox", "", AtLeast(ReadOnly)),
    (Page, "/servers/{server}/inbox/{message}", "", AtLeast(ReadOnly)),
    (Page, "/servers/{development}/inbox", "", AtLeast(ReadOnly)),
    (Page, "/servers/{development}/inbox/{held}", "", AtLeast(ReadOnly)),
    (Form, "/servers/{server}/inbox/clear", "", AtLeast(Member)),
    // Last, because it ends the session.
    (Form, "/sign_out", "", AtLeast(ReadOnly)),
];

#[test]
fn every_route_of_the_portal_has_a_row() {
    let rows: BTreeSet<(bool, String)> = ROUTES
        .iter()
        .map(|(kind, route, _, _)| (*kind == Form, without_names(&route.replace("example.org", "{name}"))))
        .collect();
    let mut found = BTreeSet::new();
    for file in source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../portal/src")) {
        let text = std::fs::read_to_string(file).unwrap();
        for part in text.split(".route(\"").skip(1) {
            let (route, rest) = part.split_once('"').unwrap();
            let methods = rest.split([';', '\n']).next().unwrap();
            for (word, is_form) in [("get(", false), ("post(", true), ("any(", false), ("any(", true)] {
                if methods.contains(word) {
                    found.insert((is_form, without_names(route)));
                }
            }
        }
    }
    assert!(found.len() > 80, "the routes are found in the source: {}", found.len());
    assert_eq!(found, rows, "the source on the left, `ROUTES` on the right; true is a form");
}

/// The route without the names of its parameters.
pub(crate) fn without_names(route: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    route.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
