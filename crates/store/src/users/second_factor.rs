//! The second factor: codes of an authenticator app, and recovery codes. Each code can be used once.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Timestamp, UserId};

use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Stores the sealed seed of an app that is being set up.
    pub async fn propose_totp(&self, id: UserId, sealed_seed: Vec<u8>) -> Result<()> {
        let text = "UPDATE users SET totp_pending = $2 WHERE id = $1";
        self.execute_one(text, vec![id.0.into(), sealed_seed.into()]).await
    }

    /// Activates the proposed seed, with new recovery codes. `step` is the time step of the code that proved the seed.
    pub async fn enable_totp(&self, id: UserId, step: i64, recovery_codes: Vec<KeyHash>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(enable(sql, id, step, recovery_codes, now))).await
    }

    /// `NotFound` if the person has no second factor.
    pub async fn disable_totp(&self, id: UserId) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(disable(sql, id, now))).await
    }

    /// Consumes the code of a time step; `false` if this code, or one of a later step, was used before.
    pub async fn take_totp_step(&self, id: UserId, step: i64) -> Result<bool> {
        let text = "UPDATE users SET totp_step = $2 WHERE id = $1 AND totp_step < $2";
        Ok(self.execute(text, vec![id.0.into(), step.into()]).await? == 1)
    }

    /// Consumes a recovery code; `false` if it does not exist.
    pub async fn take_recovery_code(&self, id: UserId, code: KeyHash) -> Result<bool> {
        let text = "DELETE FROM user_recovery_codes WHERE user_id = $1 AND code_hash = $2";
        Ok(self.execute(text, vec![id.0.into(), code.0.to_vec().into()]).await? == 1)
    }

    pub async fn count_recovery_codes(&self, id: UserId) -> Result<usize> {
        let text = "SELECT user_id FROM user_recovery_codes WHERE user_id = $1";
        Ok(self.fetch_all(text, vec![id.0.into()], |row| row.int(0)).await?.len())
    }
}

async fn enable(
    sql: &Sql<'_>,
    id: UserId,
    step: i64,
    recovery_codes: Vec<KeyHash>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute_one(
        "UPDATE users SET totp_seed = totp_pending, totp_pending = NULL, totp_step = $2, version = version + 1, updated_at = $3
         WHERE id = $1 AND totp_pending IS NOT NULL",
        &[id.0.into(), step.into(), now.into()],
    )
    .await?;
    sql.execute("DELETE FROM user_recovery_codes WHERE user_id = $1", &[id.0.into()]).await?;
    for code in recovery_codes {
        let text = "INSERT INTO user_recovery_codes (user_id, code_hash) VALUES ($1, $2)";
        sql.execute(text, &[id.0.into(), code.0.to_vec().into()]).await?;
    }
    Ok(())
}

async fn disable(sql: &Sql<'_>, id: UserId, now: Timestamp) -> Result<(), StoreError> {
    sql.execute_one(
        "UPDATE users SET totp_seed = NULL, totp_pending = NULL, version = version + 1, updated_at = $2
         WHERE id = $1 AND totp_seed IS NOT NULL",
        &[id.0.into(), now.into()],
    )
    .await?;
    sql.execute("DELETE FROM user_recovery_codes WHERE user_id = $1", &[id.0.into()]).await?;
    Ok(())
}
