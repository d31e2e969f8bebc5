//! Calls for the DNS server of `postroad dev` (docs/domains.md): list its records, publish the records of a domain,
//! and remove them again.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use postroad_app::App;
use postroad_app::domains::DomainRefusal;
use postroad_app::domains::check::RecordType;
use postroad_model::DomainName;
use postroad_net::local_dns::{LocalDns, LocalRecord, LocalType};
use serde_json::json;

use super::guard;
use super::problem::Problem;
use crate::envelope;

#[derive(Debug, Clone)]
pub(crate) struct DnsState {
    pub(crate) app: App,
    pub(crate) dns: LocalDns,
}

pub(crate) fn router(state: DnsState) -> Router {
    let method_not_allowed = async || Problem::WrongDnsMethod;
    Router::new()
        .route("/dev/dns", get(list).fallback(method_not_allowed))
        .route("/dev/dns/{domain}", axum::routing::post(publish).delete(remove).fallback(method_not_allowed))
        .layer(middleware::from_fn(guard::admit))
        .with_state(state)
}

async fn list(State(state): State<DnsState>) -> Response {
    let answer = json!({ "address": state.dns.address().to_string(), "records": state.dns.list() });
    envelope::json_response(StatusCode::OK, answer.to_string())
}

/// Publishes every record of the domain at once, as a customer does at their DNS service.
async fn publish(State(state): State<DnsState>, Path(domain): Path<String>) -> Result<Response, Problem> {
    let records = state.app.records_to_publish(&domain).await.map_err(|refusal| match refusal {
        DomainRefusal::Store(_) => Problem::StoreUnavailable,
        _ => Problem::NoSuchDomain,
    })?;
    let local = records.into_iter().filter_map(|record| {
        let record_type = match record.record_type {
            RecordType::Txt => LocalType::Txt,
            RecordType::Cname => LocalType::Cname,
            // Not reached: the records of a domain are TXT and CNAME.
            _ => return None,
        };
        Some(LocalRecord { name: record.name, record_type, value: record.value })
    });
    let published = state.dns.publish(local.collect());
    Ok(envelope::json_response(StatusCode::OK, json!({ "published": published }).to_string()))
}

async fn remove(State(state): State<DnsState>, Path(domain): Path<String>) -> Result<Response, Problem> {
    let name = DomainName::parse_entered(&domain).map_err(|_| Problem::NoSuchDomain)?;
    let removed = state.dns.remove(name.as_str());
    Ok(envelope::json_response(StatusCode::OK, json!({ "removed": removed }).to_string()))
}
