//! The order in which a site's hosts are tried: by preference; hosts of equal preference rotate. If an attempt stopped
//! early at dead hosts, the next attempt continues from there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::route::RouteHost;

/// Maximum number of sites whose rotation is remembered. A forgotten site begins again at a random one of its most
/// preferred hosts.
const SITES_MAX: usize = 10_000;
/// After this long without a new dead host, the preferred hosts are tried first again. Longer than the first three
/// pauses of the default retry schedule together.
const RESUME_FOR: Duration = Duration::from_mins(20);

/// Rotations of all sites, shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct HostOrder {
    sites: Mutex<HashMap<Arc<str>, SiteRotation>>,
}

#[derive(Debug)]
struct SiteRotation {
    /// Counts attempts; decides which of the hosts with equal preference comes first.
    rotation: usize,
    resume: Option<Resume>,
}

/// Position at which the next attempt continues.
#[derive(Debug, Clone)]
struct Resume {
    host: String,
    /// Index into the addresses of the host.
    address: usize,
    /// Rotation of the stopped attempt; the next attempt has the same one, so that its hosts are in the same order.
    rotation: usize,
    until: Instant,
}

/// The order of one attempt.
#[derive(Debug)]
pub(crate) struct AttemptOrder<'r> {
    site: &'r Arc<str>,
    rotation: usize,
    is_resumed: bool,
    /// Each host with the index of the address to begin with.
    pub(crate) hosts: Vec<(&'r RouteHost, usize)>,
}

impl HostOrder {
    /// Begins an attempt. Hosts of equal preference rotate (RFC 5321 5.1 asks to spread the load among them).
    pub(crate) fn begin<'r>(&self, site: &'r Arc<str>, hosts: &'r [RouteHost]) -> AttemptOrder<'r> {
        let mut sites = self.sites();
        if !sites.contains_key(site)
            && sites.len() >= SITES_MAX
            && let Some(any) = sites.keys().next().cloned()
        {
            sites.remove(&any);
        }
        // Nodes and restarts must not all begin with the same host.
        let new = || SiteRotation { rotation: usize::from(rand::random::<u16>()), resume: None };
        let site_rotation = sites.entry(Arc::clone(site)).or_insert_with(new);
        site_rotation.resume.take_if(|resume| Instant::now() >= resume.until);
        let rotation = site_rotation.resume.as_ref().map_or(site_rotation.rotation, |resume| resume.rotation);
        site_rotation.rotation = site_rotation.rotation.wrapping_add(1);
        let mut ordered: Vec<(&RouteHost, usize)> = hosts.iter().map(|host| (host, 0)).collect();
        ordered.sort_by_key(|(host, _)| host.preference);
        for equals in ordered.chunk_by_mut(|(one, _), (next, _)| one.preference == next.preference) {
            let len = equals.len();
            equals.rotate_left(rotation % len);
        }
        let resumed = site_rotation.resume.as_ref().and_then(|resume| {
            let index = ordered.iter().position(|(host, _)| host.name == resume.host)?;
            Some((index, resume.address))
        });
        if let Some((index, address)) = resumed {
            ordered.rotate_left(index);
            ordered[0].1 = address;
        }
        AttemptOrder { site, rotation, is_resumed: resumed.is_some(), hosts: ordered }
    }

    /// The attempt had to stop before this address: the next attempt begins with it.
    pub(crate) fn on_cut_short_before(&self, attempt: &AttemptOrder<'_>, host: &RouteHost, address: usize) {
        self.resume_at(attempt, host, address, Instant::now() + RESUME_FOR);
    }

    /// The attempt was aborted while this address did not answer. The next attempt begins with the host's next address,
    /// or, if this was the last one, with the next host. After a last address, an attempt that was not resumed leaves
    /// no position in two cases: no host follows, or another host has the same preference, because such hosts rotate
    /// anyway.
    pub(crate) fn on_aborted(
        &self,
        attempt: &AttemptOrder<'_>,
        host: &RouteHost,
        address: usize,
        address_count: usize,
    ) {
        let hosts = &attempt.hosts;
        let Some(index) = hosts.iter().position(|(other, _)| other.name == host.name) else { return };
        let until = Instant::now() + RESUME_FOR;
        // A resumed attempt begins with a later address and ends with the first ones, which an earlier attempt tried.
        let was_tried_before = address < hosts[index].1;
        if address + 1 < address_count && !was_tried_before {
            self.resume_at(attempt, host, address + 1, until);
            return;
        }
        let has_host_of_equal_preference =
            hosts.iter().any(|(other, _)| other.name != host.name && other.preference == host.preference);
        let next = if attempt.is_resumed {
            // The rotation does not move the position of a resumed attempt. Without a new position, the next attempt
            // would begin at the same address again.
            hosts.get(index + 1).or(hosts.first())
        } else if has_host_of_equal_preference {
            None
        } else {
            hosts.get(index + 1)
        };
        if let Some((next, _)) = next {
            self.resume_at(attempt, next, 0, until);
        }
    }

    /// A host accepts messages. While preferred hosts are skipped, the next attempt begins with this host.
    pub(crate) fn on_reached(&self, attempt: &AttemptOrder<'_>, host: &RouteHost, address: usize) {
        let until = self
            .sites()
            .get(attempt.site)
            .and_then(|site_rotation| Some(site_rotation.resume.as_ref()?.until));
        // `until` is not extended: a host that is reached again and again would keep the preferred hosts from being
        // tried.
        if let Some(until) = until.filter(|_| attempt.is_resumed) {
            self.resume_at(attempt, host, address, until);
        }
    }

    /// All hosts were tried and none accepts messages: the next attempt begins with the preferred ones.
    pub(crate) fn on_exhausted(&self, attempt: &AttemptOrder<'_>) {
        if let Some(site_rotation) = self.sites().get_mut(attempt.site) {
            site_rotation.resume = None;
        }
    }

    fn resume_at(&self, attempt: &AttemptOrder<'_>, host: &RouteHost, address: usize, until: Instant) {
        if let Some(site_rotation) = self.sites().get_mut(attempt.site) {
            site_rotation.resume =
                Some(Resume { host: host.name.clone(), address, rotation: attempt.rotation, until });
        }
    }

    fn sites(&self) -> MutexGuard<'_, HashMap<Arc<str>, SiteRotation>> {
        self.sites.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(preferences: &[u16]) -> Vec<RouteHost> {
        let host = |(number, preference): (usize, &u16)| RouteHost {
            name: format!("mx{number}.example"),
            preference: *preference,
            address: None,
            port: 25,
            dane: crate::route::Dane::Nothing,
        };
        preferences.iter().enumerate().map(host).collect()
    }

    fn names(attempt: &AttemptOrder<'_>) -> Vec<String> {
        attempt.hosts.iter().map(|(host, _)| host.name.trim_end_matches(".example").to_owned()).collect()
    }

    /// Name of the first host, and index of the address to begin with.
    fn start<'r>(attempt: &AttemptOrder<'r>) -> (&'r str, usize) {
        let (host, address) = attempt.hosts[0];
        (host.name.as_str(), address)
    }

    #[tokio::test]
    async fn hosts_of_equal_preference_take_turns_to_be_first_and_a_less_preferred_host_is_never_first() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[20, 10, 10, 10]);
        let mut first = HashMap::new();
        for _ in 0..30 {
            *first.entry(names(&order.begin(&site, &hosts))[0].clone()).or_insert(0) += 1;
        }
        let expected = ["mx1", "mx2", "mx3"].map(|name| (name.to_owned(), 10));
        assert_eq!(first, HashMap::from(expected));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_resumes_where_the_last_one_stopped_until_the_position_expires() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[1, 2, 3]);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(names(&attempt), ["mx0", "mx1", "mx2"]);
        order.on_cut_short_before(&attempt, &hosts[1], 3);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(names(&attempt), ["mx1", "mx2", "mx0"]);
        assert_eq!(attempt.hosts[0].1, 3);
        order.on_reached(&attempt, &hosts[2], 0);
        assert_eq!(names(&order.begin(&site, &hosts)), ["mx2", "mx0", "mx1"]);
        tokio::time::advance(RESUME_FOR).await;
        assert_eq!(names(&order.begin(&site, &hosts)), ["mx0", "mx1", "mx2"]);
    }

    #[tokio::test]
    async fn after_a_host_hung_its_next_address_comes_first_and_then_the_next_host() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[10, 20]);
        let attempt = order.begin(&site, &hosts);
        order.on_aborted(&attempt, &hosts[0], 0, 2);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(start(&attempt), ("mx0.example", 1));
        order.on_aborted(&attempt, &hosts[0], 1, 2);
        assert_eq!(names(&order.begin(&site, &hosts)), ["mx1", "mx0"]);
    }

    #[tokio::test]
    async fn a_resumed_attempt_that_hangs_is_followed_by_an_attempt_at_the_next_host() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[10, 10]);
        let attempt = order.begin(&site, &hosts);
        let (one, other) = (attempt.hosts[0].0, attempt.hosts[1].0);
        order.on_aborted(&attempt, one, 0, 2);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(start(&attempt), (one.name.as_str(), 1));
        order.on_aborted(&attempt, one, 1, 2);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(start(&attempt), (other.name.as_str(), 0));
        order.on_aborted(&attempt, other, 0, 1);
        let attempt = order.begin(&site, &hosts);
        assert_eq!(start(&attempt), (one.name.as_str(), 0));
    }

    #[tokio::test]
    async fn aborted_attempts_at_a_single_host_rotate_through_its_addresses() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[10]);
        for address in [0, 1, 0, 1] {
            let attempt = order.begin(&site, &hosts);
            assert_eq!(attempt.hosts[0].1, address);
            order.on_aborted(&attempt, &hosts[0], address, 2);
        }
    }

    #[tokio::test]
    async fn a_host_is_passed_over_if_its_last_address_refused_and_its_first_address_hung_again() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[10, 20]);
        order.on_aborted(&order.begin(&site, &hosts), &hosts[0], 0, 2);
        // The attempt begins with address 1, which refuses, and hangs at address 0.
        order.on_aborted(&order.begin(&site, &hosts), &hosts[0], 0, 2);
        assert_eq!(names(&order.begin(&site, &hosts)), ["mx1", "mx0"]);
    }

    #[tokio::test]
    async fn after_all_hosts_failed_the_preferred_hosts_come_first_again() {
        let (order, site) = (HostOrder::default(), Arc::from("site"));
        let hosts = hosts(&[1, 2]);
        order.on_cut_short_before(&order.begin(&site, &hosts), &hosts[1], 0);
        order.on_exhausted(&order.begin(&site, &hosts));
        assert_eq!(names(&order.begin(&site, &hosts)), ["mx0", "mx1"]);
    }
}
