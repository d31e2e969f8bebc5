//! The key that seals secrets in the database: from the configured file, or from `secrets.key` in the data directory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_app::SealingKey;

use crate::config::Config;

const KEY_FILE_NAME: &str = "secrets.key";
const FILE_BYTES_MAX: u64 = 1_000;

/// The key of the installation. If there is none yet, a service creates it; a command-line tool gets a key that is not
/// stored.
pub(crate) fn load(config: &Config, is_service: bool) -> anyhow::Result<SealingKey> {
    if let Some(file) = &config.secrets.key_file {
        return read(file).with_context(|| format!("`secrets.key_file` {}", file.display()));
    }
    let file = config.data_dir.join(KEY_FILE_NAME);
    // Only a missing directory entry means that there is no key yet. A symbolic link to a volume that is not mounted is
    // an entry: its key must not be replaced by a new one.
    let is_missing = std::fs::symlink_metadata(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if !is_missing {
        return read(&file).with_context(|| format!("cannot use {}", file.display()));
    }
    let key = SealingKey::generate();
    if is_service {
        write(&file, &key).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(key)
}

fn read(path: &Path) -> anyhow::Result<SealingKey> {
    let file = std::fs::File::open(path)?;
    let mode = file.metadata()?.mode();
    let mode_for_others = mode & 0o007;
    ensure!(mode_for_others == 0, "every user of this machine can access it: chmod 600");
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let bytes = STANDARD.decode(text.trim()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    bytes
        .map(SealingKey::from_bytes)
        .context("it should hold 32 bytes in base64, as `openssl rand -base64 32` prints")
}

/// Writes the file atomically and durably: half a key would be useless, and secrets sealed with a lost key cannot be
/// read. Fails if the file exists.
fn write(path: &Path, key: &SealingKey) -> anyhow::Result<()> {
    let new = path.with_extension("key.new");
    let mut options = std::fs::File::options();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
    file.write_all(STANDARD.encode(key.as_bytes()).as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::hard_link(&new, path)?;
    std::fs::remove_file(&new)?;
    let folder = path.parent().context("the file is in the data folder")?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}
