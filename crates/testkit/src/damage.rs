//! Invalid data for the SQLite database of a stopped service, which no version of Postroad would write.

use std::path::Path;
use std::process::Command;

/// Sets the recipient of every message to this text.
pub fn set_recipients(database: &Path, text: &str) {
    let script = "import sqlite3, sys\n\
                  connection = sqlite3.connect(sys.argv[1])\n\
                  connection.execute('UPDATE messages SET rcpt_to = ?', (sys.argv[2],))\n\
                  connection.commit()\n";
    let status = Command::new("python3").args(["-c", script]).arg(database).arg(text).status();
    assert!(status.expect("python3 is there").success(), "{} cannot be changed", database.display());
}
