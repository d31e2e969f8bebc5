//! Files that only their owner may read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates the file, readable by its owner only, or replaces the content of an existing file.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
