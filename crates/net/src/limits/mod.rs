//! Limits on what one client or tenant can use: permits, bytes in memory, and connections or requests per address.

mod byte_pool;
mod fair_pool;
mod per_address;

pub use byte_pool::{BytePool, ByteShare};
pub use fair_pool::{FairPermit, FairPool};
pub use per_address::{AddressPermit, PerAddressLimit};
