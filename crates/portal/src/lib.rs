//! Portal: the pages for people, on the HTTP listener beside the API.
//!
//! A page is a handler, a template and a view made from `app`'s answers; `app` decides who may see and do what. Pages
//! work without JavaScript; with JavaScript they update themselves. All text from outside is escaped, and the HTML of
//! messages is shown only in a sandboxed frame.

mod account;
mod account_keys;
mod analytics;
mod answer;
mod assets;
mod audit;
mod chart;
mod csrf;
mod csv;
mod days;
mod display;
mod domains;
mod events;
mod fields;
mod gates;
mod headers;
mod inbox;
mod inspector;
mod keys;
mod labels;
mod layout;
mod live;
mod live_permits;
mod live_watch;
mod message_content;
mod messages;
mod once;
mod operator;
mod origin;
mod page_routes;
mod path;
mod people;
mod pools;
mod problem;
mod profile;
mod query;
mod queue;
mod rate_chart;
mod redirect;
mod refill;
mod refused_forms;
mod reports;
mod routes;
mod sentence;
mod servers;
mod session;
mod settings;
mod sign_in;
mod snippets;
mod state;
mod suppressions;
mod templates;
mod text_budget;
mod viewed_account;
mod visit;
mod webhooks;
mod work_permits;

use std::sync::Arc;

use axum::Router;

pub use state::{PortalParts, SmtpAccess};

/// The pages of one service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Portal {
    state: Arc<state::PortalState>,
}

impl Portal {
    pub fn new(parts: PortalParts) -> Self {
        Self { state: Arc::new(state::PortalState::new(parts)) }
    }

    /// Sets how mail clients reach the relay, once its listeners are known.
    pub fn set_smtp(&self, smtp: SmtpAccess) {
        self.state.set_smtp(smtp);
    }

    /// Base URLs of the service, the best one first: webhooks may post to its request inspectors there.
    pub fn set_own_urls(&self, urls: Vec<String>) {
        self.state.set_own_urls(urls);
    }

    /// Routes to merge with the API's.
    pub fn routes(&self) -> Router {
        routes::routes(Arc::clone(&self.state))
    }
}
