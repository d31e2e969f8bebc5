//! Filters of the list of domains: a part of the name, and the state.

use postroad_app::domains::{DomainSelection, DomainState};

use crate::fields::Fields;
use crate::query::query;

/// Filters from the query string of a request.
pub(super) struct Filters(pub(super) DomainSelection);

pub(super) struct StateChoice {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

impl Filters {
    pub(super) fn read(fields: &Fields) -> Self {
        let state = DomainState::parse(fields.text("state"));
        Self(DomainSelection { name: fields.text("q").to_owned(), state })
    }

    pub(super) fn is_set(&self) -> bool {
        !self.0.is_all()
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn states(&self) -> Vec<StateChoice> {
        let choice = |state: DomainState| StateChoice {
            value: state.as_str(),
            label: match state {
                DomainState::Verified => "Verified",
                DomainState::Failing => "Failing",
                DomainState::NotVerified => "Not verified",
            },
            is_chosen: self.0.state == Some(state),
        };
        DomainState::ALL.map(choice).into()
    }

    /// Query string of the page that begins after `after`.
    pub(super) fn query(&self, after: &str) -> String {
        let state = self.0.state.map_or("", DomainState::as_str);
        query(&[("q", &self.0.name), ("state", state), ("after", after)])
    }
}
