//! A running service: store, app, delivery, webhooks, background tasks, control socket and listeners, started in this
//! order. Stopping lets requests and messages in progress finish.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use postroad_api::{Api, DevAccess, HttpServer, Mode};
use postroad_app::analytics::CounterTask;
use postroad_app::domains::DomainCheckTask;
use postroad_app::{App, Housekeeping, IndexTask, JobTask, RetentionTask};
use postroad_delivery::{Delivery, Identity};
use postroad_events::{PostalSigner, WebhookWorker};
use postroad_mail::Signer;
use postroad_model::SystemClock;
use postroad_net::ReloadingCertificate;
use postroad_net::guarded_http::GuardedHttp;
use postroad_net::local_dns::{LocalDns, LocalRecord, LocalType};
use postroad_portal::{Portal, PortalParts, SmtpAccess};
use postroad_relay::Relay;
use postroad_store::{NodeDescription, NodeListener, Role, Store};
use postroad_track::Tracking;
use tokio::net::TcpListener;

use crate::config::{Config, Database, base_host};
use crate::control::ControlSocket;
use crate::file_limit;
use crate::listen::bind;
use crate::node_report::NodeReport;
use crate::own_urls::{inspector_urls, own_urls};
use crate::secrets_key;
use crate::smtp_listeners::{self, SmtpAddresses};

/// HTTP and SMTP connections and webhooks get this long to finish when the service stops.
const CONNECTIONS_TIME_MAX: Duration = Duration::from_secs(7);
/// Longest time to store the last clicks, opens and uses of keys.
const LAST_WRITES_TIME_MAX: Duration = Duration::from_secs(2);

/// All parts of a running service.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) http_address: Option<SocketAddr>,
    pub(crate) https_address: Option<SocketAddr>,
    pub(crate) smtp_addresses: SmtpAddresses,
    http_servers: Vec<HttpServer>,
    relays: Vec<Relay>,
    tracking: Option<Tracking>,
    certificate: Option<Arc<ReloadingCertificate>>,
    housekeeping: Housekeeping,
    counter_task: CounterTask,
    index_task: IndexTask,
    job_task: JobTask,
    retention_task: RetentionTask,
    domain_check_task: DomainCheckTask,
    node_report: Option<NodeReport>,
    delivery: Delivery,
    webhooks: WebhookWorker,
    /// The HTTP client of `webhooks`, kept to exempt the service's own inspector URLs from its address filter.
    webhook_http: GuardedHttp,
    _control: ControlSocket,
    /// The file `node-id`, locked while the service runs: two nodes must not share an identity.
    _node_lock: std::fs::File,
}

/// Options of `postroad dev`.
#[derive(Debug)]
pub(crate) struct DevOptions {
    pub(crate) access: DevAccess,
    /// Name or address by which clients reach the service; `None` for the address it listens on.
    pub(crate) host: Option<String>,
    /// Whether mail from any From address is accepted.
    pub(crate) any_from: bool,
}

impl DevOptions {
    /// The URL of a listener.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        match &self.host {
            Some(host) => format!("http://{host}:{}", address.port()),
            None if address.ip().is_unspecified() => format!("http://localhost:{}", address.port()),
            None => format!("http://{address}"),
        }
    }
}

impl Service {
    /// Starts with the defaults of `postroad dev` if `dev_options` is given.
    pub(crate) async fn start(config: &Config, dev_options: Option<&DevOptions>) -> anyhow::Result<Self> {
        let dev = dev_options.is_some();
        file_limit::raise();
        create_data_dir(&config.data_dir)?;
        let (node_lock, identity) = node_identity(&config.data_dir)?;
        let (app, store) = open_app(config, Role::Node { identity }).await?;
        let is_only_node = sqlite_file(config).is_some();
        app.set_installation_host_at_start(is_only_node).await?;
        if dev_options.is_some_and(|options| options.any_from) {
            app.accept_any_from();
        }
        let local_dns = if dev { Some(start_local_dns(config).await?) } else { None };
        app.set_domain_checker(match &local_dns {
            Some(local) => config.dev_domain_checker(local.address())?,
            None => config.domain_checker()?,
        });
        let delivery = Delivery::start(
            config.delivery_settings(dev)?,
            load_identity(&app).await?,
            store.clone(),
            Arc::new(SystemClock),
        )
        .await?;
        let webhook_http = config.webhook_client(dev)?;
        let webhooks = start_webhooks(config, webhook_http.clone(), &app, store).await?;
        let housekeeping = Housekeeping::start(app.clone());
        let counter_task = CounterTask::start(app.clone());
        let index_task = IndexTask::start(app.clone());
        let job_task = JobTask::start(&app);
        let retention_task = RetentionTask::start(app.clone());
        let domain_check_task = DomainCheckTask::start(app.clone());
        let control = ControlSocket::listen(&config.data_dir, app.clone(), delivery.queue_admin())?;
        let mut service = Self {
            app,
            http_address: None,
            https_address: None,
            smtp_addresses: SmtpAddresses::default(),
            http_servers: Vec::new(),
            relays: Vec::new(),
            tracking: None,
            certificate: None,
            housekeeping,
            counter_task,
            index_task,
            job_task,
            retention_task,
            domain_check_task,
            node_report: None,
            delivery,
            webhooks,
            webhook_http,
            _control: control,
            _node_lock: node_lock,
        };
        service.load_certificate(config)?;
        let portal = service.listen(config, dev_options, local_dns).await?;
        (service.relays, service.smtp_addresses) =
            smtp_listeners::start(&service.app, config, service.certificate.as_ref()).await?;
        portal.set_smtp(smtp_access(config, service.smtp_addresses, dev_options.is_some()));
        if let Some(address) = service.smtp_addresses.bounce {
            service.delivery.set_bounce_listener(address);
        }
        if let Some(address) = service.http_address {
            service.delivery.set_http_address(address);
        }
        let (description, certificate) = (service.node_description(config), service.certificate.clone());
        service.node_report = Some(NodeReport::start(service.app.clone(), description, certificate).await);
        Ok(service)
    }

    /// Whether mail is caught instead of sent.
    pub(crate) fn has_inbox(&self) -> bool {
        self.delivery.inbox().is_some()
    }

    fn node_description(&self, config: &Config) -> NodeDescription {
        let smtp = self.smtp_addresses;
        let listeners = [
            ("HTTP", self.http_address),
            ("HTTPS", self.https_address),
            ("SMTP with STARTTLS", smtp.starttls),
            ("SMTP with TLS", smtp.tls),
            ("SMTP with STARTTLS", smtp.extra),
            ("SMTP without TLS", smtp.plain),
            ("SMTP without login", smtp.open),
            ("Bounces", smtp.bounce),
        ];
        let listener = |(name, address): (&str, Option<SocketAddr>)| {
            Some(NodeListener { name: name.to_owned(), address: address?.to_string() })
        };
        NodeDescription {
            host: config.hostname.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.app.now(),
            listeners: listeners.into_iter().filter_map(listener).collect(),
            // `NodeReport` sets it.
            certificate: None,
        }
    }

    /// Loads the certificate, which all listeners share.
    fn load_certificate(&mut self, config: &Config) -> anyhow::Result<()> {
        // The bounce listener offers TLS only if there is a certificate.
        let bounces_can_use_tls = config.smtp.bounce_listen.is_some() && config.tls.certificate.is_some();
        if config.http.https_listen.is_some() || config.smtp.has_tls() || bounces_can_use_tls {
            let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) else {
                anyhow::bail!("HTTPS and SMTP with AUTH need `tls.certificate` and `tls.key`");
            };
            self.certificate = Some(ReloadingCertificate::load(certificate, key)?);
        }
        Ok(())
    }

    async fn listen(
        &mut self,
        config: &Config,
        dev_options: Option<&DevOptions>,
        local_dns: Option<LocalDns>,
    ) -> anyhow::Result<Portal> {
        let settings = postroad_api::Settings {
            request_bytes_max: config.limits.request_bytes_max,
            batch_bytes_max: config.limits.batch_bytes_max,
            in_flight_bytes_max: config.in_flight_bytes_max,
            trusted_proxies: config.http.trusted_proxies.clone(),
            ..postroad_api::Settings::default()
        };
        let mut api = Api::new(self.app.clone(), settings)
            .with_webhooks(self.webhooks.tester())
            .with_queue(self.delivery.queue_admin());
        if let Some(inbox) = self.delivery.inbox() {
            api = api.with_inbox(inbox.clone());
        }
        let portal = Portal::new(PortalParts {
            app: self.app.clone(),
            webhooks: self.webhooks.tester(),
            queue: self.delivery.queue_admin(),
            inbox: self.delivery.inbox().cloned(),
            pictures: Some(config.picture_client(dev_options.is_some())?),
            warm_up: config.delivery.warm_up(),
        });
        api = api.with_routes(portal.routes());
        if let Some(options) = dev_options {
            api = api.with_dev_access(options.access.clone()).with_dev_page(self.delivery.inbox().cloned());
            if let Some(inbox) = self.delivery.inbox() {
                api = api.with_mailpit(inbox.clone());
            }
        }
        if let Some(local_dns) = local_dns {
            api = api.with_dev_dns(local_dns);
        }
        let plain_listener = match config.http.listen {
            Some(address) => Some(bind(address, config.http.may_use_next_port, "HTTP").await?),
            None => None,
        };
        self.http_address = plain_listener.as_ref().map(TcpListener::local_addr).transpose()?;
        api = self.with_tracking(api, config, dev_options).await?;
        self.app.set_portal_base(match self.http_address {
            Some(address) if config.portal.base_url.is_none() => {
                dev_options.map_or_else(|| config.portal_base(), |options| options.url(address))
            }
            _ => config.portal_base(),
        });
        if let (Some(address), Some(certificate)) = (config.http.https_listen, &self.certificate) {
            let listener = bind(address, false, "HTTPS").await?;
            self.https_address = Some(listener.local_addr()?);
            let tls = Some(certificate.https_config());
            self.http_servers.push(HttpServer::start(&api, listener, tls, Mode::Serve));
        }
        let may_serve_plain =
            config.http.listen.is_some_and(|address| address.ip().is_loopback()) || config.http.allow_plain;
        let serves_plain = may_serve_plain || self.https_address.is_none();
        let plain = self.http_address.filter(|_| serves_plain);
        let dev = dev_options.zip(plain).map(|(dev, address)| (dev.url(address), &*dev.access.hosts));
        let own = own_urls(config, plain, dev);
        self.webhook_http.set_exempt(inspector_urls(&own));
        portal.set_own_urls(own);
        if let Some(listener) = plain_listener {
            let mode = match self.https_address {
                Some(https) if !may_serve_plain => Mode::RedirectToHttps { port: https.port() },
                _ => Mode::Serve,
            };
            self.http_servers.push(HttpServer::start(&api, listener, None, mode));
        }
        tracing::info!(
            http = self.http_address.map(|a| a.to_string()),
            https = self.https_address.map(|a| a.to_string()),
            "listening"
        );
        Ok(portal)
    }

    /// Adds the routes of tracking links to the API, under host names that serve nothing else. Without such a host
    /// name, as in `dev`, the links share the host name of the API (`is_shared`).
    async fn with_tracking(
        &mut self,
        api: Api,
        config: &Config,
        dev_options: Option<&DevOptions>,
    ) -> anyhow::Result<Api> {
        let base = match (self.http_address, dev_options) {
            (Some(address), Some(options)) if config.tracking.base_url.is_none() => options.url(address),
            _ => config.tracking_base(),
        };
        let host = base_host(&base).to_owned();
        self.app.set_tracking_base(base);
        let secret = self.app.installation().await?.return_path_secret;
        let is_shared = dev_options.is_some()
            || [config.hostname.as_str(), "localhost"].contains(&host.as_str())
            || !host.contains(char::is_alphabetic);
        let tracking = Tracking::start(self.app.clone(), &secret, &host);
        let api = if is_shared {
            api.with_routes(tracking.routes())
        } else {
            let hosts = tracking.hosts();
            api.with_virtual_host(move |host| hosts.contains(host), tracking.tracking_only_router())
        };
        self.tracking = Some(tracking);
        Ok(api)
    }

    /// Re-reads the certificate files; keeps the old pair if the new one is not usable.
    pub(crate) fn reload(&self) {
        if let Some(certificate) = &self.certificate {
            match certificate.reload() {
                Ok(()) => tracing::info!("certificate reloaded"),
                Err(error) => {
                    tracing::error!(%error, "reloading the certificate failed; the old one stays in use");
                }
            }
        }
        if let Some(report) = &self.node_report {
            report.republish();
        }
    }

    /// Finishes the requests and messages in progress, then stores the last clicks, opens and uses of keys. Takes at
    /// most ten seconds, except for messages whose last bytes were sent and whose reply is missing.
    pub(crate) async fn stop(self) {
        tracing::info!("stopping");
        // Calls that wait, such as events/list, would keep their connections for half a minute.
        self.app.stop_waiting();
        self.retention_task.stop();
        self.domain_check_task.stop();
        self.counter_task.stop();
        self.index_task.stop();
        self.job_task.stop();
        if let Some(report) = self.node_report {
            report.stop();
        }
        let mut stopping = tokio::task::JoinSet::new();
        for server in self.http_servers {
            stopping.spawn(server.stop());
        }
        for relay in self.relays {
            stopping.spawn(relay.stop());
        }
        stopping.spawn(self.webhooks.stop());
        let finishing = async { while stopping.join_next().await.is_some() {} };
        let finishing = tokio::time::timeout(CONNECTIONS_TIME_MAX, finishing);
        let (finished, ()) = tokio::join!(finishing, self.delivery.stop());
        if finished.is_err() {
            tracing::warn!("shutdown: some connections or webhooks did not end in time and are aborted");
        }
        // The listeners are closed, so no more clicks, opens and uses of keys arrive.
        let last_writes = async {
            if let Some(tracking) = self.tracking {
                tracking.stop().await;
            }
            self.housekeeping.stop().await;
        };
        if tokio::time::timeout(LAST_WRITES_TIME_MAX, last_writes).await.is_err() {
            tracing::warn!(
                "shutdown: the last clicks, opens and uses of keys were lost: the store did not answer"
            );
        }
    }
}

/// The DNS server of `dev`, which has the installation's own records from the start.
async fn start_local_dns(config: &Config) -> anyhow::Result<LocalDns> {
    let local = LocalDns::start(config.data_dir.join("dev-dns.json")).await;
    let local = local.context("cannot start the DNS server of `postroad dev`")?;
    let host = config.hostname.as_str();
    let record =
        |name: String, record_type, value: &str| LocalRecord { name, record_type, value: value.to_owned() };
    local.publish(vec![
        record(host.to_owned(), LocalType::A, "127.0.0.1"),
        record(format!("rp.{host}"), LocalType::A, "127.0.0.1"),
        record(format!("track.{host}"), LocalType::A, "127.0.0.1"),
        record(format!("rp.{host}"), LocalType::Txt, "v=spf1 ip4:127.0.0.1 -all"),
        record(format!("spf.{host}"), LocalType::Txt, "v=spf1 ip4:127.0.0.1 -all"),
    ]);
    Ok(local)
}

/// Addresses that the portal shows for mail clients.
fn smtp_access(config: &Config, addresses: SmtpAddresses, dev: bool) -> SmtpAccess {
    let local = addresses.starttls.or(addresses.tls).filter(|_| dev).map(|address| address.ip().to_string());
    SmtpAccess {
        host: local.unwrap_or_else(|| config.hostname.to_string()),
        starttls_port: addresses.starttls.map(|address| address.port()),
        tls_port: addresses.tls.map(|address| address.port()),
        bounce_port: addresses.bounce.map(|address| address.port()),
    }
}

/// Reads the secrets of return paths and of the installation's DKIM signature, and gives the app the key of the MACs in
/// Message-IDs.
async fn load_identity(app: &App) -> anyhow::Result<Identity> {
    let installation = app.installation().await?;
    app.set_message_id_key(&installation.return_path_secret);
    let dkim = Signer::rsa(&installation.dkim_selector, app.host().clone(), &installation.dkim_private_pkcs8)
        .context("the installation's DKIM key is not usable")?;
    Ok(Identity { return_path_secret: installation.return_path_secret, dkim })
}

async fn start_webhooks(
    config: &Config,
    http: GuardedHttp,
    app: &App,
    store: Store,
) -> anyhow::Result<WebhookWorker> {
    let signer = PostalSigner::from_pkcs8(&app.webhook_key().await?)?;
    let settings = config.webhook_settings();
    Ok(WebhookWorker::start(store, Arc::new(SystemClock), http, Arc::new(signer), settings))
}

/// Opens the store and creates the app.
pub(crate) async fn open_app(config: &Config, role: Role) -> anyhow::Result<(App, Store)> {
    let clock = Arc::new(SystemClock);
    let settings = postroad_store::Settings {
        database: match (&config.database, sqlite_file(config)) {
            (Database::Postgres { url }, _) => postroad_store::Database::Postgres(url.as_str().to_owned()),
            (_, file) => postroad_store::Database::Sqlite(file.expect("what is not PostgreSQL is a file")),
        },
        disk_reserve_bytes: config.store.disk_reserve_bytes as u64,
        reader_threads: config.store.reader_threads,
        postgres_connections: config.store.postgres_connections_max,
        postgres_ca_file: config.store.postgres_ca_file.clone(),
    };
    let is_service = matches!(role, Role::Node { .. });
    let store = Store::open(settings, role, Arc::<SystemClock>::clone(&clock))
        .await
        .context("cannot open the database (`database` in the configuration)")?;
    let sealing_key = secrets_key::load(config, is_service)?;
    let settings = postroad_app::Settings {
        hostname: config.hostname.clone(),
        limits: config.limits.clone(),
        simulator_domain: config.delivery.simulator_domain.clone(),
        dkim_ed25519: config.delivery.dkim_ed25519,
        retention: config.retention.clone(),
        webhooks_per_server: config.webhooks.per_server,
        domains_per_server: config.domains.per_server,
        domain_checks: config.domains.checks,
        warm_up_days: config.delivery.warm_up().days(),
        feedback: config.feedback.clone(),
        sealing_key,
        notices_from: config.portal.mail_from.clone(),
    };
    let app = App::with_settings(store.clone(), clock, settings);
    Ok((app, store))
}

/// Fails if the SQLite database does not exist: a mistyped folder must not become a new installation.
pub(crate) fn check_installation(config: &Config) -> anyhow::Result<()> {
    let Some(file) = sqlite_file(config) else { return Ok(()) };
    let exists = file.try_exists().with_context(|| {
        format!(
            "cannot look for {}: run the command as the user that postroad runs as, or as root",
            file.display()
        )
    })?;
    anyhow::ensure!(
        exists,
        "there is no installation in {} (no {}): check --data-dir or --config; `admin account create` creates one",
        config.data_dir.display(),
        file.display()
    );
    Ok(())
}

/// The database file; `None` on PostgreSQL.
pub(crate) fn sqlite_file(config: &Config) -> Option<PathBuf> {
    match &config.database {
        Database::Sqlite { file } => {
            Some(file.clone().unwrap_or_else(|| config.data_dir.join("postroad.db")))
        }
        Database::Postgres { .. } => None,
    }
}

pub(crate) fn create_data_dir(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create the data directory {}", folder.display()))
}

/// The identity by which a restarted node is recognised, and the locked file that holds it. Creates the file at the
/// first start.
fn node_identity(data_dir: &Path) -> anyhow::Result<(std::fs::File, String)> {
    use std::io::{Read, Seek, Write};
    use std::os::unix::fs::OpenOptionsExt;
    let path: PathBuf = data_dir.join("node-id");
    let mut options = std::fs::File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let mut file = options.open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    file.try_lock().map_err(|_| {
        anyhow::anyhow!(
            "{} is in use by another postroad process: stop that one, or use another data directory",
            data_dir.display()
        )
    })?;
    let mut identity = String::new();
    file.read_to_string(&mut identity)?;
    if identity.trim().is_empty() {
        identity = uuid::Uuid::new_v4().to_string();
        file.rewind()?;
        file.write_all(identity.as_bytes())?;
        file.sync_all()?;
    }
    Ok((file, identity.trim().to_owned()))
}
