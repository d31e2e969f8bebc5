//! Pools of source addresses. The operator creates them; an account sees its own pools, the shared pool, and pools
//! that its servers use. The HTTP API, the portal and the command line call the same functions.

mod addresses;
mod pools;
mod view;

pub use addresses::{AddressChange, NewAddress, WarmUpChange};
pub use pools::{NewPoolRequest, PoolFilter};
pub use view::{AddressView, PoolView, WarmUpState};
