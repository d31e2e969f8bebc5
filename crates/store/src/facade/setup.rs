//! The set-up: accounts, servers, credentials, settings.

use postroad_model::{AccountId, CredentialId, PoolId, ServerId, Timestamp};

use crate::records::{
    Account, Credential, CredentialAccess, KeyHash, NewCredential, NewServer, Server, ServerTracking,
};
use crate::verbs::{accounts, credentials, servers, settings, tracking};
use crate::{Result, Store};

impl Store {
    pub async fn create_account(&self, name: String) -> Result<Account> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(accounts::create(sql, name, now))).await
    }

    pub async fn list_accounts(&self) -> Result<Vec<Account>> {
        self.read(move |sql| Box::pin(accounts::list(sql))).await
    }

    pub async fn set_account_suspended(&self, id: AccountId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(accounts::set_suspended(sql, id, reason, now))).await
    }

    pub async fn create_server(&self, new: NewServer) -> Result<Server> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(servers::create(sql, new, now))).await
    }

    pub async fn list_servers(&self) -> Result<Vec<Server>> {
        self.read(move |sql| Box::pin(servers::list(sql))).await
    }

    pub async fn set_server_suspended(&self, id: ServerId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(servers::set_suspended(sql, id, reason, now))).await
    }

    /// `None` for the installation's default. `NotFound` also if there is no such pool.
    pub async fn set_server_pool(&self, id: ServerId, pool_id: Option<PoolId>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(servers::set_pool(sql, id, pool_id, now))).await
    }

    pub async fn set_server_tracking(&self, id: ServerId, tracking: ServerTracking) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(tracking::set_of_server(sql, id, tracking, now))).await
    }

    pub async fn find_server(&self, id: ServerId) -> Result<Option<Server>> {
        self.read(move |sql| Box::pin(servers::find(sql, id))).await
    }

    pub async fn create_credential(&self, new: NewCredential) -> Result<CredentialId> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::create(sql, new, now))).await
    }

    /// With a user name for SMTP, in lower case. `Conflict` if another credential has it.
    pub async fn create_credential_with_login(
        &self,
        new: NewCredential,
        login: String,
    ) -> Result<CredentialId> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::create_with_login(sql, new, login, now))).await
    }

    /// Hashes of key and secret of the credentials that log in by this name.
    pub async fn find_login(&self, login: String) -> Result<Vec<(KeyHash, KeyHash)>> {
        self.read(move |sql| Box::pin(credentials::find_login(sql, login))).await
    }

    /// Every user name for SMTP and its credential.
    pub async fn list_logins(&self) -> Result<Vec<(CredentialId, String)>> {
        self.read(move |sql| Box::pin(credentials::list_logins(sql))).await
    }

    pub async fn find_credential_access(&self, key: KeyHash) -> Result<Option<CredentialAccess>> {
        self.read(move |sql| Box::pin(credentials::find_access(sql, key))).await
    }

    pub async fn find_credential(&self, id: CredentialId) -> Result<Option<Credential>> {
        self.read(move |sql| Box::pin(credentials::find(sql, id))).await
    }

    /// All credentials, or those of one server.
    pub async fn list_credentials(&self, server_id: Option<ServerId>) -> Result<Vec<Credential>> {
        self.read(move |sql| Box::pin(credentials::list(sql, server_id))).await
    }

    pub async fn revoke_credential(&self, id: CredentialId) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::revoke(sql, id, now))).await
    }

    /// Puts `new` beside `old`, which stays good until `old_expires_at`. `NotFound` if `old` is revoked.
    pub async fn rotate_credential(
        &self,
        old: CredentialId,
        old_expires_at: Timestamp,
        new: NewCredential,
    ) -> Result<CredentialId> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::rotate(sql, old, old_expires_at, new, now))).await
    }

    pub async fn touch_credentials(&self, used: Vec<(CredentialId, Timestamp)>) -> Result<()> {
        self.write(move |sql| Box::pin(credentials::touch(sql, used))).await
    }

    pub async fn find_setting(&self, key: &'static str) -> Result<Option<String>> {
        self.read(move |sql| Box::pin(settings::find(sql, key))).await
    }

    /// `None` removes the setting.
    pub async fn set_setting(&self, key: &'static str, value: Option<String>) -> Result<()> {
        self.write(move |sql| Box::pin(settings::set(sql, key, value))).await
    }

    /// Sets what is not set yet; returns what stands. Of several at once, one wins.
    pub async fn setting_or_insert(&self, key: &'static str, value: String) -> Result<String> {
        self.write(move |sql| Box::pin(settings::find_or_insert(sql, key, value))).await
    }
}
