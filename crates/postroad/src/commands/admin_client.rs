//! Admin commands, executed by the running server over its control socket or on the store itself.

use anyhow::Context;
use postroad_app::App;
use postroad_app::admin::Command;
use postroad_store::Role;
use serde_json::Value;

use crate::config::Config;
use crate::control::{self, Request};
use crate::service;

/// Executes admin commands, by the running server if there is one, else on the store itself.
pub(super) struct AdminClient {
    config: Config,
    /// Whether the caller wants JSON.
    pub(super) json: bool,
    /// The store itself, once no server was found to run on it.
    app: Option<App>,
}

impl AdminClient {
    pub(super) fn new(config: Config, json: bool) -> Self {
        Self { config, json, app: None }
    }

    pub(super) async fn execute(&mut self, command: Command) -> anyhow::Result<Value> {
        if self.app.is_none() {
            let request = Request::Admin(command.clone());
            if let Some(answer) = control::send(&self.config.data_dir, &request).await? {
                return Ok(answer);
            }
            if !matches!(command, Command::AccountCreate { .. }) {
                service::check_installation(&self.config)?;
            }
            let app = service::open_app(&self.config, Role::Tool).await?.0;
            app.set_domain_checker(self.config.domain_checker()?);
            self.app = Some(app);
        }
        let app = self.app.as_ref().context("the store was opened")?;
        Ok(app.execute(command).await?)
    }
}
