//! Data that no version of ours would write, put into a stopped service's SQLite database.

use std::path::Path;
use std::process::Command;

/// Gives every message this text as its recipient.
pub fn set_recipients(database: &Path, text: &str) {
    let script = "import sqlite3, sys\n\
                  connection = sqlite3.connect(sys.argv[1])\n\
                  connection.execute('UPDATE messages SET rcpt_to = ?', (sys.argv[2],))\n\
                  connection.commit()\n";
    let status = Command::new("python3").args(["-c", script]).arg(database).arg(text).status();
    assert!(status.expect("python3 is there").success(), "{} cannot be changed", database.display());
}
