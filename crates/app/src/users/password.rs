//! Passwords: checks on new ones, and argon2id hashes. Each hash needs 19 MiB, so only a few are computed at a time.

use std::sync::Arc;
use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use icu_normalizer::ComposingNormalizerBorrowed;
use rand::RngCore as _;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::UserRefusal;

/// The second setting that OWASP recommends: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Allowed number of characters of a normalised password.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 10..=200;
/// Longer input is rejected before it is normalised: 200 characters have fewer bytes.
pub(super) const PASSWORD_BYTES_MAX: usize = 2_000;

/// Maximum number of hashes computed at the same time.
const CONCURRENT_HASHES_MAX: usize = 2;
/// Maximum number of hashes waiting for a permit.
const WAITING_HASHES_MAX: usize = 64;
/// Longest time that a hash waits for a permit.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(10);

/// Common passwords of at least ten characters, which attackers try first; in lower case, one per line.
static COMMON_PASSWORDS: &str = include_str!("../../rules/common_passwords.txt");

/// Computes hashes, a few at a time.
#[derive(Debug)]
pub(crate) struct PasswordHasher {
    /// Permits of the hashes that are being computed.
    running: Arc<Semaphore>,
    /// Permits of the hashes that are being computed or wait.
    waiting: Semaphore,
}

impl Default for PasswordHasher {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(CONCURRENT_HASHES_MAX)),
            waiting: Semaphore::new(CONCURRENT_HASHES_MAX + WAITING_HASHES_MAX),
        }
    }
}

impl PasswordHasher {
    pub(super) async fn hash(&self, password: String) -> Result<String, UserRefusal> {
        self.run_with_permit(move || {
            let mut salt = [0; SALT_BYTES];
            rand::rng().fill_bytes(&mut salt);
            let hash = argon2id(&password, &salt);
            format!(
                "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${}${}",
                STANDARD_NO_PAD.encode(salt),
                STANDARD_NO_PAD.encode(hash)
            )
        })
        .await
    }

    /// Compares a password with its hash. Takes the same time whether or not there is a hash.
    pub(super) async fn verify(&self, password: String, stored: Option<String>) -> Result<bool, UserRefusal> {
        self.run_with_permit(move || {
            let parts = stored.as_deref().and_then(parse_stored);
            let (salt, expected) = parts.unwrap_or(([0; SALT_BYTES], [0; HASH_BYTES]));
            let is_right = argon2id(&password, &salt).ct_eq(&expected);
            bool::from(is_right) && parts.is_some()
        })
        .await
    }

    async fn run_with_permit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, UserRefusal> {
        let _waiting = self.waiting.try_acquire().map_err(|_| UserRefusal::Busy)?;
        let acquired = tokio::time::timeout(PERMIT_WAIT_MAX, Arc::clone(&self.running).acquire_owned()).await;
        let permit = acquired.map_err(|_| UserRefusal::Busy)?.map_err(|_| UserRefusal::Busy)?;
        // The work itself holds the permit: a caller that disconnects does not free the permit.
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| UserRefusal::Busy)
    }
}

fn argon2id(password: &str, salt: &[u8]) -> [u8; HASH_BYTES] {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_BYTES)).expect("the constants are allowed");
    let mut hash = [0; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.as_bytes(), salt, &mut hash)
        .expect("salt and hash have allowed lengths");
    hash
}

/// Salt and hash of a stored password. `None` for other parameters, which no version has used yet.
fn parse_stored(stored: &str) -> Option<([u8; SALT_BYTES], [u8; HASH_BYTES])> {
    let rest = stored.strip_prefix(&*format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$"))?;
    let (salt, hash) = rest.split_once('$')?;
    let decode = |text: &str| STANDARD_NO_PAD.decode(text).ok();
    Some((decode(salt)?.try_into().ok()?, decode(hash)?.try_into().ok()?))
}

/// Unicode normalisation, so that the hash does not depend on how a keyboard composes characters.
pub(super) fn normalise(password: &str) -> String {
    ComposingNormalizerBorrowed::new_nfkc().normalize(password).into_owned()
}

/// The normalised password if it is acceptable, else the reason why it is not.
pub(super) fn check_new_password(password: &str, email: &str) -> Result<String, &'static str> {
    let too_long = "The password should have at most 200 characters";
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(too_long);
    }
    let password = normalise(password);
    let count = password.chars().count();
    if count < *PASSWORD_CHARS.start() {
        return Err("The password should have at least 10 characters");
    }
    if count > *PASSWORD_CHARS.end() {
        return Err(too_long);
    }
    let lower = password.to_lowercase();
    let (local, _) = email.rsplit_once('@').unwrap_or((email, ""));
    let is_own = lower == email || (local.len() >= 4 && lower.starts_with(local) && count < local.len() + 6);
    if is_own || COMMON_PASSWORDS.lines().any(|common| common == lower) || is_monotonous(&lower) {
        return Err("The password is among those that attackers try first: choose another");
    }
    Ok(password)
}

/// Whether a password has fewer than four different characters, or is mostly a sequence such as `abcdefghij` and
/// `9876543210`.
fn is_monotonous(password: &str) -> bool {
    let chars: Vec<char> = password.chars().collect();
    let mut kinds = chars.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let steps = |by: i64| {
        chars
            .windows(2)
            .filter(|pair| i64::from(u32::from(pair[1])) - i64::from(u32::from(pair[0])) == by)
            .count()
    };
    kinds.len() < 4 || steps(1).max(steps(-1)) + 2 >= chars.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_common_passwords_are_refused() {
        let check = |password: &str| check_new_password(password, "anna.berg@example.com");
        for good in ["correct horse battery", "Zwölf Boxkämpfer", "x7#kQ9!mPz", &"ab1c2".repeat(40)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "short",
            "",
            "Password123",
            "1234567890",
            "qwertyuiop",
            "aaaaaaaaaaaa",
            "abababababab",
            "abcdefghijkl",
            "9876543210",
            "anna.berg@example.com",
            "Anna.Berg2024",
            &"ab1c2".repeat(41),
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_hash_matches_its_password_in_any_unicode_composition() {
        let hasher = PasswordHasher::default();
        let hash = hasher.hash(normalise("Zwo\u{308}lf Boxka\u{308}mpfer")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(hasher.verify(normalise("Zw\u{f6}lf Boxk\u{e4}mpfer"), Some(hash.clone())).await.unwrap());
        assert!(!hasher.verify(normalise("Zwolf Boxkampfer"), Some(hash.clone())).await.unwrap());
        assert!(!hasher.verify(String::new(), None).await.unwrap());
        assert_ne!(
            hash,
            hasher.hash(normalise("Zw\u{f6}lf Boxk\u{e4}mpfer")).await.unwrap(),
            "each hash has a new salt"
        );
    }

    #[tokio::test]
    async fn hashes_are_refused_when_too_many_wait() {
        let hasher = PasswordHasher::default();
        let all: Vec<_> = (0..CONCURRENT_HASHES_MAX + WAITING_HASHES_MAX)
            .map(|_| hasher.waiting.try_acquire().unwrap())
            .collect();
        assert!(matches!(hasher.hash("x".to_owned()).await, Err(UserRefusal::Busy)));
        drop(all);
    }
}
