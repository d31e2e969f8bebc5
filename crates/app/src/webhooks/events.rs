//! Event filter of a webhook: all events of its format, or some by name.

use postroad_model::{EventKind, EventSet, WebhookFormat, postal_events};

use crate::FieldProblem;

/// Requested events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventFilter {
    All,
    Named(Vec<String>),
}

/// All events that a format can express.
pub(super) fn events_of_format(format: WebhookFormat) -> EventSet {
    match format {
        WebhookFormat::Standard => EventSet::ALL,
        WebhookFormat::Postal => postal_events(),
    }
}

/// The events that a filter selects. Adds a problem for each event that is unknown or that the format cannot express.
pub(super) fn resolve(
    filter: &EventFilter,
    format: WebhookFormat,
    problems: &mut Vec<FieldProblem>,
) -> EventSet {
    let names = match filter {
        EventFilter::All => return events_of_format(format),
        EventFilter::Named(names) => names,
    };
    if names.is_empty() {
        problems.push(FieldProblem::new("/events", "`events` should name at least one event, or be \"all\""));
    }
    let mut kinds = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let kind = EventKind::parse(name);
        let problem = match kind {
            None => {
                let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
                Some(format!("`events/{at}` should be one of {}", known.join(", ")))
            }
            Some(kind) if !events_of_format(format).contains(kind) => {
                Some(format!("`events/{at}`: the format `{format}` cannot express {kind}"))
            }
            Some(_) => None,
        };
        match problem {
            Some(message) => problems.push(FieldProblem::new(format!("/events/{at}"), message)),
            None => kinds.extend(kind),
        }
    }
    kinds.into_iter().collect()
}

/// Events for display: `None` for all events of the format.
pub fn events_unless_all(events: EventSet, format: WebhookFormat) -> Option<Vec<EventKind>> {
    if events == events_of_format(format) {
        return None;
    }
    Some(EventKind::ALL.iter().copied().filter(|kind| events.contains(*kind)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> EventFilter {
        EventFilter::Named(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn all_means_every_event_that_the_format_can_express() {
        let mut problems = Vec::new();
        for format in [WebhookFormat::Standard, WebhookFormat::Postal] {
            let set = resolve(&EventFilter::All, format, &mut problems);
            assert_eq!(events_unless_all(set, format), None);
        }
        let some =
            resolve(&named(&["message.clicked", "message.delivered"]), WebhookFormat::Postal, &mut problems);
        assert_eq!(
            events_unless_all(some, WebhookFormat::Postal),
            Some(vec![EventKind::Delivered, EventKind::Clicked])
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn unsupported_events_are_refused_with_their_pointer() {
        let mut problems = Vec::new();
        resolve(
            &named(&["message.delivered", "message.accepted", "x"]),
            WebhookFormat::Postal,
            &mut problems,
        );
        resolve(&named(&[]), WebhookFormat::Standard, &mut problems);
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers, ["/events/1", "/events/2", "/events"]);
    }
}
