//! Greylisting of a message in attempts before it was last claimed, read from the message's delivery records.

use postroad_mail::Signal;
use postroad_model::{Status, Timestamp};
use postroad_store::{Delivery, NewDelivery};

use super::judge::stored_signal;
use crate::schedule::Greylisting;

/// Maximum number of deliveries that are read. Greylisting is usually over after fewer attempts.
pub(crate) const DELIVERIES_MAX: usize = 16;
/// Share of the planned wait, from the first refusal to the planned retry. A retry that is late by more than this share
/// does not show how long the receiver greylists.
const LATE_SHARE: f64 = 0.2;

/// State of the greylisting after `deliveries`, which are in time order.
pub(crate) fn greylisting_after(deliveries: &[Delivery], now: Timestamp) -> Option<Greylisting> {
    let greylisting = deliveries
        .iter()
        .fold(None, |before, delivery| greylisting_after_delivery(before, &delivery.record))?;
    let planned = greylisting.retry_at.map(|retry_at| retry_at.since(greylisting.first_refused_at));
    let late_max = planned.unwrap_or_default().mul_f64(LATE_SHARE);
    let is_late = greylisting.retry_at.is_some_and(|retry_at| now.since(retry_at) > late_max);
    Some(if is_late { greylisting.delayed() } else { greylisting })
}

fn greylisting_after_delivery(before: Option<Greylisting>, delivery: &NewDelivery) -> Option<Greylisting> {
    match (delivery.status, delivery.code) {
        // The receiver did not reply.
        (Status::SoftFail, None) => before.map(Greylisting::delayed),
        (Status::SoftFail, Some(_)) if stored_signal(delivery) == Some(Signal::Greylisted) => {
            Some(Greylisting::again(before, delivery.next_attempt_at?, delivery.at))
        }
        _ => None,
    }
}
