//! The connection pool: timeouts everywhere, TLS for databases on other machines, unless the URL disables it.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Handle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{OpenError, StoreError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout for cancelling a statement, which needs its own connection.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);
/// `lock_timeout` ends waits for locks: for example on an idempotency key that another node is writing, or on rows
/// locked by a connection of ours that died without the database noticing.
///
/// The other two timeouts end statements and transactions whose client is gone or cannot cancel them. They are long,
/// because a large body on a slow link takes long.
///
/// Statements are planned each time, except in transactions of `generic_plans`. A plan kept since the queue was empty
/// would read the whole queue for every batch once it has grown, until the table is analysed. Such a scan costs more
/// than planning once per batch.
///
/// Sequential and bitmap scans are off, so that frequent queries use an index and its order, as on SQLite. A planner
/// that does not know how large a table has become would read all of it, or fetch and sort. JIT compilation never pays
/// off.
const SESSION_OPTIONS: &str = "-c statement_timeout=90s -c lock_timeout=1s -c idle_in_transaction_session_timeout=90s \
                       -c plan_cache_mode=force_custom_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off";
/// Makes commits durable if the database's default would not. The settings `remote_*` and `local` are sufficient.
const ENABLE_SYNCHRONOUS_COMMIT: &str = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The pool, and the canceller for connections that are discarded.
pub(super) fn open_pool(
    url: &str,
    connections: usize,
    ca_file: Option<&Path>,
) -> Result<(Pool, Canceller), OpenError> {
    let mut config: Config = url.parse().map_err(|_| OpenError::BadUrl(without_password(url)))?;
    config.connect_timeout(CONNECT_TIMEOUT);
    config.keepalives_idle(Duration::from_secs(10));
    config.tcp_user_timeout(Duration::from_secs(10));
    config.application_name("postroad");
    let options = match config.get_options() {
        Some(url_options) => format!("{SESSION_OPTIONS} {url_options}"),
        None => SESSION_OPTIONS.to_owned(),
    };
    config.options(options);
    let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    // Debian's PostgreSQL offers TLS with a self-signed certificate, which would be refused. On the same machine TLS
    // protects nothing.
    let (manager, canceller) = if config.get_ssl_mode() == SslMode::Disable || is_local(&config) {
        config.ssl_mode(SslMode::Disable);
        (Manager::from_config(config, NoTls, recycle), Canceller(None))
    } else {
        // "Prefer" would fall back to plain text if an attacker asks for it.
        config.ssl_mode(SslMode::Require);
        let tls = tls_connector(ca_file)?;
        (Manager::from_config(config, tls.clone(), recycle), Canceller(Some(tls)))
    };
    let wait = Some(CONNECT_TIMEOUT);
    let pool = Pool::builder(manager)
        .max_size(connections.max(4))
        .timeouts(Timeouts { wait, create: wait, recycle: wait })
        .runtime(Runtime::Tokio1)
        .post_create(Hook::async_fn(|client: &mut ClientWrapper, _| {
            Box::pin(async move {
                client.batch_execute(ENABLE_SYNCHRONOUS_COMMIT).await.map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|e| StoreError::Internal(e.to_string()))?;
    Ok((pool, canceller))
}

/// Cancels the statement of a connection that is discarded. PostgreSQL does not notice a closed connection while it
/// runs a statement: without the cancellation, the statement would keep its locks up to `statement_timeout`. Contains
/// the TLS connector, if connections use TLS.
#[derive(Clone)]
pub(super) struct Canceller(Option<MakeRustlsConnect>);

impl Canceller {
    /// Closes the connection and cancels its statement. If cancelling fails, the database's own timeouts end the
    /// statement.
    pub(super) fn discard(&self, client: Object) {
        let client = Object::take(client);
        let token = client.cancel_token();
        drop(client);
        // Without a runtime the process is ending, and its connections too.
        let Ok(runtime) = Handle::try_current() else { return };
        let tls = self.0.clone();
        runtime.spawn(async move {
            let cancelling = async {
                match tls {
                    Some(tls) => token.cancel_query(tls).await,
                    None => token.cancel_query(NoTls).await,
                }
            };
            match tokio::time::timeout(CANCEL_TIMEOUT, cancelling).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a statement could not be cancelled"),
                Err(_) => tracing::debug!("a statement could not be cancelled in time"),
            }
        });
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("tls", &self.0.is_some()).finish()
    }
}

/// Refuses a database with an encoding other than UTF-8, which cannot store every message; warns if `fsync` is off.
pub(super) async fn check(client: &ClientWrapper) -> Result<(), OpenError> {
    let row = client
        .query_one("SELECT current_setting('server_encoding'), current_setting('fsync')", &[])
        .await
        .map_err(StoreError::from)?;
    let (encoding, fsync): (String, String) = (row.get(0), row.get(1));
    if encoding != "UTF8" {
        return Err(OpenError::Encoding(encoding));
    }
    if fsync != "on" {
        tracing::warn!("PostgreSQL runs with fsync off: a power loss will lose accepted messages");
    }
    Ok(())
}

/// Whether the database is on this machine. Checks `hostaddr` as well as `host`: the connection goes to `hostaddr` if
/// it is set, whatever `host` names.
fn is_local(config: &Config) -> bool {
    let is_local_host = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(is_local_host) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

/// Trusts the public authorities, or only those of `ca_file`.
fn tls_connector(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = ca_file {
        roots = rustls::RootCertStore::empty();
        let bad = |e: &dyn fmt::Display| OpenError::Io {
            path: file.to_owned(),
            source: io::Error::other(e.to_string()),
        };
        for certificate in CertificateDer::pem_file_iter(file).map_err(|e| bad(&e))? {
            roots.add(certificate.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
        }
    }
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| StoreError::Internal(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The URL for error texts: `postgres://user:…@host/db?…`, without the password, which may also be a parameter.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return if url.contains("password") { "…".to_owned() } else { url.to_owned() };
    };
    let text_before = |text: &str, ends: &[char]| text.split(ends).next().unwrap_or_default().to_owned();
    let parameters = if rest.contains('?') { "?…" } else { "" };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            format!(
                "{scheme}://{}:…@{}{parameters}",
                text_before(user, &[':', '/', '?']),
                text_before(host, &['?'])
            )
        }
        None => format!("{scheme}://{}{parameters}", text_before(rest, &['?'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_in_error_texts() {
        assert_eq!(without_password("postgres://u:secret@h/db"), "postgres://u:…@h/db");
        assert_eq!(without_password("postgres://h/db"), "postgres://h/db");
        assert_eq!(without_password("postgres://h/db?password=secret&user=u"), "postgres://h/db?…");
        assert_eq!(without_password("postgres://u:se?cret@h/db?x=1"), "postgres://u:…@h/db?…");
        assert_eq!(without_password("postgres://h/db?password=secret&user=a@b"), "postgres://h:…@b?…");
        assert_eq!(without_password("host=h password=secret"), "…");
    }

    #[test]
    fn only_databases_on_this_machine_need_no_tls() {
        let is_local = |url: &str| is_local(&url.parse().unwrap());
        for url in
            ["postgres://localhost/db", "postgres://127.0.0.1,[::1]/db", "postgres://%2Frun%2Fpostgresql/db"]
        {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "postgres://db.example.com/db",
            "postgres://localhost,192.0.2.1/db",
            "postgres://localhost/db?hostaddr=192.0.2.1",
            "postgres:///db?hostaddr=192.0.2.1",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }
}
