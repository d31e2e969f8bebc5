//! Generates the document from the wire structs and the endpoints, for `docs/openapi.json`.

use postroad_app::TimelineKind;
use postroad_app::access::{Level, Operation};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{Modify, OpenApi};

use crate::envelope::FailureEnvelope;
use crate::{
    account, account_keys, accounts, analytics, credentials, domains, events, ip_pools, jobs, messages, send,
    server_settings, servers, suppressions, templates, users, webhooks,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postroad",
        description = "Transactional e-mail. Every call is a POST with a JSON object and is answered with an envelope; \
                       HTTP 200 means that the call was handled, `status` says how it went. Every answer carries \
                       X-Request-Id.",
        version = "1",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(
        send::message::handle,
        send::raw::handle,
        send::batch::handle,
        send::cancel::handle,
        send::reschedule::handle,
        messages::message::handle,
        messages::deliveries::handle,
        messages::search::handle,
        messages::timeline::handle,
        messages::retry::handle,
        messages::release::handle,
        messages::cancel_hold::handle,
        messages::erase::handle,
        jobs::get::handle,
        analytics::summary::handle,
        analytics::timeseries::handle,
        analytics::top::handle,
        analytics::message::handle,
        webhooks::create::handle,
        webhooks::get::handle,
        webhooks::list::handle,
        webhooks::update::handle,
        webhooks::delete::handle,
        webhooks::rotate_secret::handle,
        webhooks::test::handle,
        webhooks::attempts::handle,
        webhooks::replay::handle,
        events::list::handle,
        suppressions::list::handle,
        suppressions::get::handle,
        suppressions::add::handle,
        suppressions::remove::handle,
        suppressions::import::handle,
        suppressions::export::handle,
        templates::create::handle,
        templates::get::handle,
        templates::list::handle,
        templates::update::handle,
        templates::delete::handle,
        templates::render::handle,
        templates::validate::handle,
        templates::versions::handle,
        templates::publish::handle,
        templates::rollback::handle,
        templates::diff::handle,
        domains::create::handle,
        domains::get::handle,
        domains::list::handle,
        domains::verify::handle,
        domains::rotate_dkim::handle,
        domains::delete::handle,
        domains::zone::handle,
        domains::reports::handle,
        ip_pools::create::handle,
        ip_pools::list::handle,
        ip_pools::get::handle,
        ip_pools::delete::handle,
        ip_pools::add_address::handle,
        ip_pools::update_address::handle,
        ip_pools::remove_address::handle,
        ip_pools::warm_up::handle,
        ip_pools::history::handle,
        server_settings::get::handle,
        server_settings::update::handle,
        servers::create::handle,
        servers::list::handle,
        servers::get::handle,
        servers::update::handle,
        servers::suspend::handle,
        servers::resume::handle,
        servers::delete::handle,
        servers::restore::handle,
        credentials::create::handle,
        credentials::list::handle,
        credentials::get::handle,
        credentials::update::handle,
        credentials::revoke::handle,
        credentials::rotate::handle,
        account::get::handle,
        account::update::handle,
        account::usage::handle,
        account::audit::handle,
        account_keys::create::handle,
        account_keys::list::handle,
        account_keys::revoke::handle,
        users::list::handle,
        users::update::handle,
        users::remove::handle,
        users::invite::handle,
        users::invitations::handle,
        users::uninvite::handle,
        users::sessions::handle,
        users::revoke_session::handle,
        accounts::create::handle,
        accounts::list::handle,
        accounts::get::handle,
        accounts::update::handle,
        accounts::suspend::handle,
        accounts::resume::handle,
        accounts::delete::handle,
        accounts::restore::handle,
    ),
    tags(
        (name = "send", description = "Sending mail; keys of scope `send` or `full`"),
        (name = "messages", description = "Looking up messages and changing waiting ones; `read` or `full` to look, `full` to change"),
        (name = "jobs", description = "Progress of changes of many messages; keys of scope `read` or `full`"),
        (name = "analytics", description = "Counts, rates and latencies of a server's mail; keys of scope `read` or `full`"),
        (name = "webhooks", description = "Events posted to your URLs; `read` or `full` to look, `full` to change"),
        (name = "events", description = "The same events, polled; keys of scope `read` or `full`"),
        (name = "suppressions", description = "Addresses that get no more mail; `read` or `full` to look, `full` to change"),
        (name = "templates", description = "Mails with variables in them; `read` or `full` to look and try, `full` to change"),
        (name = "domains", description = "Domains to send from, and their DNS records. With the key of a server, an account or the operator: scope `read` or `full` to look, `full` to change; keys of an account or of the operator may also have the scope `domains`"),
        (name = "ip_pools", description = "Addresses that mail leaves from. The operator creates pools; an account sees its own, the shared pool, and pools that its servers use. Scope `ip_pools` or `full` to look and change, `read` only to look"),
        (name = "servers", description = "The servers of an account. With a key of an account or of the operator: scope `servers` or `full` to look and change, `read` only to look"),
        (name = "credentials", description = "API keys and secrets of an account's servers. With a key of an account or of the operator: scope `credentials` or `full` to look and change, `read` only to look"),
        (name = "account", description = "The account that the key belongs to. With a key of an account or of the operator: scope `account` or `full` to look and change, `read` only to look"),
        (name = "account_keys", description = "API keys of the account itself. With a key of an account or of the operator: scope `account_keys` or `full` to look and change, `read` only to look"),
        (name = "users", description = "People who sign in to the portal. With a key of an account or of the operator: scope `users` or `full` to look and change, `read` only to look"),
        (name = "accounts", description = "All accounts; the operator's keys"),
        (name = "server", description = "The settings of the key's server; `read` or `full` to look, `full` to change"),
    ),
    components(schemas(FailureEnvelope<'static>)),
    modifiers(&KeysAndFailures, &TimelineKinds),
)]
struct Document;

/// Failures that every call may return in addition to HTTP 200.
const FAILURES: [(&str, &str); 3] = [
    ("413", "The body is larger than the limit: `RequestTooLarge`"),
    ("500", "A bug of the service: `InternalError`, with a `request_id`"),
    ("503", "`Maintenance` or `ServiceUnavailable`; the header Retry-After says when to try again"),
];

/// The headers that contain keys.
const KEYS: [(&str, &str, &str); 3] = [
    ("server_api_key", "X-Server-API-Key", "The API key of a credential of the server"),
    ("account_api_key", "X-Account-API-Key", "An API key of the account"),
    ("operator_api_key", "X-Operator-API-Key", "An API key of the operator"),
];

/// The keys that a call accepts.
fn keys_of(path: &str) -> &'static [&'static str] {
    let is_operation_of_path =
        |operation: &&Operation| path.strip_prefix("/api/v1/") == Some(operation.name());
    match Operation::ALL.iter().find(is_operation_of_path).map(|operation| operation.level()) {
        Some(Level::Account | Level::Person) => &["account_api_key", "operator_api_key"],
        Some(Level::Operator) => &["operator_api_key"],
        Some(Level::ServerOrAccount) => &["server_api_key", "account_api_key", "operator_api_key"],
        Some(Level::Server) | None => &["server_api_key"],
    }
}

/// Adds the parts that all operations share: the keys and the failures.
struct KeysAndFailures;

impl Modify for KeysAndFailures {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        for (scheme, header, description) in KEYS {
            let value = ApiKeyValue::with_description(header, description);
            components.add_security_scheme(scheme, SecurityScheme::ApiKey(ApiKey::Header(value)));
        }
        for (path, item) in &mut document.paths.paths {
            let Some(operation) = item.post.as_mut() else { continue };
            let requirements = keys_of(path).iter().map(|key| SecurityRequirement::new(*key, [""; 0]));
            operation.security = Some(requirements.collect());
            let responses = &mut operation.responses.responses;
            if let Some(RefOr::T(success)) = responses.get_mut("200") {
                "The call was handled; look at `status`".clone_into(&mut success.description);
            }
            for (status, description) in FAILURES {
                let content = Content::new(Some(Ref::from_schema_name("FailureEnvelope")));
                let failure =
                    ResponseBuilder::new().description(description).content("application/json", content);
                responses.insert(status.to_owned(), failure.build().into());
            }
        }
    }
}

/// Lists the kinds of timeline items, which `app` declares.
struct TimelineKinds;

impl Modify for TimelineKinds {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let Some(RefOr::T(Schema::Object(item))) =
            schemas.and_then(|schemas| schemas.get_mut("TimelineItemOut"))
        else {
            return;
        };
        if let Some(RefOr::T(Schema::Object(kind))) = item.properties.get_mut("kind") {
            let (last, names) = TimelineKind::ALL.split_last().expect("there are kinds");
            let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_str())).collect();
            kind.description = Some(format!("{} or `{}`.", names.join(", "), last.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::fields::{Fields, Findings};
    use crate::{idempotency, json};

    fn openapi_json() -> String {
        let mut text = Document::openapi().to_pretty_json().unwrap();
        text.push('\n');
        text
    }

    #[test]
    fn the_document_is_the_golden_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, openapi_json()).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            golden == openapi_json(),
            "docs/openapi.json is not what the code says; run with UPDATE_GOLDEN=1 and read the diff"
        );
    }

    #[test]
    fn every_reference_resolves() {
        let text = openapi_json();
        let document: Value = serde_json::from_str(&text).unwrap();
        let references: BTreeSet<&str> =
            text.split("\"$ref\": \"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 10);
        for reference in references {
            assert!(document.pointer(reference).is_some(), "{reference} is missing");
        }
    }

    /// JSON pointers of all fields in a request's schema, nested objects included.
    fn documented_fields(name: &str) -> BTreeSet<String> {
        fn walk(document: &Value, schema: &Value, pointer: &str, found: &mut BTreeSet<String>) {
            if let Some(reference) = schema["$ref"].as_str() {
                walk(document, document.pointer(&reference[1..]).unwrap(), pointer, found);
            }
            for one in schema["oneOf"].as_array().into_iter().flatten() {
                walk(document, one, pointer, found);
            }
            if schema["items"].is_object() {
                walk(document, &schema["items"], &format!("{pointer}/0"), found);
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                found.insert(format!("{pointer}/{name}"));
                walk(document, property, &format!("{pointer}/{name}"), found);
            }
        }
        let document = serde_json::to_value(Document::openapi()).unwrap();
        let mut found = BTreeSet::new();
        walk(&document, &document["components"]["schemas"][name], "", &mut found);
        found
    }

    #[test]
    fn documented_fields_are_those_that_are_read() {
        let mut message = Findings::default();
        let nested = br#"{"attachments": [{}], "template": {}, "track": {}, "list_unsubscribe": {}}"#;
        let mut fields = Fields::of_request(json::parse_object(nested).unwrap());
        send::message::read(&mut fields, &postroad_model::Limits::default(), &mut message);
        fields.text(idempotency::FIELD, &mut message);
        assert_eq!(message.read_fields, documented_fields("SendMessageIn"));

        let mut raw = Findings::default();
        let mut fields = Fields::of_request(Vec::new());
        send::raw::read(&mut fields, &mut raw);
        fields.text(idempotency::FIELD, &mut raw);
        assert_eq!(raw.read_fields, documented_fields("SendRawIn"));

        let mut batch = Findings::default();
        let mut fields = Fields::of_request(Vec::new());
        send::batch::read(&mut fields, &mut batch);
        fields.text(idempotency::FIELD, &mut batch);
        let own = documented_fields("SendBatchIn").into_iter().filter(|name| !name.starts_with("/messages/"));
        assert_eq!(batch.read_fields, own.collect());

        let mut cancel = Findings::default();
        send::cancel::read(b"{}", &mut cancel).unwrap();
        assert_eq!(cancel.read_fields, documented_fields("CancelIn"));
        let mut reschedule = Findings::default();
        send::reschedule::read(b"{}", &mut reschedule).unwrap();
        assert_eq!(reschedule.read_fields, documented_fields("RescheduleIn"));

        let mut one = Findings::default();
        messages::message::read(b"{}", &mut one).unwrap();
        assert_eq!(one.read_fields, documented_fields("MessageIn"));

        let mut deliveries = Findings::default();
        messages::deliveries::read(b"{}", &mut deliveries).unwrap();
        assert_eq!(deliveries.read_fields, documented_fields("DeliveriesIn"));

        let filtered = br#"{"filters": {}}"#;
        let mut findings = Findings::default();
        analytics::summary::read(filtered, &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("SummaryIn"));
        let mut findings = Findings::default();
        analytics::timeseries::read(filtered, &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("TimeseriesIn"));
        let mut findings = Findings::default();
        analytics::top::read(filtered, &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("TopIn"));
        let mut findings = Findings::default();
        analytics::message::read(b"{}", &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("MessageAnalyticsIn"));
    }

    #[test]
    fn documented_fields_of_webhooks_and_events_are_those_that_are_read() {
        fn read_fields_of<T>(
            read: impl Fn(&[u8], &mut Findings) -> Result<T, crate::failure::Failure>,
        ) -> BTreeSet<String> {
            let mut findings = Findings::default();
            assert!(read(b"{}", &mut findings).is_ok());
            findings.read_fields
        }
        let none = axum::http::HeaderMap::new();
        assert_eq!(
            read_fields_of(|text, f| webhooks::create::read(&none, text, f)),
            documented_fields("CreateWebhookIn")
        );
        assert_eq!(read_fields_of(webhooks::get::read), documented_fields("WebhookIdIn"));
        assert_eq!(read_fields_of(webhooks::list::read), documented_fields("ListWebhooksIn"));
        assert_eq!(read_fields_of(webhooks::update::read), documented_fields("UpdateWebhookIn"));
        assert_eq!(read_fields_of(webhooks::test::read), documented_fields("TestWebhookIn"));
        assert_eq!(read_fields_of(webhooks::attempts::read), documented_fields("WebhookAttemptsIn"));
        assert_eq!(read_fields_of(webhooks::replay::read), documented_fields("ReplayWebhookIn"));
        assert_eq!(read_fields_of(events::list::read), documented_fields("ListEventsIn"));
    }

    #[test]
    fn documented_conditions_of_a_search_are_those_that_are_read() {
        let mut findings = Findings::default();
        messages::search::read(b"{}", &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("SearchMessagesIn"));
        let mut findings = Findings::default();
        messages::actions::read(b"{}", &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("ChangeMessagesIn"));
        let mut findings = Findings::default();
        messages::erase::read(b"{}", &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("EraseMessagesIn"));
        let mut findings = Findings::default();
        jobs::get::read(b"{}", &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("JobIn"));
    }

    #[test]
    fn documented_kinds_of_timeline_items_are_complete() {
        let document: Value = serde_json::from_str(&openapi_json()).unwrap();
        let kind = document.pointer("/components/schemas/TimelineItemOut/properties/kind/description");
        let kind = kind.and_then(Value::as_str).unwrap();
        assert!(kind.starts_with("`accepted`, `queued`,") && kind.ends_with(" or `webhook`."), "{kind}");
        assert_eq!(kind.matches('`').count(), 2 * TimelineKind::ALL.len(), "{kind}");
    }

    #[test]
    fn documented_fields_of_suppressions_are_those_that_are_read() {
        fn read_fields_of<T>(
            read: impl Fn(&[u8], &mut Findings) -> Result<T, crate::failure::Failure>,
        ) -> BTreeSet<String> {
            let mut findings = Findings::default();
            for request in ["{}", r#"{"items": [{}]}"#] {
                assert!(read(request.as_bytes(), &mut findings).is_ok());
            }
            findings.read_fields
        }
        assert_eq!(read_fields_of(suppressions::list::read), documented_fields("ListSuppressionsIn"));
        assert_eq!(read_fields_of(suppressions::get::read), documented_fields("GetSuppressionIn"));
        assert_eq!(read_fields_of(suppressions::add::read), documented_fields("AddSuppressionIn"));
        assert_eq!(read_fields_of(suppressions::remove::read), documented_fields("RemoveSuppressionIn"));
        assert_eq!(read_fields_of(suppressions::import::read), documented_fields("ImportSuppressionsIn"));
        assert_eq!(read_fields_of(suppressions::export::read), documented_fields("ExportSuppressionsIn"));
    }

    #[test]
    fn documented_fields_of_templates_are_those_that_are_read() {
        fn read_fields_of<T>(
            read: impl Fn(&[u8], &mut Findings) -> Result<T, crate::failure::Failure>,
        ) -> BTreeSet<String> {
            let mut findings = Findings::default();
            assert!(read(b"{}", &mut findings).is_ok());
            findings.read_fields
        }
        let none = axum::http::HeaderMap::new();
        assert_eq!(
            read_fields_of(|text, f| templates::create::read(&none, text, f)),
            documented_fields("CreateTemplateIn")
        );
        assert_eq!(read_fields_of(templates::get::read), documented_fields("TemplateVersionIn"));
        assert_eq!(read_fields_of(templates::list::read), documented_fields("ListTemplatesIn"));
        assert_eq!(read_fields_of(templates::update::read), documented_fields("UpdateTemplateIn"));
        assert_eq!(read_fields_of(templates::delete::read), documented_fields("TemplateRefIn"));
        assert_eq!(read_fields_of(templates::render::read), documented_fields("RenderTemplateIn"));
        assert_eq!(read_fields_of(templates::validate::read), documented_fields("ValidateTemplateIn"));
        assert_eq!(read_fields_of(templates::versions::read), documented_fields("TemplateVersionsIn"));
        assert_eq!(read_fields_of(templates::diff::read), documented_fields("DiffTemplateIn"));
    }

    #[test]
    fn documented_fields_of_domains_are_those_that_are_read() {
        fn read_fields_of<T>(
            read: impl Fn(&[u8], &mut Findings) -> Result<T, crate::failure::Failure>,
        ) -> BTreeSet<String> {
            let mut findings = Findings::default();
            assert!(read(b"{}", &mut findings).is_ok());
            findings.read_fields
        }
        assert_eq!(read_fields_of(domains::rotate_dkim::read), documented_fields("RotateDkimIn"));
        assert_eq!(read_fields_of(domains::get::read), documented_fields("DomainNameIn"));
        assert_eq!(read_fields_of(domains::list::read), documented_fields("ListDomainsIn"));
        assert_eq!(read_fields_of(domains::reports::read), documented_fields("DomainReportsIn"));
    }

    #[test]
    fn documented_fields_of_accounts_are_those_that_are_read() {
        fn read_fields_of<T>(
            read: impl Fn(&[u8], &mut Findings) -> Result<T, crate::failure::Failure>,
        ) -> BTreeSet<String> {
            let mut findings = Findings::default();
            let nested = br#"{"tracking": {}, "retention": {}, "ceilings": {"retention": {}}}"#;
            assert!(read(nested, &mut findings).is_ok());
            findings.read_fields
        }
        assert_eq!(read_fields_of(servers::get::read), documented_fields("ServerIdIn"));
        assert_eq!(read_fields_of(servers::list::read), documented_fields("ListServersIn"));
        assert_eq!(read_fields_of(servers::suspend::read), documented_fields("SuspendServerIn"));
        assert_eq!(read_fields_of(servers::update::read), documented_fields("UpdateAccountServerIn"));
        assert_eq!(read_fields_of(credentials::get::read), documented_fields("CredentialIdIn"));
        assert_eq!(read_fields_of(credentials::list::read), documented_fields("ListCredentialsIn"));
        assert_eq!(read_fields_of(credentials::update::read), documented_fields("UpdateCredentialIn"));
        assert_eq!(read_fields_of(credentials::rotate::read), documented_fields("RotateCredentialIn"));
        assert_eq!(read_fields_of(account::get::read), documented_fields("OwnAccountIn"));
        assert_eq!(read_fields_of(account::update::read), documented_fields("UpdateOwnAccountIn"));
        assert_eq!(read_fields_of(account::audit::read), documented_fields("AuditIn"));
        assert_eq!(read_fields_of(account_keys::list::read), documented_fields("ListAccountKeysIn"));
        assert_eq!(read_fields_of(account_keys::revoke::read), documented_fields("RevokeAccountKeyIn"));
        assert_eq!(read_fields_of(users::list::read), documented_fields("ListUsersIn"));
        assert_eq!(read_fields_of(users::update::read), documented_fields("UpdateUserIn"));
        assert_eq!(read_fields_of(users::remove::read), documented_fields("RemoveUserIn"));
        let none = axum::http::HeaderMap::new();
        assert_eq!(
            read_fields_of(|text, f| users::invite::read(&none, text, f)),
            documented_fields("InviteUserIn")
        );
        assert_eq!(
            read_fields_of(|text, f| servers::create::read(&none, text, f)),
            documented_fields("CreateServerIn")
        );
        assert_eq!(
            read_fields_of(|text, f| ip_pools::create::read(&none, text, f)),
            documented_fields("CreatePoolIn")
        );
        assert_eq!(
            read_fields_of(|text, f| ip_pools::add_address::read(&none, text, f)),
            documented_fields("AddAddressIn")
        );
        assert_eq!(read_fields_of(ip_pools::update_address::read), documented_fields("UpdateAddressIn"));
        assert_eq!(read_fields_of(ip_pools::list::read), documented_fields("ListPoolsIn"));
        assert_eq!(read_fields_of(ip_pools::history::read), documented_fields("HistoryIn"));
        assert_eq!(read_fields_of(users::invitations::read), documented_fields("ListInvitationsIn"));
        assert_eq!(read_fields_of(users::uninvite::read), documented_fields("UninviteUserIn"));
        assert_eq!(read_fields_of(users::sessions::read), documented_fields("UserSessionsIn"));
        assert_eq!(read_fields_of(users::revoke_session::read), documented_fields("RevokeUserSessionIn"));
        assert_eq!(read_fields_of(accounts::get::read), documented_fields("AccountIdIn"));
        assert_eq!(read_fields_of(accounts::list::read), documented_fields("ListAccountsIn"));
        assert_eq!(read_fields_of(accounts::suspend::read), documented_fields("SuspendAccountIn"));
        assert_eq!(read_fields_of(accounts::update::read), documented_fields("UpdateAccountIn"));
    }

    #[test]
    fn documented_settings_of_a_server_are_those_that_are_read() {
        let mut findings = Findings::default();
        server_settings::update::read(br#"{"tracking": {}, "retention": {}}"#, &mut findings).unwrap();
        assert_eq!(findings.read_fields, documented_fields("UpdateServerIn"));
    }
}
