//! Which domains a server may send from.

/// Condition that `d` is a domain that the server $1 may send from: its own, or its account's.
macro_rules! usable {
    () => {
        "(d.server_id = $1
          OR (d.server_id IS NULL AND d.account_id = (SELECT account_id FROM servers WHERE id = $1)))"
    };
}
pub(super) use usable;
