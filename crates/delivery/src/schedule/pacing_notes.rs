//! Estimates about receivers, kept while nothing is sent to them, across restarts and between nodes. Each has a maximum
//! age.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::Timestamp;
use postroad_store::PacingNote;

use super::{Schedule, SourceProvider, SourceSite};
use crate::pacing::{ConnectionEstimate, GreylistTime, RateEstimate, Reader, Reason};

const AGE_MAX: Duration = Duration::from_hours(7 * 24);
const NOTES_MAX: usize = 50_000;
/// Unchanged estimates that replies have confirmed are stored again after this time, so that they do not expire.
const CONFIRM_AFTER: Duration = Duration::from_mins(30);
/// A note about a whole provider has this prefix and the provider's name instead of a site. No site begins like this.
const PROVIDER_PREFIX: &str = "provider:";

#[derive(Debug, Default)]
pub(super) struct PacingNotes {
    by_receiver: HashMap<(IpAddr, Arc<str>), PacingNote>,
}

/// Content of a note, without its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PacingEstimates {
    per_minute: Option<u32>,
    connections: Option<u32>,
    greylist_secs: Option<u32>,
}

impl PacingEstimates {
    fn is_close_to(self, other: Self) -> bool {
        let is_near = match (self.per_minute, other.per_minute) {
            (Some(one), Some(other)) => one.abs_diff(other) * 20 <= one.max(other),
            (one, other) => one == other,
        };
        is_near && (self.connections, self.greylist_secs) == (other.connections, other.greylist_secs)
    }

    /// Whether an estimate is new or has changed since `saved`; estimates forgotten since do not count.
    fn has_news_since(self, saved: Self) -> bool {
        let without_forgotten = Self {
            per_minute: self.per_minute.and(saved.per_minute),
            connections: self.connections.and(saved.connections),
            greylist_secs: self.greylist_secs.and(saved.greylist_secs),
        };
        !self.is_close_to(without_forgotten)
    }
}

impl SourceSite {
    fn estimates(&self) -> PacingEstimates {
        PacingEstimates {
            per_minute: self.rate.known().map(|(rate, _)| rate.round() as u32),
            connections: self.connection_limit.known(),
            greylist_secs: self.greylist.known().map(|wait| wait.as_secs() as u32),
        }
    }

    /// When the current estimates were learned or last confirmed by a reply. Passing time alone confirms nothing.
    fn learned_at(&self, estimates: PacingEstimates, now: Timestamp) -> Timestamp {
        match self.saved_estimates {
            Some((saved, at)) if !estimates.has_news_since(saved) => {
                self.evidence_at.map_or(at, |evidence_at| evidence_at.max(at))
            }
            _ => now,
        }
    }

    /// Forgets estimates that no reply has confirmed for `AGE_MAX`, and a rate that has expired.
    fn forget_old(&mut self, now: Timestamp) {
        // Forgets a rate that is too old.
        self.rate.per_minute(now);
        let last = self.evidence_at.max(self.saved_estimates.map(|(_, at)| at));
        if last.is_some_and(|last| now.since(last) >= AGE_MAX) {
            self.connection_limit = ConnectionEstimate::default();
            self.greylist = GreylistTime::default();
            (self.evidence_at, self.saved_estimates) = (None, None);
        }
    }

    /// Takes over another node's estimates where this node has none, unless this node has learned something later.
    fn adopt(&mut self, note: &PacingNote) {
        let last = self.evidence_at.max(self.saved_estimates.map(|(_, at)| at));
        if last.is_some_and(|last| last >= note.learned_at) {
            return;
        }
        let other = Self::restored(note);
        let before = self.estimates();
        if !self.rate.is_limiting() {
            self.rate = other.rate;
        }
        if self.connection_limit.known().is_none() {
            self.connection_limit = other.connection_limit;
        }
        if self.greylist.known().is_none() {
            self.greylist = other.greylist;
        }
        let after = self.estimates();
        if after != before {
            self.saved_estimates = Some((after, note.learned_at));
        }
    }

    fn restored(note: &PacingNote) -> Self {
        let mut source_site = Self::default();
        // Rate and connection limit age from the time they were learned.
        if let Some(rate) = restored_rate(note) {
            source_site.rate = rate;
        }
        if let Some(limit) = note.connections {
            source_site.connection_limit = ConnectionEstimate::restored(limit, note.learned_at);
        }
        if let Some(secs) = note.greylist_secs {
            source_site.greylist = GreylistTime::restored(Duration::from_secs(u64::from(secs)));
        }
        source_site.saved_estimates = Some((source_site.estimates(), note.learned_at));
        source_site
    }

    /// One sentence for people; `None` if nothing is known.
    pub(super) fn describe_estimates(&self, reader: Reader) -> Option<String> {
        let mut parts = Vec::new();
        if let Some((rate, reason)) = self.rate.known() {
            let reply = reason.text(reader);
            parts.push(format!("about {rate:.0} messages a minute (it said: {reply})"));
        }
        if let Some(limit) = self.connection_limit.known() {
            let reply = self.connection_limit.reply().text(reader);
            let reply = if reply.is_empty() { String::new() } else { format!(" (it said: {reply})") };
            parts.push(format!("at most {limit} connections{reply}"));
        }
        if let Some(wait) = self.greylist.known() {
            parts.push(format!("first messages after {} s of greylisting", wait.as_secs()));
        }
        (!parts.is_empty()).then(|| format!("it seems to take {}", parts.join(", ")))
    }
}

impl Schedule {
    /// Takes over notes from the store, made by an earlier process or another node.
    pub(crate) fn remember(&mut self, notes: Vec<PacingNote>, now: Timestamp) {
        let known = &mut self.pacing_notes.by_receiver;
        known.retain(|_, note| now.since(note.learned_at) < AGE_MAX);
        let mut keys = HashSet::new();
        for note in notes {
            let key = (note.source, Arc::from(note.site.as_str()));
            keys.insert((note.source, Arc::clone(&key.1)));
            known.insert(key, note);
        }
        forget_oldest(known, NOTES_MAX);
        if !keys.is_empty() {
            self.adopt_notes(&keys);
        }
    }

    /// Applies notes to receivers that mail is being sent to.
    fn adopt_notes(&mut self, keys: &HashSet<(IpAddr, Arc<str>)>) {
        for ((source, site), id) in &self.source_site_ids {
            let key = (self.sources.scope_address(*source), Arc::clone(site));
            if let Some(note) = self.pacing_notes.by_receiver.get(&key).filter(|_| keys.contains(&key)) {
                self.source_sites[*id].adopt(note);
            }
        }
        for ((source, provider), state) in &mut self.source_providers {
            let key = (self.sources.scope_address(*source), provider_key(provider));
            if let Some(note) = self.pacing_notes.by_receiver.get(&key).filter(|_| keys.contains(&key)) {
                state.adopt(note);
            }
        }
    }

    /// Estimates that are new, or confirmed by replies, since the last call. Forgets old ones.
    pub(crate) fn take_pacing_notes(&mut self, now: Timestamp) -> Vec<PacingNote> {
        let mut notes = Vec::new();
        for ((source, site), id) in &self.source_site_ids {
            let source_site = &mut self.source_sites[*id];
            source_site.forget_old(now);
            let estimates = source_site.estimates();
            if estimates == PacingEstimates::default() {
                continue;
            }
            let learned_at = source_site.learned_at(estimates, now);
            if let Some((saved, at)) = source_site.saved_estimates
                && saved.is_close_to(estimates)
                && learned_at.since(at) < CONFIRM_AFTER
            {
                continue;
            }
            source_site.saved_estimates = Some((estimates, learned_at));
            notes.push(PacingNote {
                source: self.sources.scope_address(*source),
                site: site.to_string(),
                per_minute: estimates.per_minute,
                connections: estimates.connections,
                greylist_secs: estimates.greylist_secs,
                // Only the codes: the text may quote a message, and would outlive it.
                reason: source_site.rate.reason().codes().to_owned(),
                learned_at,
            });
        }
        for ((source, provider), state) in &mut self.source_providers {
            let source = self.sources.scope_address(*source);
            notes.extend(state.take_note(source, provider, now));
        }
        self.remember(notes.clone(), now);
        notes
    }

    /// The state of a source at a site, restored from a note if there is one.
    pub(super) fn remembered_source_site(&self, source: IpAddr, site: &Arc<str>) -> SourceSite {
        let note = self.pacing_notes.by_receiver.get(&(source, Arc::clone(site)));
        note.map_or_else(SourceSite::default, SourceSite::restored)
    }
}

impl PacingNotes {
    /// The note about a whole provider.
    pub(super) fn of_provider(&self, source: IpAddr, provider: &str) -> Option<&PacingNote> {
        self.by_receiver.get(&(source, provider_key(provider)))
    }
}

impl SourceProvider {
    /// Takes over the rate of another process or node, unless this node has a rate or a newer note.
    pub(super) fn adopt(&mut self, note: &PacingNote) {
        let is_known = self.saved_estimates.is_some_and(|(_, at)| at >= note.learned_at);
        if let Some(rate) = restored_rate(note).filter(|_| !is_known && !self.rate.is_limiting()) {
            self.rate = rate;
            self.saved_estimates = Some((self.estimates(), note.learned_at));
        }
    }

    fn estimates(&self) -> PacingEstimates {
        let per_minute = self.rate.known().map(|(rate, _)| rate.round() as u32);
        PacingEstimates { per_minute, ..PacingEstimates::default() }
    }

    /// The note to store, if the rate is new or a refusal has confirmed it since the last one.
    fn take_note(&mut self, source: IpAddr, provider: &str, now: Timestamp) -> Option<PacingNote> {
        // Forgets a rate that is too old.
        self.rate.per_minute(now);
        let estimates = self.estimates();
        let per_minute = estimates.per_minute.filter(|_| self.has_several_sites)?;
        let learned_at = self.rate.refused_at().or(self.saved_estimates.map(|(_, at)| at)).unwrap_or(now);
        if let Some((saved, at)) = self.saved_estimates
            && saved.is_close_to(estimates)
            && learned_at.since(at) < CONFIRM_AFTER
        {
            return None;
        }
        self.saved_estimates = Some((estimates, learned_at));
        Some(PacingNote {
            source,
            site: format!("{PROVIDER_PREFIX}{provider}"),
            per_minute: Some(per_minute),
            connections: None,
            greylist_secs: None,
            // Words of a reply would outlive the message that they may quote.
            reason: self.rate.reason().codes().to_owned(),
            learned_at,
        })
    }
}

fn restored_rate(note: &PacingNote) -> Option<RateEstimate> {
    let rate = f64::from(note.per_minute?);
    Some(RateEstimate::restored(rate, Reason::restored(&note.reason), note.learned_at))
}

fn provider_key(provider: &str) -> Arc<str> {
    format!("{PROVIDER_PREFIX}{provider}").into()
}

/// Keeps the `max` newest notes.
fn forget_oldest<K: Clone + Eq + std::hash::Hash>(known: &mut HashMap<K, PacingNote>, max: usize) {
    let Some(beyond) = known.len().checked_sub(max + 1) else { return };
    let mut by_age: Vec<(Timestamp, K)> =
        known.iter().map(|(key, note)| (note.learned_at, key.clone())).collect();
    by_age.select_nth_unstable_by_key(beyond, |(learned_at, _)| *learned_at);
    for (_, key) in &by_age[..=beyond] {
        known.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::sources;
    use crate::schedule::warm_up::WarmUpPlan;

    #[test]
    fn learned_estimates_are_known_to_the_next_process() {
        let now = Timestamp::from_micros(1_794_700_800_000_000);
        let note = PacingNote {
            source: sources::ANY_ADDRESS,
            site: "mx.one.example".to_owned(),
            per_minute: Some(90),
            connections: Some(3),
            greylist_secs: Some(300),
            reason: "421 slow down".to_owned(),
            learned_at: now,
        };
        let mut schedule =
            Schedule::new(vec![Duration::from_mins(1)], "mx.test".into(), WarmUpPlan::default(), 10, 1_000);
        schedule.remember(vec![note], now);
        let site: Arc<str> = "mx.one.example".into();
        let mut source_site = schedule.remembered_source_site(sources::ANY_ADDRESS, &site);
        // Sending begins with nine tenths of a restored rate.
        assert_eq!(source_site.rate.per_minute(now).map(f64::round), Some(81.0));
        assert_eq!(source_site.connection_limit.limit(now), Some(3));
        let learned = source_site.describe_estimates(Reader::Operator).unwrap();
        // Of a restored reply, only the code is shown.
        assert!(learned.contains("about 90 messages a minute (it said: 421)"), "{learned}");
        let later = now.plus(Duration::from_hours(7));
        assert_eq!(source_site.rate.per_minute(later), None, "a rate expires after some hours");
        schedule.remember(Vec::new(), now.plus(AGE_MAX));
        let source_site = schedule.remembered_source_site(sources::ANY_ADDRESS, &site);
        assert_eq!(source_site.describe_estimates(Reader::Operator), None);
    }

    #[test]
    fn beyond_the_limit_the_oldest_estimates_are_forgotten() {
        let note = |secs: i64| PacingNote {
            source: sources::ANY_ADDRESS,
            site: String::new(),
            per_minute: Some(90),
            connections: None,
            greylist_secs: None,
            reason: String::new(),
            learned_at: Timestamp::from_micros(secs * 1_000_000),
        };
        let mut known: HashMap<i64, PacingNote> = [5, 1, 4, 2, 3].map(|secs| (secs, note(secs))).into();
        forget_oldest(&mut known, 5);
        assert_eq!(known.len(), 5);
        forget_oldest(&mut known, 3);
        let mut left: Vec<i64> = known.into_keys().collect();
        left.sort_unstable();
        assert_eq!(left, [3, 4, 5]);
    }

    #[test]
    fn an_estimate_expires_unless_a_reply_confirms_it() {
        let learned_at = Timestamp::from_micros(1_794_700_800_000_000);
        let note = PacingNote {
            source: sources::ANY_ADDRESS,
            site: "mx.one.example".to_owned(),
            per_minute: None,
            connections: Some(3),
            greylist_secs: Some(300),
            reason: String::new(),
            learned_at,
        };
        let mut schedule =
            Schedule::new(vec![Duration::from_mins(1)], "mx.test".into(), WarmUpPlan::default(), 10, 1_000);
        schedule.remember(vec![note], learned_at);
        let site: Arc<str> = "mx.one.example".into();
        let id = schedule.source_sites.insert(schedule.remembered_source_site(sources::ANY_ADDRESS, &site));
        schedule.source_site_ids.insert((postroad_model::SourceId(0), site), id);
        let later = learned_at.plus(Duration::from_hours(24));
        assert_eq!(schedule.take_pacing_notes(later), [], "nothing was learned for a day");
        schedule.source_sites[id].connection_limit.on_refused(3, &Reason::default(), later);
        schedule.source_sites[id].evidence_at = Some(later);
        let notes = schedule.take_pacing_notes(later.plus(Duration::from_mins(5)));
        assert_eq!(notes.iter().map(|note| note.learned_at).collect::<Vec<_>>(), [later]);
        let much_later = later.plus(AGE_MAX);
        assert_eq!(schedule.take_pacing_notes(much_later), []);
        assert_eq!(
            schedule.source_sites[id].connection_limit.limit(much_later),
            None,
            "it may be another receiver by now"
        );
        assert_eq!(schedule.source_sites[id].describe_estimates(Reader::Operator), None);
    }

    fn note(site: &str, per_minute: u32, learned_at: Timestamp) -> PacingNote {
        PacingNote {
            source: sources::ANY_ADDRESS,
            site: site.to_owned(),
            per_minute: Some(per_minute),
            connections: Some(3),
            greylist_secs: None,
            reason: "421".to_owned(),
            learned_at,
        }
    }

    #[test]
    fn a_sending_node_adopts_newer_estimates_of_another_node() {
        let start = Timestamp::from_micros(1_794_700_800_000_000);
        let later = start.plus(Duration::from_mins(1));
        let mut schedule =
            Schedule::new(vec![Duration::from_mins(1)], "mx.test".into(), WarmUpPlan::default(), 10, 1_000);
        let site: Arc<str> = "mx.one.example".into();
        let id = schedule.source_sites.insert(SourceSite::default());
        schedule.source_site_ids.insert((postroad_model::SourceId(0), Arc::clone(&site)), id);
        schedule.source_sites[id].connection_limit.on_refused(5, &Reason::default(), start);
        schedule.source_sites[id].evidence_at = Some(start);
        let own_limit = schedule.source_sites[id].connection_limit.known();
        schedule.remember(vec![note("mx.other.example", 90, later)], later);
        assert!(!schedule.source_sites[id].rate.is_limiting(), "the note is about another receiver");
        schedule.remember(vec![note("mx.one.example", 90, start)], later);
        assert!(!schedule.source_sites[id].rate.is_limiting(), "the note is older than what this node knows");
        schedule.remember(vec![note("mx.one.example", 90, later)], later);
        let source_site = &mut schedule.source_sites[id];
        // Nine tenths of the note's rate.
        assert_eq!(source_site.rate.per_minute(later).map(f64::round), Some(81.0));
        assert_eq!(source_site.connection_limit.known(), own_limit, "its own estimate stays");
        assert_eq!(schedule.take_pacing_notes(later), [], "another node's estimate is not stored as its own");
    }
}
