//! Figures of one message, such as attempts, opens and clicks, and the links that were clicked.

use postroad_app::analytics::MessageMetrics;

use crate::display::{When, count, duration};

/// A link that was clicked.
pub(super) struct LinkRow {
    pub(super) url: String,
    pub(super) clicks: String,
    pub(super) by_programs: String,
}

#[derive(Default)]
pub(super) struct FiguresView {
    /// Name and value.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) first_opened_at: Option<When>,
    pub(super) first_clicked_at: Option<When>,
    pub(super) links: Vec<LinkRow>,
}

pub(super) fn figures_view(found: MessageMetrics) -> FiguresView {
    let seconds = |seconds: f64| duration((seconds * 1e6) as i64);
    let mut facts = vec![("Attempts", count(found.attempts))];
    facts.extend(found.sent_after.map(|after| ("Delivered after", seconds(after))));
    facts.extend(found.first_attempt_after.map(|after| ("First attempt after", seconds(after))));
    let tracked = [
        ("Opens", found.opens),
        ("Opens by programs", found.bot_opens),
        ("Clicks", found.clicks),
        ("Clicks by programs", found.bot_clicks),
        ("Delays", found.soft_fails),
        ("Holds", found.holds),
        ("Complaints", found.complaints),
        ("Unsubscriptions", found.unsubscribes),
    ];
    facts.extend(
        tracked.into_iter().filter(|(_, number)| *number > 0).map(|(label, number)| (label, count(number))),
    );
    let link = |link: postroad_app::analytics::LinkClicks| LinkRow {
        url: link.url,
        clicks: count(link.clicks),
        by_programs: count(link.bot_clicks),
    };
    FiguresView {
        facts,
        first_opened_at: found.first_opened_at.map(When),
        first_clicked_at: found.first_clicked_at.map(When),
        links: found.links.into_iter().map(link).collect(),
    }
}
