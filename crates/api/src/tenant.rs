//! Tenants: the limits on threads, memory and calls in flight apply to each tenant.

use postroad_model::{AccountId, ServerId};

/// A server, an account (its own calls, apart from those of its servers), or the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tenant {
    Server(ServerId),
    Account(AccountId),
    Operator,
}

impl From<ServerId> for Tenant {
    fn from(id: ServerId) -> Self {
        Self::Server(id)
    }
}
