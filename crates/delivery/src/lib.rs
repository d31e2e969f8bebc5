//! The delivery engine: delivers every queued message to its destination's mail server, or records why it could not.
//!
//! It does not know which entry point a message came from. The last hop may also be in this process: the dev inbox
//! and the simulator speak SMTP on loopback like any other host.

mod attempt;
mod engine;
pub mod inbox;
pub mod journal;
mod local_smtp;
pub mod pacing;
mod prepare;
pub mod providers;
pub mod queue_admin;
mod retry;
mod route;
mod schedule;
mod settings;
pub mod signing;
pub mod simulator;
mod turns;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::Signer;
use postroad_model::{Clock, DomainName};
use postroad_net::client_tls::{ClientTls, ExtraRootsError};
use postroad_net::dns::{Dns, DnsSettings, DnsSetupError};
use postroad_net::mta_sts::{MtaSts, MtaStsSettings};
use postroad_smtp::Credentials;
use postroad_store::{Store, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use queue_admin::QueueAdmin;
pub use retry::RetryPolicy;
pub use schedule::warm_up::WarmUpPlan;
pub use settings::{Settings, SmartHost, SmartHostTls};

use attempt::connection::PhaseTimeouts;
use attempt::host_order::HostOrder;
use attempt::{Connector, Router};
use engine::{BeginBatcher, EngineShared, Feeder, Intake, Parts, ProviderNotes, Settler};
pub use inbox::{CaughtMessage, Inbox, InboxServer, MessageMatcher};
use journal::Journal;
use prepare::{OwnDomains, Preparer};
use providers::Providers;
use schedule::Shortage;
use signing::SigningPool;
pub use simulator::SimulatorServer;

/// A stopping engine ends all work within this time, except messages whose last bytes were sent.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest time to store the outcomes of the last messages when the engine stops.
const STORING_TIME_MAX: Duration = Duration::from_secs(1);

/// Names and keys of this installation.
pub struct Identity {
    /// Key of the MAC in return paths.
    pub return_path_secret: [u8; 32],
    /// Signs as the installation's domain: mail whose From domain has no working key, and mail to receivers whose
    /// feedback loops go by DKIM signatures. Return paths are at `rp.` in front of the installation's domain, unless
    /// the From domain has its own.
    pub dkim: Signer,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("dkim", &self.dkim).finish_non_exhaustive()
    }
}

/// Why the engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the flight journal cannot be opened: {0}")]
    Journal(#[source] io::Error),
    #[error("the dev inbox or the simulator cannot listen on loopback: {0}")]
    Listen(#[source] io::Error),
    #[error("DNS: {0}")]
    Dns(#[from] DnsSetupError),
    #[error("TLS: {0}")]
    Tls(#[from] ExtraRootsError),
    #[error("provider rules: {0}")]
    Providers(#[from] providers::ProviderProblem),
    #[error("threads for signing cannot be started: {0}")]
    Signing(#[source] io::Error),
    #[error("{0}")]
    Hostname(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A running engine.
#[derive(Debug)]
pub struct Delivery {
    shared: Arc<EngineShared>,
    inbox: Option<Inbox>,
    settler: JoinHandle<()>,
    tasks: Vec<JoinHandle<()>>,
    /// `None` if the simulator is off.
    simulator: Option<SimulatorServer>,
    /// SMTP server of the inbox; stops when dropped.
    _inbox_server: Option<InboxServer>,
}

#[boxed_futures]
impl Delivery {
    /// Settles the flights that an earlier process left, then starts the engine.
    pub async fn start(
        settings: Settings,
        identity: Identity,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let (journal, recovered) = Journal::open(&settings.journal_dir).map_err(StartError::Journal)?;
        let inbox = settings.catch_all.then(|| Inbox::new(Arc::clone(&clock)));
        let inbox_server = match &inbox {
            Some(inbox) => Some(InboxServer::start(inbox.clone()).await.map_err(StartError::Listen)?),
            None => None,
        };
        let simulator = if settings.simulator {
            Some(SimulatorServer::start(Arc::clone(&clock)).await.map_err(StartError::Listen)?)
        } else {
            None
        };
        let providers = Arc::new(match &settings.provider_overrides {
            Some(text) => Providers::with_overrides(text)?,
            None => Providers::built_in(),
        });
        let (stopping, stop) = watch::channel(false);
        let (shortage, shortage_seen) = watch::channel(Shortage::None);
        let dns = Dns::new(&DnsSettings {
            nameservers: settings.nameservers.clone(),
            ipv6: settings.ipv6,
            dnssec: settings.dnssec,
            ..DnsSettings::default()
        })?;
        let tls = ClientTls::new(settings.ca_file.as_deref())?;
        let sts_settings = MtaStsSettings {
            port: settings.mta_sts_port,
            allow_private: settings.allow_private_destinations,
            file: Some(settings.mta_sts_file.clone()),
            ..MtaStsSettings::default()
        };
        let router = Router {
            dns: dns.clone(),
            sts: MtaSts::new(dns.clone(), &tls, &sts_settings),
            providers: Arc::clone(&providers),
            clock: Arc::clone(&clock),
            hostname: settings.hostname.clone(),
            smtp_port: settings.smtp_port,
            smart_host: settings.smart_host.clone(),
            inbox: inbox_server.as_ref().map(|(_, address)| *address),
            simulator_domain: settings.simulator_domain.clone(),
            simulator_address: simulator.as_ref().map(|(_, address)| *address),
        };
        let connector = Connector {
            dns,
            tls,
            credentials: smart_host_credentials(&settings),
            connect_timeout: settings.connect_timeout,
            timeouts: PhaseTimeouts {
                reply: settings.reply_timeout,
                final_reply: settings.final_reply_timeout,
                scarce_opening: settings.busy_greeting_timeout,
            },
            allow_private_destinations: settings.allow_private_destinations,
            host_order: HostOrder::default(),
            stop,
            shortage: shortage_seen,
        };
        let preparer = preparer(&settings, identity, &store, &clock)?;
        let (begins, begin_batcher) = BeginBatcher::new(store.clone());
        let (settlements, settler) = Settler::new();
        let (alive, all_done) = mpsc::channel(1);
        let (provider_notes, provider_note_writer) = ProviderNotes::new(store.clone(), &providers);
        let shared = Arc::new(EngineShared::new(Parts {
            settings,
            store: store.clone(),
            clock,
            router,
            connector,
            preparer,
            journal: Arc::new(journal),
            provider_notes,
            shortage,
            begins,
            settlements,
            stopping,
            alive,
        }));
        engine::recover(&shared, recovered).await?;
        engine::read_setup(&shared).await?;
        store.deliver_to(Arc::new(Intake(Arc::clone(&shared))));
        if store.is_clock_behind() {
            shared.correct_queue(Vec::new());
        }
        let settler = tokio::spawn(settler.run(Arc::clone(&shared), all_done));
        let feeder = Feeder {
            shared: Arc::clone(&shared),
            changes: store.changes(),
            queue_changes: store.queue_changes(),
            abandoned: Vec::new(),
            notes_since: None,
        };
        let tasks = vec![
            tokio::spawn(begin_batcher.run()),
            tokio::spawn(provider_note_writer.run()),
            tokio::spawn(Arc::clone(&shared).run_timer()),
            tokio::spawn(feeder.run()),
            tokio::spawn(engine::run_expiry(Arc::clone(&shared))),
            tokio::spawn(engine::run_late_records(Arc::clone(&shared))),
        ];
        Ok(Self {
            shared,
            inbox,
            settler,
            tasks,
            simulator: simulator.map(|(server, _)| server),
            _inbox_server: inbox_server.map(|(server, _)| server),
        })
    }

    /// The inbox of caught messages; `None` unless `catch_all` is set.
    pub fn inbox(&self) -> Option<&Inbox> {
        self.inbox.as_ref()
    }

    /// Tells the simulator the address of the bounce listener; before that, it returns no mail.
    pub fn set_bounce_listener(&self, bounce_listener: SocketAddr) {
        if let Some(simulator) = &self.simulator {
            simulator.set_bounce_listener(bounce_listener);
        }
    }

    /// Tells the simulator where pixels and links are served; before that, it opens and clicks nothing.
    pub fn set_http_address(&self, http_address: SocketAddr) {
        if let Some(simulator) = &self.simulator {
            simulator.set_http_address(http_address);
        }
    }

    /// Queries about the queue.
    pub fn queue_admin(&self) -> QueueAdmin {
        QueueAdmin::with_engine(Arc::clone(&self.shared))
    }

    /// Starts no new work. Messages whose last bytes were sent may finish; all others are released without counting
    /// an attempt.
    pub async fn stop(mut self) {
        self.shared.store.stop_delivering();
        let waiting = self.shared.begin_stop();
        let settled = async {
            self.shared.release_entries(waiting).await;
            if let Err(error) = self.shared.save_pacing_notes().await {
                tracing::warn!(%error, "storing pacing estimates failed; they are learned again after the restart");
            }
            // The settler ends when no outcome is left to store. It fails only if it panicked.
            let _ = (&mut self.settler).await;
        };
        if timeout(STOP_TIME_MAX, settled).await.is_err() {
            let time_left = self.shared.settings.drain_timeout.saturating_sub(STOP_TIME_MAX);
            if timeout(time_left, self.shared.wait_for_final_replies()).await.is_err() {
                tracing::warn!(
                    "some final replies did not arrive in time; the next start retries these messages as possible duplicates"
                );
            }
            if timeout(STORING_TIME_MAX, &mut self.settler).await.is_err() {
                tracing::warn!(
                    "storing the last outcomes took too long; the next start settles or claims these messages again"
                );
            }
        }
        for task in &self.tasks {
            task.abort();
        }
        // Lets the aborted tasks end before the local SMTP servers are dropped with `self`.
        tokio::time::sleep(Duration::ZERO).await;
    }
}

fn smart_host_credentials(settings: &Settings) -> Option<Credentials> {
    let smart_host = settings.smart_host.as_ref()?;
    let (username, password) = smart_host.credentials.clone()?;
    Some(Credentials { username, password, allow_without_tls: smart_host.is_local() })
}

fn preparer(
    settings: &Settings,
    identity: Identity,
    store: &Store,
    clock: &Arc<dyn Clock>,
) -> Result<Preparer, StartError> {
    let host = identity.dkim.domain();
    let return_domain = DomainName::parse(&format!("rp.{host}"))
        .map_err(|e| StartError::Hostname(format!("rp.{host} is not a host name: {e}")))?;
    let signing_pool = if settings.dkim {
        Some(SigningPool::start(settings.signing_threads).map_err(StartError::Signing)?)
    } else {
        None
    };
    let own_domains = OwnDomains::new(store.clone(), Arc::clone(clock), Arc::new(identity.dkim));
    Ok(Preparer::new(
        store.clone(),
        signing_pool,
        own_domains,
        &identity.return_path_secret,
        settings.hostname.clone(),
        return_domain,
        settings.fresh_bytes_max,
    ))
}
