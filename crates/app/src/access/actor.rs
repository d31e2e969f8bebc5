//! The actor of an operation: a key, a person, or the command line.

use postroad_model::{
    AccountId, AccountKeyId, AccountScope, CredentialId, Scope, ServerId, UserId, UserRole,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The operator at the command line of the machine.
    CommandLine,
    OperatorKey {
        id: AccountKeyId,
        scopes: Vec<AccountScope>,
    },
    AccountKey {
        id: AccountKeyId,
        account_id: AccountId,
        scopes: Vec<AccountScope>,
    },
    /// A person who signed in to the portal.
    User {
        id: UserId,
        account_id: AccountId,
        role: UserRole,
        /// Whether the person has the operator's rights as well.
        operator: bool,
    },
    ServerKey {
        id: CredentialId,
        server_id: ServerId,
        scope: Scope,
        /// Whether the key is a test key, which reads, and sends in test mode, but changes nothing.
        test: bool,
    },
}

impl Actor {
    /// The account of an account key or person. `None` for other actors, also for a server key, which carries only the
    /// id of its server.
    pub fn account_id(&self) -> Option<AccountId> {
        match self {
            Self::AccountKey { account_id, .. } | Self::User { account_id, .. } => Some(*account_id),
            Self::CommandLine | Self::OperatorKey { .. } | Self::ServerKey { .. } => None,
        }
    }

    /// Whether the actor is the operator: at the command line, with an operator key, or signed in with the operator's
    /// rights.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::CommandLine | Self::OperatorKey { .. } | Self::User { operator: true, .. })
    }

    /// Kind and id, as the audit log names them.
    pub fn name(&self) -> (&'static str, Option<i64>) {
        match self {
            Self::CommandLine => ("command_line", None),
            Self::OperatorKey { id, .. } => ("operator_key", Some(id.0)),
            Self::AccountKey { id, .. } => ("account_key", Some(id.0)),
            Self::User { id, .. } => ("user", Some(id.0)),
            Self::ServerKey { id, .. } => ("server_key", Some(id.0)),
        }
    }
}
