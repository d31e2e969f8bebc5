//! DKIM keys for domains: generated here, or imported from another service.

use postroad_mail::{DkimAlgorithm, DkimKey, DkimKeyError, Signer};
use postroad_model::DomainName;
use postroad_model::token::random_text;
use postroad_store::{KeyAlgorithm, NewDkimKey, StoreError};

use super::DomainRefusal;
use super::limits::DomainLimits;
use crate::FieldProblem;

/// Requested key, not checked yet.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct DkimKeyRequest {
    /// PEM, PKCS #1 or PKCS #8. If absent, a key is generated.
    pub private_key: Option<String>,
    /// If absent, a new selector is generated.
    pub selector: Option<String>,
    /// `rsa`, or `ed25519` for a second signature. If absent: that of the imported key, or `rsa` for a generated key.
    #[serde(default)]
    pub algorithm: Option<String>,
}

impl std::fmt::Debug for DkimKeyRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DkimKeyRequest").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// The imported key, or a new one. Checks all fields and reports all problems at once.
pub(super) async fn import_or_generate(
    limits: &DomainLimits,
    domain: &DomainName,
    request: DkimKeyRequest,
) -> Result<NewDkimKey, DomainRefusal> {
    let DkimKeyRequest { private_key, selector, algorithm } = request;
    let mut problems = Vec::new();
    let algorithm = match algorithm.as_deref() {
        None => None,
        Some(text) => {
            let known = KeyAlgorithm::parse(text);
            if known.is_none() {
                problems.push(FieldProblem::new("/algorithm", "`algorithm` should be `rsa` or `ed25519`"));
            }
            known
        }
    };
    let selector = match selector {
        None => new_selector(),
        Some(text) => {
            let text = normalise_selector(&text);
            if !is_selector(&text, domain) {
                let message = "`selector` should be letters, digits, `-`, `_` and `.`, such as `postal-a1b2`, and short \
                               enough for a DNS name";
                problems.push(FieldProblem::new("/selector", message));
            }
            text
        }
    };
    let key = match private_key {
        None => None,
        Some(text) => match DkimKey::from_pem(&text) {
            Ok(key) => Some(key),
            Err(error) => {
                problems.push(FieldProblem::new("/private_key", format!("`private_key`: {error}")));
                None
            }
        },
    };
    if let (Some(wanted), Some(key)) = (algorithm, &key)
        && wanted != algorithm_of(key)
    {
        let message =
            format!("`algorithm` is not the one of `private_key`, which is {}", algorithm_of(key).as_str());
        problems.push(FieldProblem::new("/algorithm", message));
    }
    if !problems.is_empty() {
        return Err(DomainRefusal::Validation(problems));
    }
    let key = match key {
        Some(key) => key,
        None => generate(limits, algorithm.unwrap_or(KeyAlgorithm::Rsa)).await?,
    };
    Ok(to_new_dkim_key(selector, &key))
}

/// Generates a key with a new selector.
pub(super) async fn generate_with_new_selector(
    limits: &DomainLimits,
    algorithm: KeyAlgorithm,
) -> Result<NewDkimKey, DomainRefusal> {
    Ok(to_new_dkim_key(new_selector(), &generate(limits, algorithm).await?))
}

/// Generates a key. An RSA key takes long, so the work runs on a blocking thread, for a few keys at a time.
async fn generate(limits: &DomainLimits, algorithm: KeyAlgorithm) -> Result<DkimKey, DomainRefusal> {
    let _permit = limits.begin_key_generation().await;
    let generate = move || match algorithm {
        KeyAlgorithm::Rsa => DkimKey::generate(),
        KeyAlgorithm::Ed25519 => DkimKey::generate_ed25519(),
    };
    let generated = tokio::task::spawn_blocking(generate).await;
    let stopping = |_| StoreError::Unavailable("the service is stopping".to_owned());
    let failed = |error: DkimKeyError| StoreError::Internal(error.to_string());
    Ok(generated.map_err(stopping).and_then(|generated| generated.map_err(failed))?)
}

fn to_new_dkim_key(selector: String, key: &DkimKey) -> NewDkimKey {
    NewDkimKey {
        selector,
        algorithm: algorithm_of(key),
        private_pkcs8: key.private_pkcs8_der().to_vec(),
        public_spki: key.public_spki_der().to_vec(),
    }
}

fn algorithm_of(key: &DkimKey) -> KeyAlgorithm {
    match key.algorithm() {
        DkimAlgorithm::Rsa => KeyAlgorithm::Rsa,
        DkimAlgorithm::Ed25519 => KeyAlgorithm::Ed25519,
    }
}

/// A selector in its stored form: in lower case, without spaces around it.
pub(super) fn normalise_selector(selector: &str) -> String {
    selector.trim().to_ascii_lowercase()
}

fn new_selector() -> String {
    format!("pr-{}", random_text(&mut rand::rng(), 8).to_ascii_lowercase())
}

/// Whether the signer accepts the selector and its record name is valid.
fn is_selector(text: &str, domain: &DomainName) -> bool {
    Signer::is_selector(text)
        && text.split('.').all(|label| label.len() <= 63)
        && format!("{text}._domainkey.{domain}").len() <= 253
}
