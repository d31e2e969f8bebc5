//! The permission check: actor × operation × subject.

use postroad_model::{AccountId, AccountScope, Scope, ServerId, UserRole};

use super::actor::Actor;
use super::operation::{Level, Operation};

/// Owner of the object that an operation acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An object of the installation, which belongs to no account.
    Installation,
    Account(AccountId),
    Server {
        id: ServerId,
        account_id: AccountId,
    },
    /// No object has the requested id or name.
    Absent,
}

/// Why an actor may not perform an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The operation is not for this kind of actor; contains the operation's level.
    Kind(Level),
    ServerScope {
        scope: Scope,
        needed: Scope,
    },
    AccountScopes {
        scopes: Vec<AccountScope>,
        operation: Operation,
    },
    Role {
        needed: UserRole,
    },
    /// A test key was used for a change.
    TestKey,
    /// The object does not exist or belongs to somebody else; the answer does not say which.
    NotFound,
}

/// Checks whether `actor` may perform `operation` on an object of `subject`. Denials other than `NotFound` do not
/// depend on the subject, so they reveal nothing about it.
pub fn permit(actor: &Actor, operation: Operation, subject: Subject) -> Result<(), Denial> {
    permit_any(actor, operation)?;
    let is_visible = match (actor, subject) {
        (_, Subject::Absent) => false,
        (actor, _) if actor.is_operator() => true,
        (Actor::ServerKey { server_id, .. }, Subject::Server { id, .. }) => *server_id == id,
        (
            Actor::AccountKey { account_id, .. } | Actor::User { account_id, .. },
            Subject::Account(owner) | Subject::Server { account_id: owner, .. },
        ) => *account_id == owner,
        _ => false,
    };
    if is_visible { Ok(()) } else { Err(Denial::NotFound) }
}

/// The part of `permit` that does not depend on the subject.
pub(crate) fn permit_any(actor: &Actor, operation: Operation) -> Result<(), Denial> {
    let level = operation.level();
    let is_kind_allowed = match actor {
        Actor::CommandLine => true,
        Actor::OperatorKey { .. } => !matches!(level, Level::Server | Level::Person),
        Actor::AccountKey { .. } => matches!(level, Level::Account | Level::ServerOrAccount),
        Actor::User { operator, .. } => *operator || level != Level::Operator,
        Actor::ServerKey { .. } => matches!(level, Level::Server | Level::ServerOrAccount),
    };
    if !is_kind_allowed {
        return Err(Denial::Kind(level));
    }
    match actor {
        Actor::CommandLine => Ok(()),
        Actor::OperatorKey { scopes, .. } | Actor::AccountKey { scopes, .. } => {
            let is_allowed = |scope: &AccountScope| scope.allows(operation.group(), operation.is_read());
            if scopes.iter().any(is_allowed) {
                Ok(())
            } else {
                Err(Denial::AccountScopes { scopes: scopes.clone(), operation })
            }
        }
        Actor::User { role, .. } if role.covers(operation.role()) => Ok(()),
        Actor::User { .. } => Err(Denial::Role { needed: operation.role() }),
        Actor::ServerKey { scope, test, .. } => {
            let needed = operation.effect().server_scope();
            match (scope.allows(needed), needed == Scope::Full && *test) {
                (false, _) => Err(Denial::ServerScope { scope: *scope, needed }),
                (true, true) => Err(Denial::TestKey),
                (true, false) => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::{AccountKeyId, CredentialId, UserId};

    use super::super::operation::Effect;
    use super::*;

    /// Whether an actor may perform an operation.
    type IsAllowed = Box<dyn Fn(Operation) -> bool>;
    /// Scopes of a key, and whether they allow an operation.
    type ScopeCase = (&'static [&'static str], fn(Operation) -> bool);

    const OWN: AccountId = AccountId(1);
    const OWN_SERVER: Subject = Subject::Server { id: ServerId(10), account_id: OWN };
    const OTHER_OWN_SERVER: Subject = Subject::Server { id: ServerId(11), account_id: OWN };
    const SERVER_OF_OTHER_ACCOUNT: Subject = Subject::Server { id: ServerId(20), account_id: AccountId(2) };

    /// An account key and an operator key.
    fn keys(scopes: &[&str]) -> (Actor, Actor) {
        let scopes: Vec<AccountScope> = scopes.iter().map(|text| text.parse().unwrap()).collect();
        let id = AccountKeyId(5);
        (Actor::AccountKey { id, account_id: OWN, scopes: scopes.clone() }, Actor::OperatorKey { id, scopes })
    }

    fn server_key(scope: Scope, test: bool) -> Actor {
        Actor::ServerKey { id: CredentialId(7), server_id: ServerId(10), scope, test }
    }

    /// Every kind of actor with the operations that it should be allowed, written independently of `permit`.
    fn actors() -> Vec<(Actor, IsAllowed)> {
        let mut all: Vec<(Actor, IsAllowed)> = vec![(Actor::CommandLine, Box::new(|_| true))];
        let of_account =
            |op: Operation| ["Account", "ServerOrAccount"].contains(&&*format!("{:?}", op.level()));
        let reads = |op: Operation| op.effect() == Effect::Read;
        let scope_cases: [ScopeCase; 5] = [
            (&[], |_| false),
            (&["full"], |_| true),
            (&["read"], |op| op.effect() == Effect::Read),
            (&["servers", "domains:read"], |op| {
                let domain_reads =
                    ["domains/get", "domains/list", "domains/zone", "domains/reports", "domains/links"];
                op.name().starts_with("servers/") || domain_reads.contains(&op.name())
            }),
            (&["credentials"], |op| op.name().starts_with("credentials/")),
        ];
        for (scopes, may) in scope_cases {
            let (account, operator) = keys(scopes);
            all.push((account, Box::new(move |op| of_account(op) && may(op))));
            let of_operator = |op: Operation| !["Server", "Person"].contains(&&*format!("{:?}", op.level()));
            all.push((operator, Box::new(move |op| of_operator(op) && may(op))));
        }
        for role in UserRole::ALL {
            let user = |operator| Actor::User { id: UserId(3), account_id: OWN, role, operator };
            let may = move |op: Operation| match role {
                UserRole::Owner => true,
                UserRole::Admin => op.level() != Level::Operator,
                _ if op.name().starts_with("person/") => true,
                _ if op.level() == Level::Operator => false,
                // Members and readers see neither account keys, nor other people's actions, invitations and sessions.
                _ if ["account_keys/list", "account/audit", "users/invitations", "users/sessions"]
                    .contains(&op.name()) =>
                {
                    false
                }
                UserRole::Member => {
                    reads(op)
                        || (op.level() == Level::Server
                            && !["server/update", "messages/erase"].contains(&op.name()))
                }
                UserRole::ReadOnly => reads(op),
            };
            all.push((user(false), Box::new(move |op| op.level() != Level::Operator && may(op))));
            all.push((user(true), Box::new(may)));
        }
        let of_server =
            |op: Operation| ["Server", "ServerOrAccount"].contains(&&*format!("{:?}", op.level()));
        all.push((server_key(Scope::Full, false), Box::new(of_server)));
        all.push((
            server_key(Scope::Full, true),
            Box::new(move |op| of_server(op) && op.effect() != Effect::Change),
        ));
        all.push((server_key(Scope::Read, false), Box::new(move |op| of_server(op) && reads(op))));
        all.push((
            server_key(Scope::Send, false),
            Box::new(|op| {
                ["send/message", "send/raw", "send/batch", "send/cancel", "send/reschedule", "smtp/submit"]
                    .contains(&op.name())
            }),
        ));
        all.push((server_key(Scope::Address, false), Box::new(|op| op == Operation::SmtpSubmitByAddress)));
        all
    }

    #[test]
    fn permit_agrees_with_the_table_for_every_actor_operation_and_subject() {
        for (actor, may) in &actors() {
            let is_server_key = matches!(actor, Actor::ServerKey { .. });
            for &operation in Operation::ALL {
                for subject in [
                    Subject::Installation,
                    Subject::Account(OWN),
                    OWN_SERVER,
                    OTHER_OWN_SERVER,
                    SERVER_OF_OTHER_ACCOUNT,
                    Subject::Absent,
                ] {
                    let is_visible = match subject {
                        Subject::Absent => false,
                        _ if actor.is_operator() => true,
                        OWN_SERVER => true,
                        OTHER_OWN_SERVER | Subject::Account(_) => !is_server_key,
                        _ => false,
                    };
                    let permitted = permit(actor, operation, subject);
                    let what = format!("{actor:?} {} {subject:?}: {permitted:?}", operation.name());
                    assert_eq!(permitted.is_ok(), may(operation) && is_visible, "{what}");
                    // Somebody else's object is denied like one that does not exist.
                    assert_eq!(permitted == Err(Denial::NotFound), may(operation) && !is_visible, "{what}");
                }
            }
        }
    }
}
