//! The arguments of `postroad admin domain …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use postroad_model::Timestamp;

use super::{OnOffDefault, parse_time};

/// Which domain.
#[derive(Debug, Args)]
pub(crate) struct DomainArgs {
    /// Such as example.com
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) owner: OwnerArgs,
}

/// Whose it is, if several have it.
#[derive(Debug, Args)]
pub(crate) struct OwnerArgs {
    /// Server it belongs to, if several have it: NAME, ACCOUNT/NAME or id
    #[arg(long, conflicts_with = "account")]
    pub(crate) server: Option<String>,
    /// Account it belongs to: NAME or id
    #[arg(long)]
    pub(crate) account: Option<String>,
}

/// A DKIM key of the customer's own.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// File with the private key in PEM form (PKCS #1 or PKCS #8; RSA of 2048 bits or more, or Ed25519); one is made
    /// without it
    #[arg(long, value_name = "FILE")]
    pub(crate) private_key: Option<PathBuf>,
    /// Selector of the key's record; one is made up without it
    #[arg(long)]
    pub(crate) selector: Option<String>,
}

#[derive(Debug, Subcommand)]
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
        /// Only those that this server may send from: NAME, ACCOUNT/NAME or id
        #[arg(long, conflicts_with = "account")]
        server: Option<String>,
        /// Only those of this account itself: NAME or id
        #[arg(long)]
        account: Option<String>,
    },
    /// Look the records of a domain up now
    Verify {
        #[command(flatten)]
        domain: DomainArgs,
    },
    /// Declare a domain verified without looking at the DNS
    SetVerified {
        #[command(flatten)]
        domain: DomainArgs,
        /// Take the operator's word back instead; then the DNS decides
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
    /// Track opens and clicks of a domain's mail, where the message does not say otherwise
    SetTracking {
        #[command(flatten)]
        domain: DomainArgs,
        /// Whether opens are tracked; default for what the server says
        #[arg(long, value_enum)]
        opens: Option<OnOffDefault>,
        /// Whether clicks are tracked; default for what the server says
        #[arg(long, value_enum)]
        clicks: Option<OnOffDefault>,
        /// Host name of its links, such as track.example.com, pointed at this service; "" for the installation's
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
    },
    /// Show the DNS records a domain needs, and what the last check found
    Records {
        /// Such as example.com
        #[arg(required_unless_present = "installation")]
        name: Option<String>,
        /// Look up everything that the installation itself needs instead
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
    /// Sum up what receivers report of a domain's mail (DMARC, TLS)
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
    /// Set the host name that customers' records lead to, the same for all nodes; their own name is `hostname`
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
