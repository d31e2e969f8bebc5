//! Limit on open files. Every connection is an open file, and shells and systemd start processes with a soft
//! limit of 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. If that is not permitted, the limit stays.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        let allowed = limit.current;
        tracing::warn!(%error, allowed, "raising the limit of open files failed; connections fail at the old limit");
    }
}

/// Hard limit; `None` if there is none.
pub(crate) fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
