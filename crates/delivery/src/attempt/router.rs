//! Plan: finds the route for a recipient's domain. Mail to the simulator, the dev inbox or a smart host needs no MX
//! look-up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{BounceClass, Clock, DomainName, ServerId, Timestamp};
use postroad_net::dane::DaneTls;
use postroad_net::dns::{Dns, HostTlsa, MxFailure, MxHost, MxPlan};
use postroad_net::mta_sts::{MtaSts, StsVerdict};

use crate::providers::{Provider, Providers};
use crate::route::{Dane, Route, RouteHost, RouteKind, Security, TlsDemand};
use crate::schedule::LaneKey;
use crate::settings::{SmartHost, SmartHostTls};

/// Validity of routes that do not come from the DNS.
const FIXED_ROUTE_VALID_FOR: Duration = Duration::from_hours(1);
/// Validity of a route whose domain may have an MTA-STS policy that could not be looked up.
const STS_UNKNOWN_VALID_FOR: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) dns: Dns,
    pub(crate) sts: MtaSts,
    pub(crate) providers: Arc<Providers>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hostname: DomainName,
    pub(crate) smtp_port: u16,
    pub(crate) smart_host: Option<SmartHost>,
    /// The dev inbox; if set, it gets all mail except the simulator's.
    pub(crate) inbox: Option<SocketAddr>,
    pub(crate) simulator_domain: DomainName,
    /// `None` if the simulator is off.
    pub(crate) simulator_address: Option<SocketAddr>,
}

/// No route to a domain.
#[derive(Debug, Clone)]
pub(crate) struct RouteFailure {
    pub(crate) problem: String,
    pub(crate) class: BounceClass,
    /// The domain's DNS records, or this service's settings, leave no host to use. Waiting messages are recorded now:
    /// as failed, or as delayed if the class is `dns`. If false, the messages wait for the next look-up.
    pub(crate) is_final: bool,
    /// A look-up was not made, because too many are waiting.
    pub(crate) is_busy: bool,
}

impl Router {
    pub(crate) fn is_simulator(&self, domain: &DomainName) -> bool {
        *domain == self.simulator_domain
    }

    /// The route of a lane. `server` is the server whose mail is waiting.
    pub(crate) async fn route(&self, key: &LaneKey, server: ServerId) -> Result<Route, RouteFailure> {
        let now = self.clock.now();
        if self.is_simulator(&key.domain) {
            // Mail to simulated recipients never leaves the machine, whether the simulator runs or not.
            return match self.simulator_address {
                Some(address) => Ok(self.in_process_route("simulator", RouteKind::Simulator, address, now)),
                None => Err(RouteFailure {
                    problem: "the simulator is off; `simulator = \"on\"` in [delivery] turns it on"
                        .to_owned(),
                    class: BounceClass::BadDomain,
                    is_final: true,
                    is_busy: false,
                }),
            };
        }
        if let Some(inbox) = self.inbox {
            return Ok(self.in_process_route("inbox", RouteKind::Inbox, inbox, now));
        }
        match &self.smart_host {
            Some(smart_host) => Ok(self.smart_host_route(smart_host, key, now)),
            None => self.mx_route(key, server, now).await,
        }
    }

    fn smart_host_route(&self, smart_host: &SmartHost, key: &LaneKey, now: Timestamp) -> Route {
        let security = match smart_host.tls {
            SmartHostTls::Implicit => Security::Implicit,
            SmartHostTls::Required => {
                Security::Verified { demanded_by: TlsDemand::SmartHostSetting, policy: None }
            }
            // Credentials must not be sent to a man in the middle.
            SmartHostTls::Opportunistic if smart_host.credentials.is_some() && !smart_host.is_local() => {
                Security::Verified { demanded_by: TlsDemand::SmartHostPassword, policy: None }
            }
            _ if key.require_tls => Security::Verified { demanded_by: TlsDemand::Sender, policy: None },
            SmartHostTls::Opportunistic => Security::Opportunistic,
            SmartHostTls::Off => Security::Plain,
        };
        let site = format!("{}:{}", smart_host.host, smart_host.port);
        let has_dane = false;
        Route {
            secured_site: secured_site_name(&site, &security, has_dane),
            provider: site.as_str().into(),
            site: site.into(),
            rules: self.providers.smart_host(smart_host.connections_max, smart_host.rate),
            hosts: vec![RouteHost {
                name: smart_host.host.clone(),
                preference: 0,
                address: None,
                port: smart_host.port,
                dane: Dane::Nothing,
            }],
            security,
            kind: RouteKind::SmartHost,
            is_exempt: false,
            valid_until: now.plus(FIXED_ROUTE_VALID_FOR),
        }
    }

    /// The route to a host in this process.
    fn in_process_route(&self, name: &str, kind: RouteKind, address: SocketAddr, now: Timestamp) -> Route {
        let rules = self.providers.in_process();
        Route {
            secured_site: name.into(),
            site: name.into(),
            provider: rules.name.as_str().into(),
            rules,
            hosts: vec![RouteHost {
                name: format!("{name}.localhost"),
                preference: 0,
                address: Some(address),
                port: address.port(),
                dane: Dane::Nothing,
            }],
            security: Security::Opportunistic,
            kind,
            is_exempt: kind == RouteKind::Simulator,
            valid_until: now.plus(FIXED_ROUTE_VALID_FOR),
        }
    }

    async fn mx_route(&self, key: &LaneKey, server: ServerId, now: Timestamp) -> Result<Route, RouteFailure> {
        let plan =
            self.dns.for_server(server).mx_plan(&key.domain).await.map_err(|failure| RouteFailure {
                problem: failure.to_string(),
                is_final: failure.is_permanent(),
                is_busy: failure == MxFailure::Busy,
                class: match failure {
                    MxFailure::Temporary(_) | MxFailure::Busy => BounceClass::Dns,
                    _ => BounceClass::BadDomain,
                },
            })?;
        let (policy, sts_valid_for) = match self.sts.policy(&key.domain, server, now).await {
            StsVerdict::Enforce(policy) => (Some(policy), Duration::MAX),
            // All messages of the domain use this route, so it expires soon and the policy is looked up again.
            StsVerdict::Unknown => (None, STS_UNKNOWN_VALID_FOR),
            StsVerdict::None | StsVerdict::Testing(_) => (None, Duration::MAX),
        };
        let hosts = without_ourselves(&plan.hosts, self.hostname.as_str());
        if hosts.is_empty() {
            return Err(RouteFailure {
                problem: format!("mail for {} comes back to this host: its MX record names us", key.domain),
                class: BounceClass::Dns,
                is_final: true,
                is_busy: false,
            });
        }
        let security = match (policy, key.require_tls) {
            (Some(policy), _) => Security::Verified { demanded_by: TlsDemand::MtaSts, policy: Some(policy) },
            (None, true) => Security::Verified { demanded_by: TlsDemand::Sender, policy: None },
            (None, false) => Security::Opportunistic,
        };
        let site = plan.site_name();
        let rules = self.providers.find(&hosts[0].name);
        let (dane, dane_valid_for) = self.dane_of_hosts(&plan, &hosts, server).await?;
        let has_dane = dane.iter().any(|dane| !dane.is_nothing());
        Ok(Route {
            secured_site: secured_site_name(&site, &security, has_dane),
            provider: provider_name(rules, &site),
            site: site.into(),
            rules: Arc::clone(rules),
            hosts: hosts
                .iter()
                .zip(dane)
                .map(|(host, dane)| RouteHost {
                    name: host.name.clone(),
                    preference: host.preference,
                    address: None,
                    port: self.smtp_port,
                    dane,
                })
                .collect(),
            security,
            kind: RouteKind::Mx,
            is_exempt: false,
            valid_until: now.plus(plan.valid_for.min(dane_valid_for).min(sts_valid_for)),
        })
    }

    /// DANE requirements of each host, and how long they are valid. DANE applies only if DNSSEC secures the domain's MX
    /// records too (RFC 7672 2.2.1). Without a trusted resolver there are no requirements, and no query is made.
    async fn dane_of_hosts(
        &self,
        plan: &MxPlan,
        hosts: &[&MxHost],
        server: ServerId,
    ) -> Result<(Vec<Dane>, Duration), RouteFailure> {
        if !plan.is_secure {
            return Ok((vec![Dane::Nothing; hosts.len()], plan.valid_for));
        }
        let dns = self.dns.for_server(server);
        let answers = hosts.iter().map(|host| dns.tlsa(&host.name, self.smtp_port));
        let answers = futures_util::future::join_all(answers).await;
        let valid_for = answers.iter().map(|answer| answer.valid_for).min().unwrap_or(plan.valid_for);
        if answers.iter().any(|answer| answer.tlsa == HostTlsa::Busy) {
            return Err(RouteFailure {
                problem:
                    "the TLSA records of the domain's mail servers were not looked up: too many look-ups wait"
                        .to_owned(),
                class: BounceClass::Dns,
                is_final: false,
                is_busy: true,
            });
        }
        let found = hosts.iter().zip(answers).map(|(host, answer)| dane_of_host(&host.name, answer.tlsa));
        Ok((found.collect(), valid_for))
    }
}

fn dane_of_host(host: &str, tlsa: HostTlsa) -> Dane {
    match tlsa {
        HostTlsa::Absent => Dane::Nothing,
        HostTlsa::Secure { base, records } => match DaneTls::new(&base, host, &records) {
            Some(tls) => Dane::Certificate(Arc::new(tls)),
            None => Dane::Encryption,
        },
        HostTlsa::Unknown(problem) => Dane::Unknown(problem),
        HostTlsa::Busy => Dane::Unknown("too many look-ups wait".to_owned()),
    }
}

/// Name under which the provider's limits are counted. A site without a known provider counts as its own provider.
fn provider_name(rules: &Provider, site: &str) -> Arc<str> {
    if rules.is_default() { site.into() } else { rules.name.as_str().into() }
}

/// Site name including the required security: a connection without TLS must not carry mail that needs it. Mail of a
/// domain secured by DNSSEC must not use a connection made for a domain that is not.
fn secured_site_name(site: &str, security: &Security, has_dane: bool) -> Arc<str> {
    let dane = if has_dane { " with DANE" } else { "" };
    match security {
        Security::Opportunistic | Security::Plain | Security::Implicit => format!("{site}{dane}").into(),
        // Two policies may allow different hosts of the same site.
        Security::Verified { policy: Some(policy), .. } => {
            format!("{site}{dane} with TLS for {}", policy.mx.join(" ")).into()
        }
        Security::Verified { policy: None, .. } => format!("{site}{dane} with TLS").into(),
    }
}

/// RFC 5321 5.1: if our own name is in the list, only more preferred hosts count; otherwise mail would loop.
fn without_ourselves<'a>(hosts: &'a [MxHost], hostname: &str) -> Vec<&'a MxHost> {
    let own = hosts.iter().filter(|host| host.name == hostname).map(|host| host.preference).min();
    hosts.iter().filter(|host| own.is_none_or(|own| host.preference < own)).collect()
}
