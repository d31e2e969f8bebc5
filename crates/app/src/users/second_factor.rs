//! The second factor: an authenticator app, with recovery codes in case the app is lost.

use postroad_boxed_futures::boxed_futures;
use postroad_model::token::random_text;
use postroad_store::{AuditSubject, User};
use rand::RngCore as _;

use super::profile::own_requester;
use super::{SignedInPerson, UserRefusal, totp};
use crate::App;
use crate::access::Operation;
use crate::secrets::hash;

const RECOVERY_CODE_COUNT: usize = 10;
const RECOVERY_CODE_CHARS: usize = 12;
const ISSUER: &str = "Postroad";

/// A seed for an authenticator app, not active yet.
#[derive(Clone)]
pub struct ProposedTotp {
    /// The seed as text, for typing it in.
    pub secret: String,
    /// `otpauth://` URL, to be shown as a QR code.
    pub url: String,
}

impl std::fmt::Debug for ProposedTotp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProposedTotp").finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Creates a seed for the person's app; `enable_totp` activates it.
    pub async fn propose_totp(&self, person: &SignedInPerson) -> Result<ProposedTotp, UserRefusal> {
        if person.user.totp_seed.is_some() {
            return Err(UserRefusal::TotpEnabled);
        }
        let mut seed = [0; totp::SEED_BYTES];
        rand::rng().fill_bytes(&mut seed);
        let sealed = self.inner.sealing_key.seal(&seal_purpose(&person.user), &seed);
        self.inner.store.propose_totp(person.user.id, sealed).await?;
        let secret = totp::base32(&seed);
        let label = person.user.email.replace('@', "%40").replace('+', "%2B");
        let url = format!("otpauth://totp/{ISSUER}:{label}?secret={secret}&issuer={ISSUER}");
        Ok(ProposedTotp { secret, url })
    }

    /// Activates the proposed seed after a code proves that the app has the seed. Returns the recovery codes, which are
    /// shown only once.
    pub async fn enable_totp(&self, person: &SignedInPerson, code: &str) -> Result<Vec<String>, UserRefusal> {
        let by = own_requester(person, Operation::PersonEnableTotp)?;
        let user = self.inner.store.find_user(person.user.id).await?.ok_or(UserRefusal::LinkInvalid)?;
        let Some(sealed) = &user.totp_pending else { return Err(UserRefusal::TotpDisabled) };
        let seed =
            self.inner.sealing_key.unseal(&seal_purpose(&user), sealed).map_err(UserRefusal::Sealed)?;
        let step = totp::find_step(&seed, code, self.inner.clock.now()).ok_or(UserRefusal::WrongCode)?;
        let codes = new_recovery_codes();
        let hashes = codes.iter().map(|code| hash(code)).collect();
        let store = self.audited_store(&by, Operation::PersonEnableTotp, AuditSubject::User(user.id));
        store.enable_totp(user.id, step, hashes).await?;
        Ok(codes)
    }

    /// Disables the second factor. Requires a code, so that nobody can disable it in a browser left open. Attempts are
    /// limited.
    pub async fn disable_totp(&self, person: &SignedInPerson, code: &str) -> Result<(), UserRefusal> {
        let by = own_requester(person, Operation::PersonDisableTotp)?;
        let user = self.inner.store.find_user(person.user.id).await?.ok_or(UserRefusal::LinkInvalid)?;
        if user.totp_seed.is_none() {
            return Err(UserRefusal::TotpDisabled);
        }
        let attempt = self.count_sign_in(&user.email, Some(user.id), person.address).await?;
        self.take_code(&user, code).await?;
        self.forgive_sign_in(attempt).await?;
        let store = self.audited_store(&by, Operation::PersonDisableTotp, AuditSubject::User(user.id));
        Ok(store.disable_totp(user.id).await?)
    }

    /// Number of unused recovery codes.
    pub async fn count_recovery_codes(&self, person: &SignedInPerson) -> Result<usize, UserRefusal> {
        Ok(self.inner.store.count_recovery_codes(person.user.id).await?)
    }

    /// Consumes a code of the app or a recovery code.
    pub(super) async fn take_code(&self, user: &User, code: &str) -> Result<(), UserRefusal> {
        let Some(sealed) = &user.totp_seed else { return Err(UserRefusal::TotpDisabled) };
        let store = &self.inner.store;
        let recovery: String =
            code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        if recovery.len() == RECOVERY_CODE_CHARS {
            let is_taken = store.take_recovery_code(user.id, hash(&recovery)).await?;
            return if is_taken { Ok(()) } else { Err(UserRefusal::WrongCode) };
        }
        let seed = self.inner.sealing_key.unseal(&seal_purpose(user), sealed).map_err(UserRefusal::Sealed)?;
        let step = totp::find_step(&seed, code, self.inner.clock.now()).ok_or(UserRefusal::WrongCode)?;
        if store.take_totp_step(user.id, step).await? { Ok(()) } else { Err(UserRefusal::WrongCode) }
    }
}

fn new_recovery_codes() -> Vec<String> {
    let mut rng = rand::rng();
    (0..RECOVERY_CODE_COUNT)
        .map(|_| random_text(&mut rng, RECOVERY_CODE_CHARS).to_ascii_lowercase())
        .collect()
}

/// Purpose under which a person's seed is sealed: a seed copied to another person's row cannot be unsealed.
fn seal_purpose(user: &User) -> String {
    format!("totp:{}", user.id)
}
