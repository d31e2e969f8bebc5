//! SQL condition for the domains of a server and of its account, verified or not.

/// Condition that `d` is a domain of the server $1 or of its account. Does not check that the domain is verified,
/// which sending also requires.
macro_rules! usable {
    () => {
        "(d.server_id = $1
          OR (d.server_id IS NULL AND d.account_id = (SELECT account_id FROM servers WHERE id = $1)))"
    };
}
pub(super) use usable;
