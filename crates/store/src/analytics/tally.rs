//! Turns a batch of events into additions to the counters.
//!
//! `hard_fail` counts messages that ended as HardFail (permanently refused, given up, or expired), `bounced` messages
//! that were Sent and then bounced. `soft_fail` counts attempts that tried a host and failed temporarily. All other
//! metrics count a message once, except opens and clicks.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::{BounceClass, DomainName, EventCursor, EventKind, MessageId, Timestamp};
use serde::Deserialize;

use super::counts::{Counts, Metric};
use super::day_counts::{DayCounts, block_start};
use super::dimensions::{Breakdown, Dimensions};
use super::grain::Grain;
use super::sums::Sums;

const OPENED: TrackingMetrics =
    [Metric::Opened, Metric::BotOpened, Metric::UniqueOpened, Metric::UniqueOpenedWithBots];
const CLICKED: TrackingMetrics =
    [Metric::Clicked, Metric::BotClicked, Metric::UniqueClicked, Metric::UniqueClickedWithBots];

/// The provider of recipient domains without a known provider.
pub const OTHER_PROVIDER: &str = "other";

/// Exceptions from counting.
#[derive(Debug, Clone)]
pub struct CountingRules {
    /// Recipients at this domain are simulated.
    pub simulator_domain: DomainName,
}

/// An event with the data by which it is counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedEvent {
    pub(crate) cursor: EventCursor,
    pub(crate) message_id: MessageId,
    pub(crate) seq: i64,
    pub(crate) kind: EventKind,
    pub(crate) at: Timestamp,
    pub(crate) data: EventData,
    pub(crate) facts: Facts,
}

/// Facts about the event's message, and the dimensions of the event's attempt.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) rcpt_to: String,
    /// All dimensions except the provider. The pool is the one that was or will be used. Source address and TLS version
    /// belong to an attempt (`attempts.rs`), the bounce class to the event.
    pub(crate) dimensions: Dimensions,
    /// When the message was accepted, or the later time for which it was scheduled.
    pub(crate) wanted_at: Timestamp,
}

impl Facts {
    /// The recipient's domain in lower case, because DNS names are compared without case.
    pub(crate) fn recipient_domain(&self) -> String {
        let domain = self.rcpt_to.rsplit_once('@').map_or("", |(_, domain)| domain);
        if domain.is_ascii() {
            return domain.to_ascii_lowercase();
        }
        DomainName::parse(domain).map_or_else(|_| domain.to_lowercase(), |name| name.as_str().to_owned())
    }
}

/// Fields of an event's data that counting needs. Unexpected data counts as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventData {
    attempt: Option<i64>,
    /// Seconds that the attempt took.
    time: Option<f64>,
    bounce: Option<BounceData>,
    reason: Option<String>,
    /// For an open or click by a program: whether it is the first one by a program. Otherwise whether it is the first
    /// one by a person.
    first: bool,
    /// Whether this open or click is the first one by anybody.
    first_including_bots: bool,
    /// Whether a program opened or clicked.
    bot: bool,
    /// The host that an attempt tried.
    mx: Option<String>,
    /// The pool of an attempt; absent if the operating system chose the address.
    ip_pool: Option<String>,
    source_ip: Option<String>,
    tls_version: Option<String>,
    /// Bounce class of a failure that is not a bounce.
    class: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct BounceData {
    kind: String,
    class: Option<String>,
}

impl EventData {
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn is_suppressed(&self) -> bool {
        self.reason.as_deref() == Some("suppressed")
    }

    /// Whether the event describes an attempt at a host. A later bounce does not, although it names a host.
    pub(crate) fn is_attempt(&self) -> bool {
        self.mx.is_some() && !self.is_async_bounce()
    }

    /// The pool of an attempt; empty if the operating system chose the address.
    pub(crate) fn used_pool(&self) -> &str {
        self.ip_pool.as_deref().unwrap_or_default()
    }

    /// Fills in the dimensions that only an attempt determines.
    pub(crate) fn fill_in_attempt(&self, dimensions: &mut Dimensions) {
        self.source_ip.as_deref().unwrap_or_default().clone_into(&mut dimensions.source_ip);
        self.tls_version().clone_into(&mut dimensions.tls_version);
    }

    /// TLS version, as one of a fixed set of names; empty without TLS.
    fn tls_version(&self) -> &'static str {
        match self.tls_version.as_deref() {
            None => "",
            Some("TLSv1.3") => "TLSv1.3",
            Some("TLSv1.2") => "TLSv1.2",
            Some(_) => "other",
        }
    }

    /// Bounce class; empty if nothing failed. A class that this version does not know counts as `other`.
    pub(crate) fn bounce_class(&self) -> &'static str {
        let class = self.bounce.as_ref().and_then(|bounce| bounce.class.as_deref()).or(self.class.as_deref());
        class.map_or("", |class| BounceClass::parse(class).unwrap_or(BounceClass::Other).as_str())
    }

    fn is_async_bounce(&self) -> bool {
        self.bounce.as_ref().is_some_and(|bounce| bounce.kind == "async")
    }
}

/// A hold of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) seq: i64,
    pub(crate) is_suppressed: bool,
}

impl CountedEvent {
    /// Whether earlier holds of the message may affect how this event counts. False if `seq` shows that only the
    /// acceptance and attempts came before this event.
    pub(crate) fn needs_holds(&self) -> bool {
        match self.kind {
            EventKind::Held => self.seq > 2,
            EventKind::Delivered => self.data.attempt.is_some_and(|attempt| self.seq != attempt + 1),
            EventKind::Delayed | EventKind::Failed | EventKind::Bounced => {
                self.data.attempt == Some(1) && self.seq > 2
            }
            _ => false,
        }
    }
}

/// A row of counters; `set` is the index in `Tally::sets`, `None` for the total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TallyKey {
    pub(crate) grain: Grain,
    pub(crate) set: Option<usize>,
    /// Start of the time span, in seconds since 1970.
    pub(crate) at: i64,
}

/// What a batch of events adds to the counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sets: Vec<(Breakdown, Dimensions)>,
    pub(crate) counters: HashMap<TallyKey, Sums>,
    /// Counts by block of days (its start, in seconds since 1970) and recipient domain.
    pub(crate) recipient_domains: HashMap<(i64, String), DayCounts>,
    /// Start of the last day on which something was counted.
    pub(crate) last_day: i64,
    /// Number of events that the tally includes, beginning with the first event.
    pub(crate) event_count: usize,
}

/// The sets in which an event counts, as indexes in `Tally::sets`: one for each breakdown.
type EventSets = [usize; Breakdown::NUMBERED.len()];

/// Events of the same minute with the same dimensions. They are added to the same rows, so they are summed up first.
struct Group {
    sets: EventSets,
    /// Time of the group's first event.
    at: Timestamp,
    sums: Sums,
}

/// The groups of a batch.
#[derive(Default)]
struct Grouping<'a> {
    groups: Vec<Group>,
    /// Index in `groups`, by dimensions, provider and minute.
    group_index: HashMap<(&'a Dimensions, &'a str, i64), usize>,
    /// Index in `Tally::sets` by breakdown and the dimensions that it distinguishes.
    set_index: HashMap<(Breakdown, Dimensions), usize>,
}

impl Tally {
    /// Adds up events until there are `rows_max` rows to write. `providers` maps recipient domains to providers.
    /// `holds` lists holds by message, for messages with events that need them (`needs_holds`).
    pub(crate) fn of(
        events: &[CountedEvent],
        providers: &HashMap<String, String>,
        holds: &HashMap<MessageId, Vec<Hold>>,
        rows_max: usize,
    ) -> Self {
        let mut tally = Self::default();
        let mut grouping = Grouping::default();
        for event in events {
            if tally.counters.len() + tally.recipient_domains.len() >= rows_max {
                break;
            }
            tally.event_count += 1;
            let recipient_domain = event.facts.recipient_domain();
            let message_holds = holds.get(&event.message_id).map_or(&[][..], Vec::as_slice);
            let adds = sums_of(event, message_holds);
            if adds.counts.is_zero() {
                continue;
            }
            let provider = providers.get(&recipient_domain).map_or(OTHER_PROVIDER, String::as_str);
            tally.group_of(event, provider, &mut grouping).sums.add(&adds);
            let day = Grain::Day.start(event.at);
            tally.last_day = tally.last_day.max(day);
            tally
                .recipient_domains
                .entry((block_start(day), recipient_domain))
                .or_default()
                .add(day, &adds.counts);
        }
        for group in grouping.groups {
            for key in keys_of(&group) {
                tally.counters.entry(key).or_default().add(&group.sums);
            }
        }
        tally
    }

    /// The group of an event. The rows of a new group are added to `counters` at once, without counts, so that their
    /// number is known.
    fn group_of<'a, 'g>(
        &mut self,
        event: &'a CountedEvent,
        provider: &'a str,
        grouping: &'g mut Grouping<'a>,
    ) -> &'g mut Group {
        let key = (&event.facts.dimensions, provider, Grain::Minute.start(event.at));
        let index = *grouping.group_index.entry(key).or_insert_with(|| {
            let full = Dimensions { provider: provider.to_owned(), ..event.facts.dimensions.clone() };
            let sets = Breakdown::NUMBERED.map(|breakdown| {
                let set = (breakdown, breakdown.part_of(&full));
                *grouping.set_index.entry(set.clone()).or_insert_with(|| {
                    self.sets.push(set);
                    self.sets.len() - 1
                })
            });
            let group = Group { sets, at: event.at, sums: Sums::default() };
            for key in keys_of(&group) {
                self.counters.entry(key).or_default();
            }
            grouping.groups.push(group);
            grouping.groups.len() - 1
        });
        &mut grouping.groups[index]
    }
}

/// The rows of a group. All spans of time consist of whole minutes, so all events of a group are in the same spans.
fn keys_of(group: &Group) -> impl Iterator<Item = TallyKey> {
    let sets = group.sets.into_iter().map(Some).chain([None]);
    Grain::ALL.into_iter().flat_map(move |grain| {
        sets.clone().map(move |set| TallyKey { grain, set, at: grain.start(group.at) })
    })
}

fn sums_of(event: &CountedEvent, holds: &[Hold]) -> Sums {
    let mut sums = Sums::default();
    let (data, counts) = (&event.data, &mut sums.counts);
    let mut earlier = holds.iter().filter(|hold| hold.seq < event.seq);
    match event.kind {
        EventKind::Accepted => counts.count(Metric::Accepted),
        EventKind::Delivered => counts.count(Metric::Sent),
        EventKind::Delayed if data.attempt.is_some() => counts.count(Metric::SoftFail),
        EventKind::Bounced if data.is_async_bounce() => counts.count(Metric::Bounced),
        EventKind::Bounced | EventKind::Failed => counts.count(Metric::HardFail),
        EventKind::Held => {
            if data.is_suppressed() && !earlier.clone().any(|hold| hold.is_suppressed) {
                counts.count(Metric::Suppressed);
            }
            if earlier.next().is_none() {
                counts.count(Metric::Held);
            }
        }
        EventKind::Complained => counts.count(Metric::Complained),
        EventKind::Unsubscribed => counts.count(Metric::Unsubscribed),
        EventKind::Opened => count_tracking_event(counts, data, OPENED),
        EventKind::Clicked => count_tracking_event(counts, data, CLICKED),
        _ => {}
    }
    add_latency(&mut sums, event, holds.iter().any(|hold| hold.seq < event.seq));
    sums
}

/// Metrics of an open or click: by people, by programs, first by a person, first by anybody.
type TrackingMetrics = [Metric; 4];

fn count_tracking_event(
    counts: &mut Counts,
    data: &EventData,
    [people, programs, first, first_including_bots]: TrackingMetrics,
) {
    counts.count(if data.bot { programs } else { people });
    if data.first && !data.bot {
        counts.count(first);
    }
    if data.first_including_bots {
        counts.count(first_including_bots);
    }
}

/// Adds the latency of a message's first attempt or delivery. Messages that were held do not count: their latency says
/// nothing about our speed.
fn add_latency(sums: &mut Sums, event: &CountedEvent, was_held: bool) {
    let EventData { attempt: Some(attempt), time, .. } = event.data else { return };
    let is_attempt = match event.kind {
        EventKind::Delivered | EventKind::Delayed | EventKind::Failed => true,
        EventKind::Bounced => !event.data.is_async_bounce(),
        _ => false,
    };
    if !is_attempt {
        return;
    }
    let wanted_at = event.facts.wanted_at;
    if attempt == 1 && !was_held {
        let duration = Duration::try_from_secs_f64(time.unwrap_or(0.0)).unwrap_or_default();
        sums.first_attempt.record(event.at.minus(duration).since(wanted_at));
    }
    if event.kind == EventKind::Delivered && !was_held {
        sums.sent.record(event.at.since(wanted_at));
    }
}
