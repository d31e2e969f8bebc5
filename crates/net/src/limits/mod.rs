//! Limits that listeners share: permits of which no client can take all, bytes in memory, and numbers per address.

mod byte_pool;
mod fair_pool;
mod per_address;

pub use byte_pool::{BytePool, ByteShare};
pub use fair_pool::{FairPermit, FairPool};
pub use per_address::{AddressPermit, PerAddressLimit};
