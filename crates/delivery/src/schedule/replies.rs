//! Applies receivers' replies at their scope: connection, recipient's domain, site or provider.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use postroad_mail::{ReplyPhase, Signal};
use postroad_model::{DomainName, ServerId, Timestamp};

use super::block::BlockCause;
use super::{Greylisting, LaneKey, Schedule};
use crate::pacing::{Evidence, Reason};
use crate::route::Route;

/// Refusals in a row that stop a domain.
const DOMAIN_REFUSALS: u32 = 3;
/// Evidence that stops a whole site: `SITE_DOMAINS` domains refused mail of `SITE_SERVERS` servers. Or
/// `SITE_DOMAINS_OF_ONE_SERVER` domains refused one server's mail, the last one for reputation, and no other server has
/// mail for the site (`one_server.rs`).
const SITE_DOMAINS: usize = 3;
const SITE_SERVERS: usize = 2;
const SITE_DOMAINS_OF_ONE_SERVER: usize = 5;
/// Evidence that applies to a whole provider: refusals by this many sites, or for the address's reputation by this many
/// recipient domains. In both cases mail of at least `SITE_SERVERS` servers was refused.
const PROVIDER_SITES: usize = 3;
const PROVIDER_DOMAINS: usize = 6;
/// Evidence that applies to a whole provider although it is from one server: refusals by this many domains, while no
/// other server has mail for the provider.
const PROVIDER_DOMAINS_OF_ONE_SERVER: usize = 12;
/// Replies "too fast" about this many domains, with nothing accepted in between, apply to the site.
const TOO_FAST_DOMAINS: usize = 2;
/// Refusals in a row that stop a source address at a site, if the domain accepts mail from another address of the pool.
const ADDRESS_REFUSALS: u32 = 2;
/// How long an acceptance from another address of the pool counts.
const OTHER_ADDRESS_ACCEPTED_AGE_MAX: Duration = Duration::from_hours(1);
/// Greylisted messages whose retry is brought forward still wait this many times the estimated greylisting time.
const GREYLIST_MARGIN: f64 = 1.02;

/// A reply that refuses a message or a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalReply<'a> {
    /// Lane of the message that was refused, or that the refused connection was for.
    pub(crate) lane: &'a LaneKey,
    pub(crate) server: ServerId,
    pub(crate) greylisting: Option<Greylisting>,
    /// The command that was refused.
    pub(crate) phase: ReplyPhase,
    /// Effect on other messages.
    pub(crate) signal: Option<Signal>,
    /// The receiver's reply.
    pub(crate) reason: &'a Reason,
}

/// Consequences of a refusal.
#[derive(Debug, Default)]
pub(crate) struct Reaction {
    /// Remaining wait, if the receiver was greylisting and the wait that it requires is known.
    pub(crate) retry_after: Option<Duration>,
    /// Conclusion about the receiver, without its words, so that anyone may read it.
    pub(crate) conclusion: Option<String>,
}

impl Schedule {
    /// A message was accepted: more connections may be tried, and paused messages continue.
    pub(crate) fn on_accepted(&mut self, path_id: usize, lane: &LaneKey, server: ServerId, now: Timestamp) {
        let path = &mut self.paths[path_id];
        path.ramp = path.ramp.saturating_add(1).min(1_000);
        let (queue, source_site_id, source) = (path.queue, path.source_site, path.source);
        self.note_reply(path_id, now);
        let route = Arc::clone(&self.queues[queue].route);
        if route.is_exempt {
            return self.pump(queue, now);
        }
        let source_site = &mut self.source_sites[source_site_id];
        let was_paused = source_site.rate.is_paused();
        source_site.rate.on_accepted(now);
        source_site.refusing_domains.clear();
        source_site.too_fast_domains.clear();
        source_site.domains.note(&lane.domain);
        let was_stopped = source_site.standstill.end();
        if was_stopped {
            source_site.rate.begin_slowly(now);
        }
        let source_provider = self.source_provider(source, &route);
        let mut provider_was_stopped = false;
        if source_provider.has_several_sites {
            provider_was_stopped = source_provider.standstill.end() || source_provider.rate.is_paused();
            source_provider.rate.on_accepted(now);
            source_provider.too_fast_sites.clear();
            source_provider.refusing_sites.clear();
            source_provider.refusing_domains.clear();
        }
        self.clear_trouble(lane, server, now);
        if self.queues[queue].paths.len() > 1
            && let Some(lane) = self.lane_ids.get(lane)
        {
            self.lanes[*lane].accepted_from = Some((source, now));
        }
        if provider_was_stopped {
            self.pump_provider(&route.provider, now);
        } else if was_stopped || was_paused {
            self.pump_source_site(source_site_id, now);
        } else {
            self.pump(queue, now);
        }
    }

    /// A message was refused. Call this also if the refusal has no effect on other messages, so that a probe gets its
    /// reply.
    pub(crate) fn on_refused(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) -> Reaction {
        let source_site_id = self.paths[path_id].source_site;
        self.note_reply(path_id, now);
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        if route.is_exempt {
            return Reaction::default();
        }
        let is_about_domain = reply.signal == Some(Signal::TooFast) && self.is_about_domain(path_id, reply);
        let provider_was_stopped = self.on_provider_reply(path_id, &route, reply.signal, now);
        let source_site = &mut self.source_sites[source_site_id];
        source_site.domains.note(&reply.lane.domain);
        let mut retry_after = None;
        match reply.signal {
            Some(Signal::TooFast) if is_about_domain => self.on_domain_too_fast(path_id, reply, now),
            Some(Signal::TooFast) => self.on_too_fast(path_id, reply, now),
            Some(Signal::TooManyConnections) => {
                let others = source_site.open.saturating_sub(1);
                source_site.connection_limit.on_refused(others, reply.reason, now);
                source_site.evidence_at = Some(now);
                source_site.rate.on_other_reply(now);
            }
            Some(Signal::Reputation | Signal::Content | Signal::RecipientPolicy) => {
                source_site.rate.on_other_reply(now);
                self.on_policy_refusal(path_id, reply, now);
            }
            Some(Signal::ConnectionUsedUp | Signal::Greylisted) | None => {
                if reply.signal == Some(Signal::Greylisted) {
                    retry_after = match reply.greylisting {
                        None => source_site.greylist.pause(&self.pauses),
                        Some(greylisting) => {
                            source_site.evidence_at = Some(now);
                            if let Some(wait) = greylisting.planned_wait(now) {
                                source_site.greylist.refused_after(wait);
                            }
                            let greylist_time = source_site.greylist.estimate(&self.pauses);
                            greylist_time
                                .and_then(|time| time.checked_sub(now.since(greylisting.first_refused_at)))
                        }
                    };
                }
                source_site.rate.on_other_reply(now);
                source_site.standstill.end();
                self.clear_trouble(reply.lane, reply.server, now);
            }
        }
        if provider_was_stopped {
            self.pump_provider(&route.provider, now);
        }
        self.pump_source_site(source_site_id, now);
        let conclusion = self.conclusion(path_id, reply, is_about_domain, now);
        Reaction { retry_after, conclusion }
    }

    /// A message was refused. Unless the reply is "too fast", it may end a pause or standstill of the whole provider.
    /// Returns whether it ended one.
    fn on_provider_reply(
        &mut self,
        path_id: usize,
        route: &Route,
        signal: Option<Signal>,
        now: Timestamp,
    ) -> bool {
        let source_provider = self.source_provider(self.paths[path_id].source, route);
        if !source_provider.has_several_sites || signal == Some(Signal::TooFast) {
            return false;
        }
        let was_paused = source_provider.rate.is_paused();
        source_provider.rate.on_other_reply(now);
        let is_neutral = matches!(signal, Some(Signal::ConnectionUsedUp | Signal::Greylisted) | None);
        let was_stopped = is_neutral && source_provider.standstill.end();
        was_stopped || (was_paused && !source_provider.rate.is_paused())
    }

    /// Whether a reply "too fast" is about the recipient's domain, as far as one reply can say. Before RCPT TO the
    /// reply is about our address. If all mail of the site goes to one domain, the reply is about the site.
    fn is_about_domain(&self, path_id: usize, reply: RefusalReply<'_>) -> bool {
        let source_site = &self.source_sites[self.paths[path_id].source_site];
        let names_it = || reply.reason.names_domain(reply.lane.domain.as_str());
        source_site.domains.are_several()
            && match reply.phase {
                ReplyPhase::Greeting | ReplyPhase::MailFrom => false,
                ReplyPhase::Recipient => !source_site.rate.is_paused() || names_it(),
                ReplyPhase::Data => names_it(),
            }
    }

    /// Counts the refusal against the domain, which is stopped after `DOMAIN_REFUSALS` in a row. If mail to another
    /// domain of the site is refused as too fast as well, and nothing is accepted in between, slows the site instead.
    fn on_domain_too_fast(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) {
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        let domains = &mut source_site.too_fast_domains;
        domains.add(hash_of(&reply.lane.domain), reply.server, now);
        if domains.part_count() >= TOO_FAST_DOMAINS {
            domains.clear();
            return self.on_too_fast(path_id, reply, now);
        }
        source_site.rate.on_other_reply(now);
        source_site.standstill.end();
        self.on_domain_refused(reply, now);
    }

    fn on_domain_refused(&mut self, reply: RefusalReply<'_>, now: Timestamp) {
        if let Some(lane) = self.lane_ids.get(reply.lane) {
            let trouble = &mut self.lanes[*lane].trouble;
            self.troubled_lanes += usize::from(trouble.is_clear());
            trouble.on_refused(reply.server, DOMAIN_REFUSALS, reply.reason, now);
        }
    }

    /// Sentence about the consequence of this refusal, without the receiver's text, which may quote other messages.
    fn conclusion(
        &mut self,
        path_id: usize,
        reply: RefusalReply<'_>,
        is_about_domain: bool,
        now: Timestamp,
    ) -> Option<String> {
        let source = self.paths[path_id].source;
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        let stopped_mail = match reply.signal? {
            Signal::TooFast if !is_about_domain => {
                let site_rate = source_site.rate.per_minute(now);
                let source_provider = self.source_provider(source, &route);
                let per_minute = source_provider.rate.per_minute(now);
                let provider_rate = per_minute.filter(|_| source_provider.has_several_sites);
                let (receiver, per_minute) = match provider_rate {
                    Some(per_minute) => (&route.provider, per_minute),
                    None => (&route.site, site_rate?),
                };
                return Some(format!(
                    "mail to {receiver} from this address is slowed to about {per_minute:.0} messages a minute"
                ));
            }
            Signal::TooManyConnections => {
                let limit = source_site.connection_limit.known()?;
                let site = &route.site;
                return Some(format!("mail to {site} from this address uses at most {limit} connections"));
            }
            Signal::Greylisted => {
                let greylist_time = source_site.greylist.known()?;
                let site = &route.site;
                return Some(format!("{site} greylists messages for about {} s", greylist_time.as_secs()));
            }
            Signal::TooFast | Signal::Reputation | Signal::Content | Signal::RecipientPolicy => {
                let stopped_site = source_site.standstill.is_stopped().then(|| route.site.to_string());
                let source_provider = self.source_provider(source, &route);
                let stopped_provider =
                    source_provider.standstill.is_stopped().then(|| route.provider.to_string());
                let lane = self.lane_ids.get(reply.lane).map(|lane| &self.lanes[*lane]);
                let stopped_lane = lane.filter(|lane| lane.trouble.is_stopped(reply.server));
                stopped_provider
                    .or(stopped_site)
                    .map(|receiver| format!("{receiver} from this address"))
                    .or_else(|| stopped_lane.map(|lane| lane.key.domain.to_string()))?
            }
            Signal::ConnectionUsedUp => return None,
        };
        Some(format!("mail to {stopped_mail} is stopped, and one message at a time tries again"))
    }

    /// A greylisted message was accepted. Other messages that would wait longer than necessary become due earlier.
    pub(crate) fn on_greylisting_over(&mut self, path_id: usize, greylisting: Greylisting, now: Timestamp) {
        let Some(wait) = greylisting.planned_wait(now) else { return };
        let path = &self.paths[path_id];
        let (queue, source) = (path.queue, path.source);
        let source_site = &mut self.source_sites[path.source_site];
        source_site.evidence_at = Some(now);
        let greylist = &mut source_site.greylist;
        let before = greylist.estimate(&self.pauses);
        greylist.accepted_after(wait);
        let after = greylist.estimate(&self.pauses);
        let Some(greylist_time) =
            after.filter(|greylist_time| before.is_none_or(|before| *greylist_time < before))
        else {
            return;
        };
        let lanes = &self.lanes;
        self.timeline.bring_forward(|lane, entry| {
            let is_at_site = lanes[lane].queue() == Some(queue);
            let may_use_source = entry.source.is_none_or(|kept| kept == source);
            let greylisting = entry.greylisting.filter(|_| is_at_site && may_use_source)?;
            Some(greylisting.first_refused_at.plus(greylist_time.mul_f64(GREYLIST_MARGIN)))
        });
    }

    /// The greeting refused the connection. Returns whether the message only waits, because it was not offered.
    pub(crate) fn on_connection_refused(
        &mut self,
        path_id: usize,
        reply: RefusalReply<'_>,
        now: Timestamp,
    ) -> bool {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        if route.is_exempt {
            return false;
        }
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        match reply.signal {
            Some(Signal::TooManyConnections | Signal::ConnectionUsedUp) => {
                source_site.connection_limit.on_refused(source_site.open, reply.reason, now);
                source_site.evidence_at = Some(now);
            }
            Some(Signal::TooFast) => self.on_too_fast(path_id, reply, now),
            // A refusal before any recipient was named is about the whole site.
            Some(Signal::Reputation) => {
                if source_site.standstill.on_refused(1, reply.reason, now) {
                    self.note_stopped_site(path_id, reply, now);
                }
            }
            Some(Signal::Content | Signal::RecipientPolicy | Signal::Greylisted) | None => return false,
        }
        true
    }

    /// Slows the site, and also the provider if several of its sites replied "too fast".
    fn on_too_fast(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) {
        let (source_site, source) = (self.paths[path_id].source_site, self.paths[path_id].source);
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        self.source_sites[source_site].rate.on_too_fast(reply.reason, now);
        self.source_sites[source_site].evidence_at = Some(now);
        self.source_sites[source_site].standstill.end();
        let source_provider = self.source_provider(source, &route);
        if source_provider.has_several_sites {
            source_provider.too_fast_sites.add(hash_of(&route.site), reply.server, now);
            if applies_to_provider(&source_provider.too_fast_sites) {
                source_provider.rate.on_too_fast(reply.reason, now);
                source_provider.too_fast_sites.clear();
            }
        }
    }

    /// Refused for reputation, content or policy. Stops the domain first; wider scopes only on more evidence.
    fn on_policy_refusal(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) {
        let refuses_address =
            reply.signal == Some(Signal::Reputation) && self.is_about_address(path_id, reply, now);
        if !refuses_address {
            self.on_domain_refused(reply, now);
        }
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        if refuses_address && source_site.standstill.on_refused(ADDRESS_REFUSALS, reply.reason, now) {
            self.note_stopped_site(path_id, reply, now);
        }
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        let domains = &mut source_site.refusing_domains;
        domains.add(hash_of(&reply.lane.domain), reply.server, now);
        let by_several = domains.server_count() >= SITE_SERVERS && domains.part_count() >= SITE_DOMAINS;
        let by_one = reply.signal == Some(Signal::Reputation)
            && domains.part_count() >= SITE_DOMAINS_OF_ONE_SERVER
            && !source_site.paths.iter().any(|path| {
                let queue = &self.queues[self.paths[*path].queue];
                queue.waiting.count() > queue.waiting.count_of(reply.server)
            });
        let is_stopped = source_site.standstill.is_stopped() && !refuses_address;
        source_site.standstill.note_server(reply.server);
        if (by_several || by_one || is_stopped) && source_site.standstill.on_refused(1, reply.reason, now) {
            if !by_several {
                source_site.standstill.set_only_server(reply.server);
            }
            self.note_stopped_site(path_id, reply, now);
        }
        if reply.signal == Some(Signal::Reputation) {
            self.on_policy_refusal_at_provider(path_id, reply, now);
        }
    }

    /// Whether the domain lately accepted mail from another address of the pool, and that address can send now.
    fn is_about_address(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) -> bool {
        let lane = self.lane_ids.get(reply.lane).map(|lane| &self.lanes[*lane]);
        let Some((other, at)) = lane.and_then(|lane| lane.accepted_from) else { return false };
        let path = &self.paths[path_id];
        if other == path.source || now.since(at) > OTHER_ADDRESS_ACCEPTED_AGE_MAX {
            return false;
        }
        let paths = &self.queues[path.queue].paths;
        let is_of_other = |path: &usize| self.paths[*path].source == other && !self.paths[*path].retired;
        let found = paths.iter().copied().find(is_of_other);
        found.is_some_and(|other| {
            let block = self.path_block(other, now);
            block.is_none_or(|block| {
                matches!(block.cause, BlockCause::TooFast { .. } | BlockCause::ProviderRate { .. })
            })
        })
    }

    /// Many domains of a provider have their own site, so refusals by one say nothing about the others. The refusal
    /// applies to the provider if several domains refuse the address for several servers, and none accepts anything in
    /// between. More domains are enough for one server, if no other server has mail for the provider.
    fn on_policy_refusal_at_provider(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) {
        let source = self.paths[path_id].source;
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let source_provider = self.source_provider(source, &route);
        if !source_provider.has_several_sites {
            return;
        }
        let domains = &mut source_provider.refusing_domains;
        domains.add(hash_of(&reply.lane.domain), reply.server, now);
        let by_several = domains.part_count() >= PROVIDER_DOMAINS && domains.server_count() >= SITE_SERVERS;
        let by_one = domains.part_count() >= PROVIDER_DOMAINS_OF_ONE_SERVER;
        let is_stopped = source_provider.standstill.is_stopped();
        source_provider.standstill.note_server(reply.server);
        if by_several
            || is_stopped
            || (by_one && self.no_other_server_waits_at(&route.provider, reply.server))
        {
            let standstill = &mut self.source_provider(source, &route).standstill;
            if standstill.on_refused(1, reply.reason, now) && !by_several {
                standstill.set_only_server(reply.server);
            }
        }
    }

    /// Whether no other server has mail waiting for the provider.
    fn no_other_server_waits_at(&self, provider: &str, server: ServerId) -> bool {
        let mut of_provider = self.queues.iter().filter(|(_, queue)| *queue.route.provider == *provider);
        of_provider.all(|(_, queue)| queue.waiting.count() == queue.waiting.count_of(server))
    }

    /// Counts a site that has just come to a standstill as evidence against its provider.
    fn note_stopped_site(&mut self, path_id: usize, reply: RefusalReply<'_>, now: Timestamp) {
        let source = self.paths[path_id].source;
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let source_provider = self.source_provider(source, &route);
        if source_provider.has_several_sites {
            source_provider.refusing_sites.add(hash_of(&route.site), reply.server, now);
            if applies_to_provider(&source_provider.refusing_sites) {
                source_provider.standstill.on_refused(1, reply.reason, now);
            }
        }
    }

    fn clear_trouble(&mut self, key: &LaneKey, server: ServerId, now: Timestamp) {
        if self.troubled_lanes == 0 {
            return;
        }
        let Some(lane_id) = self.lane_ids.get(key).copied() else { return };
        let trouble = &mut self.lanes[lane_id].trouble;
        let was_clear = trouble.is_clear();
        let was_stopped = trouble.end(server);
        self.troubled_lanes -= usize::from(!was_clear && trouble.is_clear());
        if was_stopped {
            self.wake_lane(lane_id, now);
        }
    }

    fn pump_source_site(&mut self, source_site: usize, now: Timestamp) {
        for path in self.source_sites[source_site].paths.clone() {
            let queue = self.paths[path].queue;
            self.pump(queue, now);
        }
    }

    fn pump_provider(&mut self, provider: &str, now: Timestamp) {
        let of_provider = self.queues.iter().filter(|(_, queue)| *queue.route.provider == *provider);
        for queue in of_provider.map(|(id, _)| id).collect::<Vec<_>>() {
            self.pump(queue, now);
        }
    }
}

/// Whether the mail of a site goes to one domain or to several.
#[derive(Debug, Default)]
pub(super) struct SeenDomains {
    first: Option<u64>,
    are_several: bool,
}

impl SeenDomains {
    fn note(&mut self, domain: &DomainName) {
        if !self.are_several {
            let domain = hash_of(domain);
            self.are_several = *self.first.get_or_insert(domain) != domain;
        }
    }

    fn are_several(&self) -> bool {
        self.are_several
    }
}

/// Whether enough sites refused mail of several servers to conclude that the whole provider does.
fn applies_to_provider(sites: &Evidence) -> bool {
    sites.part_count() >= PROVIDER_SITES && sites.server_count() >= SITE_SERVERS
}

fn hash_of(name: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
