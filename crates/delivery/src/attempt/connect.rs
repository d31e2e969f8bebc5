//! Connect: tries the route's hosts in order of preference until a session with one of them accepts messages. Uses TLS
//! as the host and the route require. If neither requires TLS, a failed handshake is followed by a connection without
//! TLS.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{BounceClass, DomainName, ServerId};
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{AddressFailure, Dns};
use postroad_net::guard;
use postroad_smtp::{ClientConfig, ClientSession, Closed, Credentials, EndCause, HeloName, Reply, TlsMode};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connect_progress::ConnectProgress;
use super::connection::{Connection, Peer, PhaseTimeouts, Signals};
use super::ending::explain;
use super::host_order::{self, HostOrder};
use super::stream::DialError;
use super::{dial, stream};
use crate::route::{Dane, Route, RouteHost, RouteKind, Security};
use crate::schedule::{Shortage, Source};

/// Maximum number of addresses tried in one attempt; the next attempt continues with the untried addresses.
const ADDRESSES_TRIED_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) dns: Dns,
    pub(crate) tls: ClientTls,
    /// Only for the smart host.
    pub(crate) credentials: Option<Credentials>,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeouts: PhaseTimeouts,
    pub(crate) allow_private_destinations: bool,
    pub(crate) host_order: HostOrder,
    pub(crate) stop: watch::Receiver<bool>,
    /// While connections are scarce, hosts get less time.
    pub(crate) shortage: watch::Receiver<Shortage>,
}

/// A failed attempt to connect: no host of the route accepts messages.
#[derive(Debug, Clone)]
pub(crate) struct ConnectFailure {
    pub(crate) peer: Peer,
    pub(crate) problem: String,
    pub(crate) class: BounceClass,
    /// Reply of the host that refused the connection.
    pub(crate) reply: Option<Reply>,
    /// Whether any remote host was tried.
    pub(crate) was_tried: bool,
    /// The host's addresses were not looked up, because too many look-ups are waiting. This does not count as a failure
    /// of the site.
    pub(crate) was_dns_busy: bool,
    pub(crate) transcript: String,
    /// The service is stopping. This does not count as a failure of the site.
    pub(crate) was_stopped: bool,
}

impl ConnectFailure {
    fn untried(host: &str, problem: String, class: BounceClass) -> Self {
        Self {
            peer: Peer { mx: host.to_owned(), ..Peer::default() },
            problem,
            class,
            reply: None,
            was_tried: false,
            was_dns_busy: false,
            transcript: String::new(),
            was_stopped: false,
        }
    }

    fn stopped(host: &str) -> Self {
        let problem = "this service was stopping".to_owned();
        Self { was_stopped: true, ..Self::untried(host, problem, BounceClass::Other) }
    }
}

impl Connector {
    /// Connects to the first host of the route that accepts messages. If all fail, returns the most informative
    /// failure. `server` is the message's server; `progress` is updated meanwhile.
    pub(crate) async fn connect(
        &self,
        route: &Route,
        source: &Source,
        server: ServerId,
        progress: &watch::Sender<ConnectProgress>,
    ) -> Result<Connection, ConnectFailure> {
        let mut failure: Option<ConnectFailure> = None;
        let mut keep_most_informative = |new: ConnectFailure| {
            // A failure with a reply is most informative, then the failure of a host that was tried.
            let worth = |failure: &ConnectFailure| (failure.reply.is_some(), failure.was_tried);
            if failure.as_ref().is_none_or(|old| worth(&new) >= worth(old)) {
                failure = Some(new);
            }
        };
        let begun = Instant::now();
        let (mut tried, mut is_cut_short) = (0, false);
        let order = self.host_order.begin(&route.site, &route.hosts);
        'hosts: for (host, first_address) in &order.hosts {
            let addresses = match self.addresses_unless_stopped(route, host, source, server).await {
                Ok(addresses) => addresses,
                Err(failure) if failure.was_stopped => return Err(failure),
                Err(failure) => {
                    keep_most_informative(failure);
                    continue;
                }
            };
            for index in (0..addresses.len()).map(|index| (first_address + index) % addresses.len()) {
                let is_time_up = || {
                    begun.elapsed() >= self.timeouts.scarce_opening
                        && *self.shortage.borrow() > Shortage::None
                };
                if tried == ADDRESSES_TRIED_MAX || (tried > 0 && is_time_up()) {
                    self.host_order.on_cut_short_before(&order, host, index);
                    is_cut_short = true;
                    break 'hosts;
                }
                tried += 1;
                let mut abort_recorder = AbortRecorder {
                    connector: self,
                    order: &order,
                    at: Some((host, index, addresses.len())),
                };
                let connected = self.connect_to(route, host, addresses[index], source, progress).await;
                abort_recorder.at = None;
                match connected {
                    Ok(connection) => {
                        self.host_order.on_reached(&order, host, index);
                        return Ok(connection);
                    }
                    Err(failure) if failure.was_stopped => return Err(failure),
                    Err(failure) => keep_most_informative(failure),
                }
            }
        }
        if !is_cut_short {
            self.host_order.on_exhausted(&order);
        }
        Err(failure.unwrap_or_else(|| {
            ConnectFailure::untried(&route.secured_site, "the site has no hosts".into(), BounceClass::Dns)
        }))
    }

    /// Connects to a host of the route, other than `except`, that supports non-ASCII addresses. `None` if none does.
    /// Fails if a host could not be reached or was not tried: that host may support such addresses. `attempts` is the
    /// number of the message's earlier attempts. It decides which host comes first, so that later attempts begin with
    /// hosts that earlier ones left out.
    pub(crate) async fn connect_with_smtputf8(
        &self,
        route: &Route,
        source: &Source,
        server: ServerId,
        except: &str,
        attempts: u32,
    ) -> Result<Option<Connection>, ConnectFailure> {
        let mut failure = None;
        let mut tried = 0;
        let progress = watch::Sender::default();
        let order = self.host_order.begin(&route.site, &route.hosts);
        let hosts = order.hosts.iter().map(|(host, _)| *host).filter(|host| host.name != except);
        let mut hosts: Vec<&RouteHost> = hosts.collect();
        let tried_before = (attempts as usize).saturating_mul(ADDRESSES_TRIED_MAX);
        let first = tried_before % hosts.len().max(1);
        hosts.rotate_left(first);
        'hosts: for host in hosts {
            let addresses = match self.addresses_unless_stopped(route, host, source, server).await {
                Ok(addresses) => addresses,
                Err(failure) if failure.was_stopped => return Err(failure),
                Err(unusable) => {
                    failure = Some(unusable);
                    continue;
                }
            };
            for address in addresses {
                if tried == ADDRESSES_TRIED_MAX {
                    failure.get_or_insert_with(|| {
                        let problem =
                            "none of the hosts tried supports SMTPUTF8, and there are more".to_owned();
                        let name = self.shown_name(host);
                        let failure = ConnectFailure::untried(&name, problem, BounceClass::Protocol);
                        ConnectFailure { was_tried: true, ..failure }
                    });
                    break 'hosts;
                }
                tried += 1;
                match self.connect_to(route, host, address, source, &progress).await {
                    Ok(connection) if connection.offers_smtputf8() => return Ok(Some(connection)),
                    Ok(connection) => {
                        connection.quit().await;
                        // The host's other addresses are assumed to offer the same.
                        break;
                    }
                    Err(stopped) if stopped.was_stopped => return Err(stopped),
                    Err(unreachable) => failure = Some(unreachable),
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// The host's addresses that can be dialled from this source, unless the service stops first.
    async fn addresses_unless_stopped(
        &self,
        route: &Route,
        host: &RouteHost,
        source: &Source,
        server: ServerId,
    ) -> Result<Vec<SocketAddr>, ConnectFailure> {
        let mut stop = self.stop.clone();
        tokio::select! {
            found = self.find_addresses(route, host, source, server) => found,
            Ok(_) = stop.wait_for(|stop| *stop) => Err(ConnectFailure::stopped(&self.shown_name(host))),
        }
    }

    async fn find_addresses(
        &self,
        route: &Route,
        host: &RouteHost,
        source: &Source,
        server: ServerId,
    ) -> Result<Vec<SocketAddr>, ConnectFailure> {
        if let Some(address) = host.address {
            return Ok(vec![address]);
        }
        if let Dane::Unknown(problem) = &host.dane {
            let problem = format!(
                "{}: it is not known whether DANE protects the host, so nothing is sent to it: {problem}",
                host.name
            );
            return Err(ConnectFailure::untried(&self.shown_name(host), problem, BounceClass::Dns));
        }
        // RFC 8461 2: DANE takes precedence where it applies.
        if let Security::Verified { policy: Some(policy), .. } = &route.security
            && !matches!(host.dane, Dane::Certificate(_))
            && !policy.matches(&host.name)
        {
            let problem = format!("the MTA-STS policy does not name the host {}", host.name);
            return Err(ConnectFailure::untried(&self.shown_name(host), problem, BounceClass::Policy));
        }
        let found = match host.name.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) => self.dns.for_server(server).addresses(&host.name).await.map_err(|failure| {
                let problem = format!("{}: {failure}", host.name);
                ConnectFailure {
                    was_dns_busy: failure == AddressFailure::Busy,
                    ..ConnectFailure::untried(&self.shown_name(host), problem, BounceClass::Dns)
                }
            })?,
        };
        let family_fits =
            |address: &IpAddr| source.address.is_none_or(|own| own.is_ipv4() == address.is_ipv4());
        let may_dial = |address: &IpAddr| {
            self.allow_private_destinations
                || route.kind == RouteKind::SmartHost
                || guard::is_public(*address)
        };
        let usable: Vec<SocketAddr> = found
            .iter()
            .filter(|address| family_fits(address) && may_dial(address))
            .map(|address| SocketAddr::new(*address, host.port))
            .collect();
        if usable.is_empty() {
            let problem = dial::no_address_reason(&self.shown_name(host), &found, family_fits, may_dial);
            return Err(ConnectFailure::untried(&self.shown_name(host), problem, BounceClass::Dns));
        }
        Ok(usable)
    }

    fn signals(&self) -> Signals {
        Signals { stop: self.stop.clone(), shortage: self.shortage.clone() }
    }

    /// The address for delivery records; `None` if senders may not see it.
    fn shown_address(&self, address: IpAddr) -> Option<IpAddr> {
        dial::may_show(address, self.allow_private_destinations).then_some(address)
    }

    /// The host's name for delivery records.
    fn shown_name(&self, host: &RouteHost) -> String {
        match host.name.parse::<IpAddr>() {
            Ok(address) if self.shown_address(address).is_none() => "the smart host".to_owned(),
            _ => host.name.clone(),
        }
    }

    async fn connect_to(
        &self,
        route: &Route,
        host: &RouteHost,
        address: SocketAddr,
        source: &Source,
        progress: &watch::Sender<ConnectProgress>,
    ) -> Result<Connection, ConnectFailure> {
        let terms = self.tls_terms(route, host);
        let mode = terms.mode;
        match self.try_once(route, host, address, source, terms, progress).await {
            // Opportunistic TLS accepts any certificate, so the handshake itself is broken: continue without TLS.
            Err(failure) if failure.tls_handshake_failed && mode == TlsMode::Opportunistic => {
                tracing::debug!(
                    mx = host.name,
                    problem = failure.connect_failure.problem,
                    "TLS failed; trying without"
                );
                let mut connection = self
                    .try_once(route, host, address, source, self.plain(), progress)
                    .await
                    .map_err(|mut plain| {
                        plain.connect_failure.peer.without_tls =
                            Some(failure.connect_failure.problem.clone());
                        plain.connect_failure
                    })?;
                connection.peer.without_tls = Some(failure.connect_failure.problem);
                Ok(connection)
            }
            other => other.map_err(|failure| failure.connect_failure),
        }
    }

    /// TLS requirements of this host: those of its usable TLSA records, otherwise those of the route. If the host has
    /// only unusable records and the route requires nothing, TLS with any certificate is required.
    fn tls_terms(&self, route: &Route, host: &RouteHost) -> TlsTerms {
        let terms = |mode, tls, policy| TlsTerms { mode, tls, policy };
        match (&host.dane, &route.security) {
            (Dane::Certificate(dane), _) => terms(TlsMode::Required, Arc::clone(&dane.config), Some("dane")),
            (_, Security::Verified { demanded_by, .. }) => {
                terms(TlsMode::Required, self.tls.verified(), Some(demanded_by.policy_name()))
            }
            (_, Security::Implicit) => terms(TlsMode::Implicit, self.tls.verified(), Some("smarthost")),
            (Dane::Encryption | Dane::Unknown(_), _) => {
                terms(TlsMode::Required, self.tls.opportunistic(), Some("dane_encrypt"))
            }
            (Dane::Nothing, Security::Opportunistic) => {
                terms(TlsMode::Opportunistic, self.tls.opportunistic(), None)
            }
            (Dane::Nothing, Security::Plain) => self.plain(),
        }
    }

    fn plain(&self) -> TlsTerms {
        TlsTerms { mode: TlsMode::Never, tls: self.tls.opportunistic(), policy: None }
    }

    async fn try_once(
        &self,
        route: &Route,
        host: &RouteHost,
        address: SocketAddr,
        source: &Source,
        terms: TlsTerms,
        progress: &watch::Sender<ConnectProgress>,
    ) -> Result<Connection, TryFailure> {
        let mode = terms.mode;
        let name = self.shown_name(host);
        let mut peer = Peer {
            mx: name.clone(),
            remote_ip: self.shown_address(address.ip()),
            source_ip: source.address.and_then(|own| self.shown_address(own)),
            tls: None,
            tls_policy: terms.policy.map(Cow::Borrowed),
            without_tls: None,
            log_id: dial::log_id(),
        };
        let at = peer.remote_ip.map(|_| format!(" ({address})")).unwrap_or_default();
        let unreachable = |peer: &Peer, problem: String, class| TryFailure {
            tls_handshake_failed: false,
            connect_failure: ConnectFailure {
                peer: peer.clone(),
                problem,
                class,
                reply: None,
                was_tried: true,
                was_dns_busy: false,
                transcript: String::new(),
                was_stopped: false,
            },
        };
        let from = source.address;
        let mut stop = self.stop.clone();
        let begun = Instant::now();
        progress.send_if_modified(|progress| progress.raise(ConnectProgress::Dialling));
        let connecting = timeout(self.connect_timeout, stream::connect(address, from));
        let socket = tokio::select! {
            connected = connecting => match connected {
                Ok(Ok(socket)) => socket,
                Ok(Err(DialError::Local(error))) => {
                    let own = peer.source_ip.map(|own| format!(" {own}")).unwrap_or_default();
                    let from = from.map(|_| format!(" from its source address{own}")).unwrap_or_default();
                    let problem = format!("this machine cannot open a connection{from}: {error}");
                    let mut failure = unreachable(&peer, problem, BounceClass::Other);
                    failure.connect_failure.was_tried = false;
                    return Err(failure);
                }
                Ok(Err(DialError::Remote(error))) => {
                    let problem = format!("connecting to {name}{at} failed: {error}");
                    return Err(unreachable(&peer, problem, dial::class_of(&error)));
                }
                Err(_) => {
                    let problem = format!("connecting to {name}{at} took too long");
                    return Err(unreachable(&peer, problem, BounceClass::Timeout));
                }
            },
            Ok(_) = stop.wait_for(|stop| *stop) => {
                let connect_failure = ConnectFailure::stopped(&name);
                return Err(TryFailure { tls_handshake_failed: false, connect_failure });
            }
        };
        let own = socket.local_addr().ok().map(|local| local.ip());
        peer.source_ip = own.and_then(|own| self.shown_address(own));
        let helo = DomainName::parse(&source.helo)
            .map_or_else(|_| HeloName::from(own.unwrap_or(IpAddr::from([127, 0, 0, 1]))), HeloName::from);
        let mut config = ClientConfig::new(helo);
        config.tls = mode;
        config.credentials = self.credentials.clone().filter(|_| route.kind == RouteKind::SmartHost);
        let session = ClientSession::new(config);
        let timeouts = match route.kind {
            RouteKind::Simulator => PhaseTimeouts { reply: Duration::from_secs(2), ..self.timeouts },
            _ => self.timeouts,
        };
        let server_name = match &host.dane {
            Dane::Certificate(dane) => &dane.server_name,
            _ => &host.name,
        };
        let (socket, signals) = (Box::new(socket), self.signals());
        let mut connection =
            Connection::new(session, socket, server_name, peer, terms.tls, timeouts, signals);
        if let Some(answer) = dns_answer(route, host, connection.peer.remote_ip) {
            connection.note_dns(answer);
        }
        connection.note(&format!("connected{at} after {} ms", begun.elapsed().as_millis()));
        match connection.open(mode, progress).await {
            Ok(()) => {
                connection.note(&format!("ready for mail after {} ms", begun.elapsed().as_millis()));
                if mode == TlsMode::Opportunistic && connection.was_starttls_refused() {
                    connection.peer.without_tls = Some(format!("{name} offers STARTTLS and refused it"));
                }
                Ok(connection)
            }
            Err(closed) => Err(opening_failure(&mut connection, &closed, route, host)),
        }
    }
}

/// The DNS answer that led to a host, in one line.
fn dns_answer(route: &Route, host: &RouteHost, address: Option<IpAddr>) -> Option<String> {
    const HOSTS_SHOWN_MAX: usize = 5;
    if route.kind != RouteKind::Mx {
        return None;
    }
    let shown = route.hosts.iter().take(HOSTS_SHOWN_MAX);
    let hosts: Vec<String> = shown.map(|host| format!("{} {}", host.preference, host.name)).collect();
    let more = if route.hosts.len() > HOSTS_SHOWN_MAX { " …" } else { "" };
    let address = address.map(|address| format!("; {} is {address}", host.name)).unwrap_or_default();
    let tlsa = match &host.dane {
        Dane::Nothing | Dane::Unknown(_) => String::new(),
        Dane::Certificate(dane) => {
            format!("; DANE: {} usable TLSA records at {}", dane.usable, dane.server_name)
        }
        Dane::Encryption => "; DANE: TLSA records, none usable: TLS with any certificate".to_owned(),
    };
    Some(format!("DNS: MX {}{more}{address}{tlsa}", hosts.join(", ")))
}

/// When dropped, records the address at which an attempt was aborted.
struct AbortRecorder<'a, 'r> {
    connector: &'a Connector,
    order: &'a host_order::AttemptOrder<'r>,
    /// Host, address index and number of the host's addresses; `None` once the address has answered or failed.
    at: Option<(&'r RouteHost, usize, usize)>,
}

impl Drop for AbortRecorder<'_, '_> {
    fn drop(&mut self) {
        if let Some((host, index, addresses)) = self.at {
            self.connector.host_order.on_aborted(self.order, host, index, addresses);
        }
    }
}

/// TLS requirements of one connection.
struct TlsTerms {
    mode: TlsMode,
    tls: Arc<rustls::ClientConfig>,
    /// Value of `tls_policy` in delivery records.
    policy: Option<&'static str>,
}

/// A failed connection to one address.
struct TryFailure {
    /// Whether the TLS handshake failed.
    tls_handshake_failed: bool,
    connect_failure: ConnectFailure,
}

/// The TLS requirement of the host, and its origin.
fn tls_demand_of(route: &Route, host: &RouteHost) -> Option<String> {
    match (&host.dane, &route.security) {
        (Dane::Certificate(_), _) => {
            Some("TLS with a certificate that its TLSA records vouch for is demanded by DANE".to_owned())
        }
        (_, Security::Verified { demanded_by, .. }) => {
            Some(format!("TLS with a good certificate is demanded by {}", demanded_by.words()))
        }
        (Dane::Encryption, _) => Some("TLS is demanded by DANE".to_owned()),
        _ => None,
    }
}

fn opening_failure(
    connection: &mut Connection,
    closed: &Closed,
    route: &Route,
    host: &RouteHost,
) -> TryFailure {
    let (mut problem, class) = explain(closed, connection.tls_problem());
    if let Some(why) = connection.why_given_up_early() {
        problem = format!("{problem}; {why}");
    }
    let lacks_tls =
        matches!(closed, Closed::TlsNotOffered | Closed::Ended { cause: EndCause::TlsFailed, .. });
    if lacks_tls && let Some(demand) = tls_demand_of(route, host) {
        problem = format!("{problem} ({demand})");
    }
    let reply = match closed {
        Closed::ByServer { reply, .. } | Closed::Refused { reply, .. } => Some(reply.clone()),
        _ => None,
    };
    let cause = match closed {
        Closed::Ended { cause, .. } => Some(*cause),
        _ => None,
    };
    TryFailure {
        tls_handshake_failed: cause == Some(EndCause::TlsFailed),
        connect_failure: ConnectFailure {
            problem: format!("{}: {problem}", connection.peer.mx),
            class,
            reply,
            was_tried: true,
            was_dns_busy: false,
            transcript: connection.take_transcript().to_string(),
            was_stopped: cause == Some(EndCause::Stopped),
            peer: connection.peer.clone(),
        },
    }
}
