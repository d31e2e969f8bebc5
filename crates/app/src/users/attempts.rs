//! Limits on sign-in attempts, mailed password resets and mailed invitations. Sign-in attempts are counted by network
//! (an IPv4 address or an IPv6 prefix), by person, and by both. Attempts from other networks do not lock a person out
//! of a network where that person signed in before.

use std::net::IpAddr;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use postroad_model::{AccountId, Timestamp, UserId, client_network};
use postroad_store::KeyHash;

use super::UserRefusal;
use crate::accounts::{AccountRefusal, CallLimit};
use crate::{App, FieldProblem};

/// Attempts are counted in windows of this length.
pub(crate) const COUNT_WINDOW: Duration = Duration::from_mins(15);
/// Maximum number of attempts for one person from one network.
const ATTEMPTS_PER_PERSON_AND_NETWORK_MAX: u32 = 10;
/// Maximum number of attempts from one network, which may be a whole office.
const ATTEMPTS_PER_NETWORK_MAX: u32 = 100;
/// Maximum number of attempts for one person from all networks; more are allowed only from networks where that person
/// signed in before.
const ATTEMPTS_PER_PERSON_MAX: u32 = 50;
/// Maximum number of password-reset mails for one person.
const RESETS_PER_PERSON_MAX: u32 = 5;
/// Maximum number of password-reset mails requested from one network.
const RESETS_PER_NETWORK_MAX: u32 = 50;
/// Maximum number of invitations that an account mails to one e-mail address.
const INVITATIONS_PER_ADDRESS_MAX: u32 = 5;
/// Maximum number of invitations that an account mails in total.
const INVITATIONS_PER_ACCOUNT_MAX: u32 = 100;

/// Keys under which one attempt was counted.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    person_and_network: KeyHash,
    network: KeyHash,
    person: KeyHash,
}

impl App {
    /// Counts an attempt before the password is compared, so that concurrent attempts are limited too.
    pub(super) async fn count_sign_in(
        &self,
        email: &str,
        user_id: Option<UserId>,
        address: IpAddr,
    ) -> Result<Attempt, UserRefusal> {
        let network = client_network(address).to_string();
        let attempt = Attempt {
            person_and_network: count_key(&["both", email, &network]),
            network: count_key(&["address", &network]),
            person: count_key(&["person", email]),
        };
        let keys = vec![attempt.person_and_network, attempt.network, attempt.person];
        let counts = self.inner.store.count_attempt(keys, self.window_start()).await?;
        let [per_person_and_network, per_network, per_person] =
            <[_; 3]>::try_from(counts).expect("`count_attempt` returns one count for each key");
        self.check_count(per_person_and_network, ATTEMPTS_PER_PERSON_AND_NETWORK_MAX)?;
        self.check_count(per_network, ATTEMPTS_PER_NETWORK_MAX)?;
        if self.check_count(per_person, ATTEMPTS_PER_PERSON_MAX).is_err() {
            // The store is asked even for an unknown person, so that the duration does not reveal whether the person
            // exists.
            let id = user_id.unwrap_or(UserId(0));
            if !self.inner.store.is_known_address(id, network).await? {
                self.check_count(per_person, ATTEMPTS_PER_PERSON_MAX)?;
            }
        }
        Ok(attempt)
    }

    /// Removes the attempt from its counts after a successful sign-in.
    pub(super) async fn forgive_sign_in(&self, attempt: Attempt) -> Result<(), UserRefusal> {
        let Attempt { person_and_network, network, person } = attempt;
        Ok(self.inner.store.forgive_attempt(vec![person_and_network, network, person]).await?)
    }

    /// Counts a request for a password-reset link; `false` if there were too many: then the caller sends no mail.
    pub(super) async fn count_reset(&self, email: &str, address: IpAddr) -> Result<bool, UserRefusal> {
        let network = client_network(address).to_string();
        let keys = vec![count_key(&["reset", email]), count_key(&["reset address", &network])];
        let counts = self.inner.store.count_attempt(keys, self.window_start()).await?;
        let limits = [RESETS_PER_PERSON_MAX, RESETS_PER_NETWORK_MAX];
        Ok(counts.iter().zip(limits).all(|((count, _), limit)| *count <= limit))
    }

    /// Counts a mailed invitation; refused if there were too many. Each account has its own counts, which neither
    /// reveal nor block another account's invitations. Returns the limit with the fewest invitations remaining.
    pub(super) async fn count_invitation(
        &self,
        account_id: AccountId,
        email: &str,
    ) -> Result<CallLimit, AccountRefusal> {
        let account = account_id.to_string();
        let keys = vec![count_key(&["invite", &account, email]), count_key(&["invite account", &account])];
        let counts = self.inner.store.count_attempt(keys, self.window_start()).await?;
        let limits = [
            (INVITATIONS_PER_ADDRESS_MAX, "was invited too often"),
            (INVITATIONS_PER_ACCOUNT_MAX, "cannot be invited now: the account has invited too many people"),
        ];
        let mut tightest = CallLimit { limit: 0, remaining: u32::MAX, resets_in: COUNT_WINDOW };
        for ((count, since), (limit, text)) in counts.into_iter().zip(limits) {
            let resets_in = since.plus(COUNT_WINDOW).since(self.inner.clock.now());
            let used = CallLimit { limit, remaining: limit.saturating_sub(count), resets_in };
            if count > limit {
                let minutes = resets_in.as_secs().div_ceil(60).max(1);
                let message = format!("`email` {text}; try again in {minutes} minutes");
                let problem = Box::new(FieldProblem::new("/email", message));
                return Err(AccountRefusal::TooManyCalls { problem, limit: used });
            }
            if used.remaining < tightest.remaining {
                tightest = used;
            }
        }
        Ok(tightest)
    }

    pub(crate) fn window_start(&self) -> Timestamp {
        self.inner.clock.now().minus(COUNT_WINDOW)
    }

    fn check_count(&self, (count, since): (u32, Timestamp), limit: u32) -> Result<(), UserRefusal> {
        if count <= limit {
            return Ok(());
        }
        let retry_after = since.plus(COUNT_WINDOW).since(self.inner.clock.now());
        Err(UserRefusal::TooManyAttempts { retry_after })
    }
}

fn count_key(parts: &[&str]) -> KeyHash {
    let hash = digest(&SHA256, parts.join("\n").as_bytes());
    KeyHash(hash.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
}
