//! Pools that a server's mail can leave from.

use postroad_app::access::Operation;
use postroad_app::ip_pools::PoolFilter;
use postroad_model::{AccountId, PoolId};

use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of pools to choose from.
const POOLS_MAX: usize = 100;

/// A pool that mail can leave from.
pub(crate) struct PoolChoice {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) is_chosen: bool,
}

/// Pools that the account sees, or all for the operator. The shared pool is left out, because servers without a pool of
/// their own send from it. The chosen pool is always among them, even if it is the shared one.
pub(crate) async fn list_pool_choices(
    visit: &Visit,
    account: AccountId,
    chosen: Option<PoolId>,
) -> Result<Vec<PoolChoice>, Problem> {
    let is_operator = visit.person.user.operator;
    let account = (!is_operator).then_some(account);
    let filter = PoolFilter { account, shared: Some(false), ..PoolFilter::default() };
    let (mut pools, _) = visit.app().list_ip_pools(&visit.requester, filter, None, POOLS_MAX).await?;
    // Without the chosen pool, the form would show the shared one, and saving would move the server there.
    if let Some(chosen) = chosen
        && pools.iter().all(|view| view.pool.id != chosen)
    {
        pools.push(visit.app().find_ip_pool(&visit.requester, Operation::IpPoolsGet, chosen).await?);
    }
    let choice = |pool: &postroad_store::Pool| PoolChoice {
        id: pool.id.0,
        name: pool.name.clone(),
        is_chosen: chosen == Some(pool.id),
    };
    Ok(pools.iter().map(|view| choice(&view.pool)).collect())
}
