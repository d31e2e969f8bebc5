//! Requests of the command line, executed by the running service over its control socket or on the store itself.

use postroad_app::App;
use postroad_delivery::QueueAdmin;
use postroad_store::Role;
use serde_json::Value;

use super::load_config;
use crate::cli::{AccountCommand, AdminCommand, InstallationArgs};
use crate::config::Config;
use crate::control::{self, Request};
use crate::service;

/// Executes requests: in the running service if there is one, else in this process, on the store itself.
pub(super) struct Client {
    config: Config,
    /// Whether the caller wants JSON.
    pub(super) json: bool,
    /// The store itself, if no service is running on it.
    local: Option<(App, QueueAdmin)>,
}

impl Client {
    pub(super) fn new(args: InstallationArgs) -> anyhow::Result<Self> {
        let file = args.config.as_deref().filter(|_| args.data_dir.is_none());
        let mut config = load_config(file, args.json)?;
        if let Some(data_dir) = args.data_dir {
            config.data_dir = data_dir;
        }
        Ok(Self { config, json: args.json, local: None })
    }

    pub(super) async fn execute(&mut self, request: Request) -> anyhow::Result<Value> {
        if self.local.is_none() {
            if let Some(answer) = control::send(&self.config.data_dir, &request).await? {
                return Ok(answer);
            }
            self.local = Some(self.open(&request).await?);
        }
        let (app, queue_admin) = self.local.as_ref().expect("opened above");
        request.execute(app, queue_admin).await
    }

    async fn open(&self, request: &Request) -> anyhow::Result<(App, QueueAdmin)> {
        // `account create` may create the installation; every other command needs an existing one.
        if !matches!(request, Request::Admin(AdminCommand::Account(AccountCommand::Create { .. }))) {
            service::check_installation(&self.config)?;
        }
        let (app, store) = service::open_app(&self.config, Role::Tool).await?;
        if matches!(request, Request::Admin(_)) {
            app.set_domain_checker(self.config.domain_checker()?);
            app.set_portal_base(self.config.portal_base());
        }
        Ok((app, QueueAdmin::without_engine(store)))
    }
}
