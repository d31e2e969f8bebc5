//! Estimates about receivers, kept while nothing is sent to them, across restarts and between nodes. Each has a maximum
//! age.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::Timestamp;
use postroad_store::PacingNote;

use super::{Schedule, SourceSite, sources};
use crate::pacing::{ConnectionEstimate, GreylistTime, RateEstimate, Reader, Reason};

const AGE_MAX: Duration = Duration::from_hours(7 * 24);
const KEPT_MAX: usize = 50_000;
/// Unchanged estimates that replies have confirmed are stored again after this time, so that they do not expire.
const CONFIRM_AFTER: Duration = Duration::from_mins(30);

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

    /// Whether an estimate is new or has changed since `noted`; estimates forgotten since do not count.
    fn has_news_since(self, noted: Self) -> bool {
        let without_forgotten = Self {
            per_minute: self.per_minute.and(noted.per_minute),
            connections: self.connections.and(noted.connections),
            greylist_secs: self.greylist_secs.and(noted.greylist_secs),
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
        match self.noted {
            Some((noted, at)) if !estimates.has_news_since(noted) => {
                self.evidence_at.map_or(at, |evidence_at| evidence_at.max(at))
            }
            _ => now,
        }
    }

    /// Forgets estimates that no reply has confirmed for long.
    fn forget_old(&mut self, now: Timestamp) {
        // Forgets a rate that is too old.
        self.rate.per_minute(now);
        let last = self.evidence_at.max(self.noted.map(|(_, at)| at));
        if last.is_some_and(|last| now.since(last) >= AGE_MAX) {
            self.connection_limit = ConnectionEstimate::default();
            self.greylist = GreylistTime::default();
            (self.evidence_at, self.noted) = (None, None);
        }
    }

    /// One sentence for people; `None` if nothing is known.
    pub(super) fn learned(&self, reader: Reader) -> Option<String> {
        let mut parts = Vec::new();
        if let Some((rate, reason)) = self.rate.known() {
            let reply = reason.text(reader);
            parts.push(format!("about {rate:.0} messages a minute (it said: {reply})"));
        }
        if let Some(limit) = self.connection_limit.known() {
            parts.push(format!("at most {limit} connections (it said: too many)"));
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
        for note in notes {
            let key = (note.source, Arc::from(note.site.as_str()));
            known.insert(key, note);
        }
        forget_oldest(known, KEPT_MAX);
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
            if let Some((noted, at)) = source_site.noted
                && noted.is_close_to(estimates)
                && learned_at.since(at) < CONFIRM_AFTER
            {
                continue;
            }
            source_site.noted = Some((estimates, learned_at));
            let source =
                self.sources.find(*source).map_or(sources::ANY_ADDRESS, |source| source.scope_address());
            notes.push(PacingNote {
                source,
                site: site.to_string(),
                per_minute: estimates.per_minute,
                connections: estimates.connections,
                greylist_secs: estimates.greylist_secs,
                // Only the codes: the text may quote a message, and would outlive it.
                reason: source_site.rate.reason().codes().to_owned(),
                learned_at,
            });
        }
        self.remember(notes.clone(), now);
        notes
    }

    /// The state of a source at a site, restored from a note if there is one.
    pub(super) fn remembered_source_site(&self, source: IpAddr, site: &Arc<str>) -> SourceSite {
        let mut source_site = SourceSite::default();
        let Some(note) = self.pacing_notes.by_receiver.get(&(source, Arc::clone(site))) else {
            return source_site;
        };
        // Rate and connection limit age from the time they were learned.
        if let Some(rate) = note.per_minute {
            source_site.rate =
                RateEstimate::restored(f64::from(rate), Reason::restored(&note.reason), note.learned_at);
        }
        if let Some(limit) = note.connections {
            source_site.connection_limit = ConnectionEstimate::restored(limit, note.learned_at);
        }
        if let Some(secs) = note.greylist_secs {
            source_site.greylist = GreylistTime::restored(Duration::from_secs(u64::from(secs)));
        }
        source_site.noted = Some((source_site.estimates(), note.learned_at));
        source_site
    }
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
        assert_eq!(source_site.rate.per_minute(now).map(f64::round), Some(81.0));
        assert_eq!(source_site.connection_limit.limit(now), Some(3));
        let learned = source_site.learned(Reader::Operator).unwrap();
        assert!(learned.contains("about 90 messages a minute (it said: 421)"), "{learned}");
        let later = now.plus(Duration::from_hours(7));
        assert_eq!(source_site.rate.per_minute(later), None, "a rate of this morning is not true any more");
        schedule.remember(Vec::new(), now.plus(AGE_MAX));
        let source_site = schedule.remembered_source_site(sources::ANY_ADDRESS, &site);
        assert_eq!(source_site.learned(Reader::Operator), None);
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
        schedule.source_sites[id].connection_limit.refused(3, later);
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
        assert_eq!(schedule.source_sites[id].learned(Reader::Operator), None);
    }
}
