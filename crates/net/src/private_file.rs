//! Files that only their owner may read.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

const MODE: u32 = 0o600;

/// Creates the file, readable by its owner only, or replaces the content of an existing file.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(false).write(true).mode(MODE).open(path)?;
    // An existing file has kept its mode. If the mode cannot be changed, the file keeps its content too.
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_becomes_private() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("key.pem");
        std::fs::write(&path, "old and longer").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "new").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!((std::fs::read_to_string(&path).unwrap(), mode & 0o777), ("new".to_owned(), MODE));
    }
}
