//! A domain as answers show it.

use crate::documented::ToSchema;
use postroad_app::domains::check::RecordCheck;
use postroad_app::domains::{DomainView, RecordView};
use postroad_model::Timestamp;
use postroad_store::{DomainKey, DomainOwner, VerifiedBy};
use serde::Serialize;

/// Approximate size of a domain with its records.
pub(super) const DOMAIN_BYTES: usize = 12 << 10;

/// A domain. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainOut {
    #[schema(example = "example.com")]
    name: String,
    /// `server`: the domain of one server; `account`: a domain for all servers of the account.
    owner: &'static str,
    /// Id of the server that it belongs to; null for a domain of the account.
    server: Option<i64>,
    /// Id of the account.
    account: i64,
    /// Whether mail may be sent from it.
    verified: bool,
    /// `dns`: all required records were found; `operator`: set by the operator; null: not verified.
    verified_by: Option<&'static str>,
    verified_at: Option<String>,
    /// Time since which required records that were good before have been failing. After 72 hours the domain can no longer
    /// send.
    failing_since: Option<String>,
    /// Records to publish in the DNS, and the current DNS content.
    records: Vec<RecordOut>,
    dkim: Vec<DkimKeyOut>,
    /// Domain of the return path: `rp.<domain>` once its record is verified, `rp.<hostname>` until then.
    return_path: String,
    /// Host of tracking links: the one that the operator set; else `track.<domain>` once its record is verified and it
    /// answers with a valid certificate; else the installation's, usually `track.<hostname>`.
    tracking_host: String,
    /// When the records were last looked up.
    checked_at: Option<String>,
    next_check_at: String,
    created_at: String,
    updated_at: String,
}

/// A record to publish.
#[derive(Debug, Serialize, ToSchema)]
struct RecordOut {
    /// `spf`, `dkim`, `dmarc`, `return_path` or `tracking`.
    #[schema(value_type = String)]
    purpose: postroad_app::domains::check::Purpose,
    /// `TXT` or `CNAME`.
    r#type: &'static str,
    name: String,
    value: String,
    /// Whether the domain counts as verified only with this record.
    required: bool,
    /// `pending` (not checked yet, or cannot be checked), `verified`, `missing`, `mismatch`, `multiple` or `dns_error`.
    #[schema(value_type = String)]
    status: postroad_app::domains::check::RecordStatus,
    /// Current DNS content.
    found: Vec<String>,
    /// The change to make.
    hint: Option<String>,
    /// Time since which it has had this status; null before the first look-up.
    since: Option<String>,
}

/// A DKIM key.
#[derive(Debug, Serialize, ToSchema)]
struct DkimKeyOut {
    selector: String,
    /// `rsa` or `ed25519`.
    algorithm: &'static str,
    /// `pending` (signs once its record is found), `active` or `retiring` (keep its record for a week).
    state: &'static str,
    created_at: String,
}

impl From<DomainView> for DomainOut {
    fn from(view: DomainView) -> Self {
        let DomainView { domain, records, return_path, tracking_host } = view;
        Self {
            owner: match domain.owner() {
                DomainOwner::Server(_) => "server",
                DomainOwner::Account(_) => "account",
            },
            server: domain.server_id.map(|id| id.0),
            account: domain.account_id.0,
            verified: domain.is_verified(),
            verified_by: domain.verified_by.map(VerifiedBy::as_str),
            verified_at: domain.verified_at.map(Timestamp::to_rfc3339),
            failing_since: domain.failing_since.map(Timestamp::to_rfc3339),
            records: records.into_iter().map(RecordOut::from).collect(),
            dkim: domain.keys.iter().map(DkimKeyOut::from).collect(),
            return_path,
            tracking_host,
            checked_at: domain.checked_at.map(Timestamp::to_rfc3339),
            next_check_at: domain.next_check_at.to_rfc3339(),
            created_at: domain.created_at.to_rfc3339(),
            updated_at: domain.updated_at.to_rfc3339(),
            name: domain.name.into(),
        }
    }
}

impl From<RecordView> for RecordOut {
    fn from(view: RecordView) -> Self {
        let RecordCheck { purpose, record_type, name, value, required, status, found, hint } = view.check;
        let (r#type, since) = (record_type.as_str(), view.since.map(Timestamp::to_rfc3339));
        Self { purpose, r#type, name, value, required, status, found, hint, since }
    }
}

impl From<&DomainKey> for DkimKeyOut {
    fn from(key: &DomainKey) -> Self {
        Self {
            selector: key.selector.clone(),
            algorithm: key.algorithm.as_str(),
            state: key.state.as_str(),
            created_at: key.created_at.to_rfc3339(),
        }
    }
}
