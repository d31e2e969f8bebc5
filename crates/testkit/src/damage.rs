//! Invalid data for the SQLite database of a service, which no version of Postroad would write.

use std::path::Path;
use std::process::Command;

/// Sets the recipient of every message to this text. The service must be stopped.
pub fn set_recipients(database: &Path, text: &str) {
    execute(database, &format!("UPDATE messages SET rcpt_to = '{}'", text.replace('\'', "''")));
}

/// Runs statements on the database.
pub fn execute(database: &Path, statements: &str) {
    let script = "import sqlite3, sys\n\
                  connection = sqlite3.connect(sys.argv[1])\n\
                  connection.executescript(sys.argv[2])\n\
                  connection.commit()\n";
    let status = Command::new("python3").args(["-c", script]).arg(database).arg(statements).status();
    assert!(status.expect("python3 is there").success(), "{} cannot be changed", database.display());
}
