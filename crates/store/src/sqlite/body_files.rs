//! Large bodies as files: written and flushed before the row that names them. A crash before the row is committed
//! leaves an orphaned file, which the sweep at start removes. A row without its file cannot occur.

use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use postroad_model::SendId;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{OpenError, StoreError};

/// Number of folders below the body folder, so that each of them stays small enough to list.
const FOLDERS: i64 = 256;

#[derive(Debug, Clone)]
pub(super) struct BodyFiles {
    folder: Arc<Path>,
}

impl BodyFiles {
    pub(super) fn open(folder: PathBuf) -> Result<Self, OpenError> {
        super::create_private_folder(&folder)?;
        Ok(Self { folder: folder.into() })
    }

    /// Writes a body. When this returns `Ok`, the file and its name are on stable storage.
    pub(super) async fn write(&self, id: SendId, compressed: Bytes) -> Result<(), StoreError> {
        let path = self.path(id);
        blocking(move || write_durably(&path, &compressed)).await
    }

    /// Fails if no new file can be created. The database's own files have been open since the start, so writing to them
    /// says nothing about permissions.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        // In a folder of bodies: if the process dies before the file is removed, the sweep at the next start removes
        // it.
        let path = self.folder.join("00").join("check.part");
        blocking(move || {
            create_part(&path)?.write_all(b"x")?;
            fs::remove_file(&path)
        })
        .await
    }

    pub(super) async fn read(&self, id: SendId) -> Result<Vec<u8>, StoreError> {
        let path = self.path(id);
        blocking(move || fs::read(path)).await
    }

    pub(super) fn remove(&self, id: SendId) {
        if let Err(error) = fs::remove_file(self.path(id)) {
            tracing::warn!(%error, send.id = %id, "orphaned body not removed; retrying at the next start");
        }
    }

    /// Overwrites and removes a body. If it cannot be overwritten, it is only removed.
    pub(super) async fn erase(&self, id: SendId) {
        let path = self.path(id);
        if let Err(error) = blocking(move || overwrite(&path)).await {
            tracing::warn!(%error, send.id = %id, "body of an erased message not overwritten; it is only removed");
        }
        self.remove(id);
    }

    /// Removes files that no row names. Runs before the store takes work, so every file is either named or an orphan.
    /// Leaves everything outside its own folders alone, such as `lost+found`.
    pub(super) fn sweep(&self, connection: &Connection) -> Result<(), OpenError> {
        let mut named = connection
            .prepare("SELECT 1 FROM bodies WHERE send_id = ?1 AND data IS NULL")
            .map_err(StoreError::from)?;
        for folder in fs::read_dir(&self.folder).map_err(OpenError::io(&*self.folder))? {
            let folder = folder.map_err(OpenError::io(&*self.folder))?.path();
            if !is_own_folder(&folder) {
                continue;
            }
            for file in fs::read_dir(&folder).map_err(OpenError::io(&folder))? {
                let path = file.map_err(OpenError::io(&folder))?.path();
                let id =
                    path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse::<i64>().ok());
                let is_whole = path.extension().is_some_and(|ending| ending == "zst");
                let keep = match id.filter(|_| is_whole) {
                    Some(id) => {
                        named.query_row([id], |_| Ok(())).optional().map_err(StoreError::from)?.is_some()
                    }
                    None => false,
                };
                if keep {
                    continue;
                }
                // The file may be left by an erasure that was interrupted after it had removed the row.
                if let Err(error) = overwrite(&path).and_then(|()| fs::remove_file(&path)) {
                    tracing::warn!(%error, path = %path.display(), "orphaned body not removed; retrying at the next start");
                }
            }
        }
        Ok(())
    }

    fn path(&self, id: SendId) -> PathBuf {
        self.folder.join(format!("{:02x}", id.0 % FOLDERS)).join(format!("{id}.zst"))
    }
}

/// Whether this is one of the folders in which `BodyFiles::path` places files.
fn is_own_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.is_dir()
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("body files are in a folder");
    let unfinished = path.with_extension("part");
    let written = (|| {
        let mut file = create_part(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        // Flush the names: of the file in its folder, and of the folder in its parent (it may be new).
        fs::File::open(folder)?.sync_all()?;
        fs::File::open(folder.parent().expect("the body folder is above"))?.sync_all()
    })();
    if written.is_err() {
        // The disk is probably full: free the space again. The error may have come before or after the rename.
        let _ = fs::remove_file(&unfinished);
        let _ = fs::remove_file(path);
    }
    written
}

fn overwrite(path: &Path) -> io::Result<()> {
    let mut file = fs::File::options().write(true).open(path)?;
    let bytes = file.metadata()?.len();
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.sync_all()
}

/// Creates an unfinished file (`.part`) and its folder, accessible to the owner only.
fn create_part(path: &Path) -> io::Result<fs::File> {
    let folder = path.parent().expect("body files are in a folder");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(path)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => {
            result.map_err(|e| StoreError::Unavailable(format!("a body file cannot be read or written: {e}")))
        }
        Err(_) => Err(StoreError::Unavailable(
            "the task for a body file ended early: the service is stopping, or it panicked".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_erased_body_is_overwritten_before_it_is_removed() {
        let folder = tempfile::TempDir::new().unwrap();
        let bodies = BodyFiles::open(folder.path().join("bodies")).unwrap();
        bodies.write(SendId(7), Bytes::from_static(b"private text")).await.unwrap();
        // A hard link keeps the file's content readable after the removal.
        let hard_link = folder.path().join("other");
        fs::hard_link(bodies.path(SendId(7)), &hard_link).unwrap();
        bodies.erase(SendId(7)).await;
        assert_eq!(fs::read(hard_link).unwrap(), [0; 12]);
        assert!(!bodies.path(SendId(7)).exists());
    }
}
