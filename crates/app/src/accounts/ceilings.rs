//! Ceilings of an account: the operator's changes, and warnings for callers who come near a ceiling.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Change, LimitedObject, SendRate};
use postroad_store::{Account, AccountCeilings, AccountCeilingsChange};

use super::AccountRefusal;
use crate::server_settings::check_days;
use crate::{App, FieldProblem, Refusal};

/// Requested changes of an account's ceilings, not checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountCeilingsRequest {
    pub hourly_limit: Change<i64>,
    pub daily_limit: Change<i64>,
    pub monthly_limit: Change<i64>,
    pub send_rate: Change<String>,
    pub servers: Change<i64>,
    pub domains: Change<i64>,
    pub webhooks: Change<i64>,
    pub users: Change<i64>,
    pub bodies_days: Change<i64>,
    pub messages_days: Change<i64>,
}

#[boxed_futures]
impl App {
    /// A warning for the caller who added something, if nine tenths of the account's ceiling are used. No warning if
    /// the store fails: the addition itself succeeded.
    pub async fn ceiling_warning(&self, account_id: AccountId, object: LimitedObject) -> Option<String> {
        let account: Account = self.inner.store.find_account(account_id).await.ok()??;
        let ceiling = ceiling_of(&account.ceilings, object)?;
        let count = self.inner.store.count_objects(account_id, object).await.ok()?;
        let name = object.as_str();
        if count >= ceiling as usize {
            return Some(format!("The account has {count} {name}, the maximum"));
        }
        (count * 10 >= ceiling as usize * 9).then(|| format!("The account has {count} of {ceiling} {name}"))
    }

    pub(super) fn check_account_ceilings(
        &self,
        request: AccountCeilingsRequest,
    ) -> Result<AccountCeilingsChange, AccountRefusal> {
        let mut problems = Vec::new();
        let mut problem = |pointer: &str, message: &str| {
            problems.push(FieldProblem::new(format!("/ceilings{pointer}"), message));
        };
        let mut number = |name: &str, change: Change<i64>| {
            change.and_then(|limit| u32::try_from(limit).ok()).unwrap_or_else(|| {
                let message = format!("`ceilings/{name}` should be from 0 to 4294967295, or `none`");
                problem(&format!("/{name}"), &message);
                Change::Keep
            })
        };
        let mut change = AccountCeilingsChange {
            hourly_limit: number("hourly_limit", request.hourly_limit),
            daily_limit: number("daily_limit", request.daily_limit),
            monthly_limit: number("monthly_limit", request.monthly_limit),
            servers: number("servers", request.servers),
            domains: number("domains", request.domains),
            webhooks: number("webhooks", request.webhooks),
            users: number("users", request.users),
            ..AccountCeilingsChange::default()
        };
        change.send_rate = request.send_rate.and_then(|text| SendRate::parse(&text)).unwrap_or_else(|| {
            problem(
                "/send_rate",
                "`ceilings/send_rate` should be a rate such as `10/s`, `100/m` or `1000/h`, or `none`",
            );
            Change::Keep
        });
        let retention = &self.inner.retention;
        change.bodies_days = check_days("bodies_days", request.bodies_days, retention.bodies, &mut problem);
        change.messages_days =
            check_days("messages_days", request.messages_days, retention.messages, &mut problem);
        if problems.is_empty() { Ok(change) } else { Err(Refusal::Validation(problems).into()) }
    }
}

fn ceiling_of(ceilings: &AccountCeilings, object: LimitedObject) -> Option<u32> {
    match object {
        LimitedObject::Servers => ceilings.servers,
        LimitedObject::Domains => ceilings.domains,
        LimitedObject::Webhooks => ceilings.webhooks,
        LimitedObject::Users => ceilings.users,
    }
}
