//! The search of a message list: a tab, a query, and the filters of the form.

use postroad_app::SearchRequest;
use postroad_model::{MessageId, Status};
use postroad_store::SearchItem;

use crate::fields::Fields;
use crate::query::query;

/// One tab of the list: the messages of some statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    All,
    Held,
    Scheduled,
}

impl Tab {
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "held" => Self::Held,
            "scheduled" => Self::Scheduled,
            _ => Self::All,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Held => "held",
            Self::Scheduled => "scheduled",
        }
    }
}

#[derive(Debug)]
pub(super) struct Search {
    pub(super) tab: Tab,
    pub(super) q: String,
    /// Status to filter by; empty for any. Only the tab of all messages has this filter and `domain`.
    pub(super) status: &'static str,
    /// Domain of the sender; empty for any.
    pub(super) domain: String,
    /// Tag to filter by; empty for any. All tabs have this filter.
    pub(super) tag: String,
}

impl Search {
    pub(super) fn of(fields: &Fields) -> Self {
        let tab = Tab::parse(fields.text("tab"));
        let filter = |name| if tab == Tab::All { fields.text(name) } else { "" };
        Self {
            tab,
            q: fields.text("q").to_owned(),
            status: postroad_app::parse_status(filter("status")).map_or("", Status::as_str),
            domain: filter("domain").to_owned(),
            tag: fields.text("tag").to_owned(),
        }
    }

    /// Whether a query or a filter narrows the tab's messages.
    pub(super) fn is_searching(&self) -> bool {
        !self.q.is_empty() || !self.status.is_empty() || !self.domain.is_empty() || !self.tag.is_empty()
    }

    /// The id, if the search is nothing but a number.
    pub(super) fn id(&self) -> Option<MessageId> {
        let is_number = self.is_query_only() && self.q.bytes().all(|byte| byte.is_ascii_digit());
        self.q.parse().ok().filter(|_| is_number).map(MessageId)
    }

    /// Whether the search is nothing but the name of this message: its token, or its Message-ID in angle brackets.
    pub(super) fn is_name_of(&self, item: &SearchItem) -> bool {
        self.is_query_only()
            && (self.q == item.token.0
                || self.q.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) == Some(&item.message_id))
    }

    fn is_query_only(&self) -> bool {
        self.tab == Tab::All && self.status.is_empty() && self.domain.is_empty() && self.tag.is_empty()
    }

    /// Whether the list has check boxes, for actions on several messages.
    pub(super) fn has_check_boxes(&self) -> bool {
        self.tab != Tab::All || self.shows_queued_messages()
    }

    /// Whether the search shows only messages that wait for their first or next attempt.
    pub(super) fn shows_queued_messages(&self) -> bool {
        self.status == Status::SoftFail.as_str() || self.status == Status::Pending.as_str()
    }

    /// Query string of the list's first page.
    pub(super) fn query(&self) -> String {
        self.query_with("", "")
    }

    /// Query string of the page with the messages that are older than `before`.
    pub(super) fn query_before(&self, before: &str) -> String {
        self.query_with("before", before)
    }

    /// Query string of the list's first page with a notice.
    pub(super) fn query_with_notice(&self, notice: &str) -> String {
        self.query_with("done", notice)
    }

    fn query_with(&self, name: &str, value: &str) -> String {
        query(&[
            ("tab", self.tab.name()),
            ("q", &self.q),
            ("status", self.status),
            ("domain", &self.domain),
            ("tag", &self.tag),
            (name, value),
        ])
    }

    /// The search as text, for a link to it.
    pub(super) fn link_text(&self) -> String {
        let parts = [self.tab.name(), self.status, &self.domain, &self.tag, &self.q];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The search in the query language, tab and filters included, for a job on all that it finds.
    pub(super) fn whole_query(&self) -> String {
        let status = match self.tab {
            Tab::All => self.status,
            Tab::Held => Status::Held.as_str(),
            Tab::Scheduled => Status::Scheduled.as_str(),
        };
        let mut parts = Vec::new();
        if !status.is_empty() {
            parts.push(format!("status:{status}"));
        }
        for (key, value) in [("domain", &self.domain), ("tag", &self.tag)] {
            if !value.is_empty() {
                parts.push(format!("{key}:{}", quoted(value)));
            }
        }
        parts.push(self.q.clone());
        parts.join(" ").trim_end().to_owned()
    }

    pub(super) fn request(&self) -> SearchRequest {
        let statuses = match self.tab {
            Tab::All => postroad_app::parse_status(self.status).into_iter().collect(),
            Tab::Held => vec![Status::Held],
            Tab::Scheduled => vec![Status::Scheduled],
        };
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        SearchRequest {
            q: filled(&self.q),
            statuses,
            domain: filled(&self.domain),
            tag: filled(&self.tag),
            ..SearchRequest::default()
        }
    }
}

/// A value as the query language quotes it.
pub(super) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tab_of_all_messages_has_filters_by_status_and_domain() {
        let of = |text: &str| Search::of(&Fields::parse(text.as_bytes()));
        let all = of("q=a+b&status=Sent&domain=example.com&before=3");
        assert_eq!(all.query(), "?q=a+b&status=Sent&domain=example.com");
        assert_eq!(all.link_text(), "Sent example.com a b");
        assert!(all.is_searching() && !of("tab=held").is_searching());
        let held = of("tab=held&status=Sent&domain=example.com");
        assert_eq!((held.query().as_str(), held.request().statuses), ("?tab=held", vec![Status::Held]));
        let tagged = of("tab=scheduled&tag=+news+");
        assert_eq!(
            (tagged.query().as_str(), tagged.request().tag),
            ("?tab=scheduled&tag=news", Some("news".to_owned()))
        );
        assert!(tagged.is_searching() && of("q=12&tag=news").id().is_none());
        assert_eq!(of("status=nonsense").query(), "");
    }

    #[test]
    fn only_a_number_by_itself_is_an_id() {
        let of = |text: &str| Search::of(&Fields::parse(text.as_bytes())).id();
        assert_eq!(of("q=+123+"), Some(MessageId(123)));
        for other in ["q=", "q=-1", "q=1+2", "q=1001a", "tab=held&q=123", "status=Sent&q=123"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_job_gets_the_tab_and_the_filters_as_a_query() {
        let of = |text: &str| Search::of(&Fields::parse(text.as_bytes())).whole_query();
        assert_eq!(of("tab=scheduled&q=tag:news"), "status:Scheduled tag:news");
        assert_eq!(of("tab=held"), "status:Held");
        assert_eq!(
            of("status=SoftFail&domain=example.com&q=a+b"),
            "status:SoftFail domain:\"example.com\" a b"
        );
        assert_eq!(of("tab=held&tag=a+%22b%5C"), r#"status:Held tag:"a \"b\\""#);
    }
}
