//! Identity of this installation: the secret of its return paths and Message-IDs, and its DKIM key. The identity is
//! created once and stored, so that it is the same on every node.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_boxed_futures::boxed_futures;
use postroad_mail::DkimKey;
use postroad_model::token::random_text;
use rand::RngCore as _;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::admin::AdminError;

const RETURN_PATH_SECRET_SETTING: &str = "return_path_secret";
const DKIM_KEY_SETTING: &str = "installation_dkim";

pub struct Installation {
    pub return_path_secret: [u8; 32],
    pub dkim_selector: String,
    pub dkim_private_pkcs8: Vec<u8>,
    pub dkim_public_spki: Vec<u8>,
}

impl fmt::Debug for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Installation").field("dkim_selector", &self.dkim_selector).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct StoredKey {
    selector: String,
    private: String,
}

#[boxed_futures]
impl App {
    /// Loads the identity, or creates it.
    pub async fn installation(&self) -> Result<Installation, AdminError> {
        let store = &self.inner.store;
        let unreadable = |setting: &str| {
            AdminError::refused(format!("the setting `{setting}` in the store is not readable"))
        };
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let secret =
            store.find_or_insert_setting(RETURN_PATH_SECRET_SETTING, STANDARD.encode(secret)).await?;
        let secret = STANDARD.decode(secret).ok().and_then(|bytes| bytes.try_into().ok());
        let stored = match store.find_setting(DKIM_KEY_SETTING).await? {
            Some(stored) => stored,
            None => store.find_or_insert_setting(DKIM_KEY_SETTING, new_key().await?).await?,
        };
        let stored: StoredKey = serde_json::from_str(&stored).map_err(|_| unreadable(DKIM_KEY_SETTING))?;
        let private = STANDARD.decode(&stored.private).map_err(|_| unreadable(DKIM_KEY_SETTING))?;
        let key = DkimKey::from_pkcs8_der(&private).map_err(|_| unreadable(DKIM_KEY_SETTING))?;
        Ok(Installation {
            return_path_secret: secret.ok_or_else(|| unreadable(RETURN_PATH_SECRET_SETTING))?,
            dkim_selector: stored.selector,
            dkim_public_spki: key.public_spki_der().to_vec(),
            dkim_private_pkcs8: private,
        })
    }
}

/// Generates a DKIM key in its stored form.
async fn new_key() -> Result<String, AdminError> {
    let key = tokio::task::spawn_blocking(DkimKey::generate)
        .await
        .map_err(|_| AdminError::refused("the service is stopping"))?
        .map_err(|e| AdminError::refused(format!("generating the DKIM key failed: {e}")))?;
    let stored = StoredKey {
        selector: format!("pr-{}", random_text(&mut rand::rng(), 8).to_ascii_lowercase()),
        private: STANDARD.encode(key.private_pkcs8_der()),
    };
    Ok(serde_json::to_string(&stored).expect("strings can be written as JSON"))
}
