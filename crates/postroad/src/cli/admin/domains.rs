//! `postroad admin domain`.

use std::fmt;

use clap::{Args, Subcommand};
use postroad_app::App;
use postroad_app::admin::{AdminError, NamedDomain, SetDomainTracking};
use postroad_app::domains::{DkimKeyRequest, ReportPeriod};
use postroad_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{OnOffDefault, parse_time};

/// A domain.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub(crate) struct DomainArgs {
    /// Such as example.com
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) owner: OwnerArgs,
}

/// The owner, if several have the domain.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub(crate) struct OwnerArgs {
    /// Server it belongs to, if several owners have the domain: NAME, ACCOUNT/NAME or id
    #[arg(long, conflicts_with = "account")]
    pub(crate) server: Option<String>,
    /// Account it belongs to: NAME or id
    #[arg(long)]
    pub(crate) account: Option<String>,
}

/// A DKIM key, imported or generated.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub(crate) struct KeyArgs {
    /// File with a private key in PEM form (PKCS #1 or PKCS #8; RSA of 1024 bits or more, better 2048, or Ed25519);
    /// generated if left out
    #[arg(long, value_name = "FILE", value_parser = PemText::read)]
    pub(crate) private_key: Option<PemText>,
    /// Selector of the key's record; generated if left out
    #[arg(long)]
    pub(crate) selector: Option<String>,
    /// Algorithm of a generated key: ed25519 for a second signature in addition to the RSA one
    #[arg(long, value_parser = ["rsa", "ed25519"])]
    pub(crate) algorithm: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum DomainCommand {
    /// Add a domain with a DKIM key and show the records to publish
    Create {
        /// Such as example.com
        name: String,
        /// Server that may send from it: NAME, ACCOUNT/NAME or id
        #[arg(long, required_unless_present = "account", conflicts_with = "account")]
        server: Option<String>,
        /// Account whose servers may all send from it: NAME or id
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        key: KeyArgs,
    },
    /// List domains
    List {
        /// Only domains that this server may send from: NAME, ACCOUNT/NAME or id
        #[arg(long, conflicts_with = "account")]
        server: Option<String>,
        /// Only domains of this account itself: NAME or id
        #[arg(long)]
        account: Option<String>,
    },
    /// Check the records of a domain now
    Verify {
        #[command(flatten)]
        domain: DomainArgs,
    },
    /// Mark a domain as verified without a DNS check
    SetVerified {
        #[command(flatten)]
        domain: DomainArgs,
        /// Remove the mark instead; the DNS decides again
        #[arg(long)]
        no: bool,
    },
    /// Give a domain a new DKIM key, which signs once its record is found
    RotateDkim {
        #[command(flatten)]
        domain: DomainArgs,
        #[command(flatten)]
        key: KeyArgs,
    },
    /// Track opens and clicks of a domain's mail, unless a message overrides it
    SetTracking {
        #[command(flatten)]
        domain: DomainArgs,
        /// Whether opens are tracked; default for the server's setting
        #[arg(long, value_enum)]
        opens: Option<OnOffDefault>,
        /// Whether clicks are tracked; default for the server's setting
        #[arg(long, value_enum)]
        clicks: Option<OnOffDefault>,
        /// Host name of its links, such as track.example.com, pointed at this service; "" for the default: track.<domain> if verified, else the installation's
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
    },
    /// Show the DNS records that a domain needs, and the results of the last check
    Records {
        /// Such as example.com
        #[arg(required_unless_present = "installation")]
        name: Option<String>,
        /// Check the installation's own records instead
        #[arg(long, conflicts_with = "name")]
        installation: bool,
        /// Print a fragment of a zone file (BIND) instead
        #[arg(long)]
        zone: bool,
        #[command(flatten)]
        owner: OwnerArgs,
    },
    /// Print the DNS records of a domain as a fragment of a zone file (BIND)
    Zone {
        #[command(flatten)]
        domain: DomainArgs,
    },
    /// Sum up receivers' reports about a domain's mail (DMARC, TLS)
    Reports {
        #[command(flatten)]
        domain: DomainArgs,
        /// Start, like 2026-11-01T00:00:00Z; 30 days before the end if left out
        #[arg(long, value_parser = parse_time)]
        from: Option<Timestamp>,
        /// End, like 2026-12-01T00:00:00Z; now if left out
        #[arg(long, value_parser = parse_time)]
        to: Option<Timestamp>,
    },
    /// Set the host name that customers' records point to, for all nodes; a node's own name is `hostname`
    SetHost {
        /// Such as post.example.net
        host: String,
    },
    /// Delete a domain with its DKIM keys
    Delete {
        #[command(flatten)]
        domain: DomainArgs,
    },
}

impl DomainCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { name, server, account, key } => {
                app.add_domain(NamedDomain { name, server, account }, key.into()).await
            }
            Self::List { server, account } => app.show_domains(server.as_deref(), account.as_deref()).await,
            Self::Verify { domain } => app.check_domain(&domain.into()).await,
            Self::SetVerified { domain, no } => app.set_domain_verified(&domain.into(), !no).await,
            Self::RotateDkim { domain, key } => app.rotate_key_by_name(&domain.into(), key.into()).await,
            Self::SetTracking { domain, opens, clicks, host } => {
                let (opens, clicks) = (opens.map(Into::into), clicks.map(Into::into));
                app.set_domain_tracking(SetDomainTracking { domain: domain.into(), opens, clicks, host })
                    .await
            }
            Self::Records { name: Some(name), owner, zone, .. } => {
                let domain = DomainArgs { name, owner }.into();
                if zone { app.domain_zone_of(&domain).await } else { app.domain_records(&domain).await }
            }
            Self::Records { name: None, zone: true, .. } => app.installation_zone().await,
            Self::Records { name: None, .. } => app.installation_records().await,
            Self::Zone { domain } => app.domain_zone_of(&domain.into()).await,
            Self::Reports { domain, from, to } => {
                app.show_domain_reports(&domain.into(), ReportPeriod { from, to }).await
            }
            Self::SetHost { host } => app.rename_installation(&host).await,
            Self::Delete { domain } => app.remove_domain(&domain.into()).await,
        }
    }
}

impl From<DomainArgs> for NamedDomain {
    fn from(args: DomainArgs) -> Self {
        let DomainArgs { name, owner: OwnerArgs { server, account } } = args;
        Self { name, server, account }
    }
}

impl From<KeyArgs> for DkimKeyRequest {
    fn from(args: KeyArgs) -> Self {
        let KeyArgs { private_key, selector, algorithm } = args;
        Self { private_key: private_key.map(|pem| pem.0), selector, algorithm }
    }
}

/// Content of a file with a private key. The command reads the file: the service may run as a user that cannot.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PemText(String);

impl PemText {
    fn read(file: &str) -> Result<Self, String> {
        std::fs::read_to_string(file).map(Self).map_err(|error| format!("cannot read the file: {error}"))
    }
}

impl fmt::Debug for PemText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PemText")
    }
}
