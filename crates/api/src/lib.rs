//! HTTP API: envelope, authentication, the v1 endpoints and their OpenAPI document.
//!
//! The crate translates between HTTP and `app` and decides nothing; it has no SQL and no MIME. Everything that
//! waits has a timeout, everything that grows has a limit.

mod account;
mod account_keys;
mod account_params;
mod accounts;
mod analytics;
mod answer_writer;
mod auth;
mod blocking_pool;
mod body;
mod boundary;
mod connection;
mod credentials;
mod dev;
mod documented;
mod domains;
mod drain;
mod endpoint;
mod envelope;
mod events;
mod failure;
mod fields;
mod health;
mod host;
mod http_server;
mod idempotency;
mod ip_pools;
mod jobs;
mod json;
mod memory;
mod messages;
mod mta_sts;
mod openapi;
mod page;
mod params;
mod peer;
mod permit_body;
mod rate_limit;
mod readiness;
mod redirect;
mod request_id;
mod request_info;
mod routes;
mod send;
mod server_settings;
mod servers;
mod settings;
mod state;
mod suppressions;
mod templates;
mod tenant;
mod time_field;
mod unsent_answers;
mod users;
mod watched_io;
mod webhooks;

use std::sync::Arc;

use axum::Router;
use postroad_app::App;
use postroad_delivery::{Inbox, QueueAdmin};
use postroad_events::WebhookTester;
use postroad_net::limits::PerAddressLimit;
use postroad_net::local_dns::LocalDns;

pub use dev::DevAccess;
pub use http_server::HttpServer;
pub use openapi::OPENAPI_JSON;
pub use settings::{Mode, Settings, TimeLimits};

/// The HTTP API of one process, for any number of listeners, which share its limits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    boundary: Arc<boundary::Boundary>,
    state: Arc<state::ApiState>,
    settings: Arc<Settings>,
}

impl Api {
    pub fn new(app: App, settings: Settings) -> Self {
        let state = Arc::new(state::ApiState::new(app, &settings));
        let router = routes::router(Arc::clone(&state));
        let trusted_proxies = settings.trusted_proxies.clone();
        Self {
            boundary: Arc::new(boundary::Boundary {
                router,
                trusted_proxies,
                per_address: PerAddressLimit::new(settings.requests_per_address_max),
                virtual_host: None,
                dev_access: None,
            }),
            state,
            settings: Arc::new(settings),
        }
    }

    /// Enables posting of sample events, and adds the public key to answers about webhooks in Postal's format.
    #[must_use]
    pub fn with_webhooks(self, tester: WebhookTester) -> Self {
        self.state.set_webhook_tester(tester);
        self
    }

    /// Connects the delivery engine: `/ready` reports its health, timelines say why a message waits, and changes of
    /// servers apply at once.
    #[must_use]
    pub fn with_queue(self, queue: QueueAdmin) -> Self {
        self.state.set_queue(queue);
        self
    }

    /// Serves the dev inbox under `/dev/`: only to callers on this machine, unless `with_dev_access` admits others.
    #[must_use]
    pub fn with_inbox(self, inbox: Inbox) -> Self {
        self.with_routes(dev::router(inbox))
    }

    /// Serves Mailpit's API over the dev inbox, in `postroad dev` only.
    #[must_use]
    pub fn with_mailpit(self, inbox: Inbox) -> Self {
        self.with_routes(dev::mailpit_router(inbox))
    }

    /// Refuses callers and host names that `access` does not admit, and requests from pages of other sites.
    #[must_use]
    pub fn with_dev_access(self, access: DevAccess) -> Self {
        let boundary = boundary::Boundary { dev_access: Some(Arc::new(access)), ..(*self.boundary).clone() };
        Self { boundary: Arc::new(boundary), ..self }
    }

    /// Serves the start page of `postroad dev` to the callers that the dev inbox serves.
    #[must_use]
    pub fn with_dev_page(self, inbox: Option<Inbox>) -> Self {
        self.with_routes(dev::page_router(inbox))
    }

    /// Lets the callers that the dev inbox serves publish the records of domains at the DNS server of `postroad dev`.
    #[must_use]
    pub fn with_dev_dns(self, dns: LocalDns) -> Self {
        let app = self.state.app.clone();
        self.with_routes(dev::dns_router(dev::DnsState { app, dns }))
    }

    /// Serves further routes under the host names of the API. Requests carry a `postroad_app::Peer` as an extension.
    #[must_use]
    pub fn with_routes(self, routes: Router) -> Self {
        let router = self.boundary.router.clone().merge(routes);
        let boundary = boundary::Boundary { router, ..(*self.boundary).clone() };
        Self { boundary: Arc::new(boundary), ..self }
    }

    /// Serves `router` instead of the API under the host names for which `is_host` is true.
    #[must_use]
    pub fn with_virtual_host(
        self,
        is_host: impl Fn(&str) -> bool + Send + Sync + 'static,
        router: Router,
    ) -> Self {
        let virtual_host = boundary::VirtualHost { is_host: Arc::new(is_host), router };
        let boundary = boundary::Boundary { virtual_host: Some(virtual_host), ..(*self.boundary).clone() };
        Self { boundary: Arc::new(boundary), ..self }
    }
}
