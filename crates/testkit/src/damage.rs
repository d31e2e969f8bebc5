//! Direct changes of a service's SQLite database: invalid or missing data, and many old keys.

use std::path::Path;
use std::process::Command;

/// Sets the recipient of every message to this text. The service must be stopped.
pub fn set_recipients(database: &Path, text: &str) {
    execute(database, &format!("UPDATE messages SET rcpt_to = '{}'", text.replace('\'', "''")));
}

/// Removes the texts of all messages; their other rows stay.
pub const REMOVE_TEXTS: &str = "DELETE FROM bodies";

/// Adds 1,001 revoked copies of the operator's newest key, as many starts of `postroad dev` leave them.
pub const ADD_REVOKED_KEYS: &str = "
    WITH RECURSIVE start (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM start WHERE number < 1001)
    INSERT INTO account_keys (account_id, name, key_hash, scopes, allow, created_at, updated_at, revoked_at)
    SELECT account_id, name, randomblob(32), scopes, allow, created_at, updated_at, 1
    FROM account_keys JOIN start
    WHERE id = (SELECT max(id) FROM account_keys WHERE account_id IS NULL)";

/// Runs statements on the database.
pub fn execute(database: &Path, statements: &str) {
    let script = "import sqlite3, sys\n\
                  connection = sqlite3.connect(sys.argv[1])\n\
                  connection.executescript(sys.argv[2])\n\
                  connection.commit()\n";
    let status = Command::new("python3").args(["-c", script]).arg(database).arg(statements).status();
    assert!(status.expect("python3 is there").success(), "{} cannot be changed", database.display());
}
