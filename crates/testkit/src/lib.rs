//! Tools for tests; never in a release build.
//!
//! External parts are real: a private PostgreSQL, the binary as a child process, HTTP, SMTP and DNS over
//! sockets. Time is an argument: tests move the clock instead of waiting.

mod any_certificate;
pub mod browser;
pub mod certificate;
pub mod clock;
pub mod daemon;
pub mod damage;
pub mod dkim_verifier;
pub mod dns_server;
mod eventually;
mod first_start;
pub mod hidden_receiver;
pub mod http;
pub mod https_server;
mod owned_rows;
pub mod postgres;
pub mod smtp_client;
pub mod smtp_peer;
pub mod text;
mod totp;
pub mod webhook_catcher;

pub use browser::Browser;
pub use certificate::TestCertificate;
pub use clock::ManualClock;
pub use daemon::Daemon;
pub use dns_server::DnsServer;
pub use eventually::{eventually, eventually_blocking, eventually_within, try_eventually};
pub use first_start::FirstStart;
pub use hidden_receiver::{HiddenLimits, HiddenReceiver};
pub use http::{Client, Reply, RequestError};
pub use https_server::{HttpsAnswer, HttpsServer};
pub use owned_rows::{OwnedRows, owned_rows_of_postgres, owned_rows_of_sqlite};
pub use postgres::{Cluster, ClusterError, Database, PgProxy};
pub use postroad_test_programs::{NODE_LIBRARIES, PYTHON_VARIABLE};
pub use smtp_client::SmtpClient;
pub use smtp_peer::SmtpPeer;
pub use text::{mail_like_text, random_bytes, random_text};
pub use totp::totp_code;
pub use webhook_catcher::{CatcherAnswer, ReceivedPost, WebhookCatcher};
