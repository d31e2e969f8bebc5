//! RSA key of this installation that signs webhooks in Postal's format. Created once, kept in the store, the
//! same on every node.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_boxed_futures::boxed_futures;
use postroad_mail::DkimKey;

use crate::App;
use crate::admin::AdminError;

const WEBHOOK_KEY_SETTING: &str = "webhook_key";

#[boxed_futures]
impl App {
    /// Key in PKCS #8 form; created if it is missing.
    pub async fn webhook_key(&self) -> Result<Vec<u8>, AdminError> {
        let store = &self.inner.store;
        let stored = match store.find_setting(WEBHOOK_KEY_SETTING).await? {
            Some(stored) => stored,
            None => store.find_or_insert_setting(WEBHOOK_KEY_SETTING, new_key().await?).await?,
        };
        let unreadable = || {
            AdminError::refused(format!("the setting `{WEBHOOK_KEY_SETTING}` in the store is not readable"))
        };
        STANDARD.decode(stored).map_err(|_| unreadable())
    }
}

async fn new_key() -> Result<String, AdminError> {
    let key = tokio::task::spawn_blocking(DkimKey::generate)
        .await
        .map_err(|_| AdminError::refused("the service is stopping"))?
        .map_err(|error| AdminError::refused(format!("generating the key for webhooks failed: {error}")))?;
    Ok(STANDARD.encode(key.private_pkcs8_der()))
}
