//! Data folder and database after the first start of a service: created once in a test process, then copied for each
//! test.
//!
//! A first start creates the tables and generates keys, which takes several times as long as starting again.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Daemon, Database};

/// Data folder and database of a service that was started once and then stopped.
#[derive(Debug)]
pub struct FirstStart {
    folders: Vec<PathBuf>,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// If this value is a static, the database is never dropped; it ends with the private server of the test run.
    database: Option<Database>,
}

impl FirstStart {
    /// Starts the program with `args` and `--data-dir`, on the database if there is one, and stops it once it is ready.
    pub fn of(program: &Path, args: &[&str], database: Option<Database>) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let data_dir = folder.path().join("data");
        let envs: Vec<(&str, &str)> =
            database.iter().map(|database| ("POSTROAD_DATABASE", database.url())).collect();
        let args = args.iter().map(OsStr::new).chain([OsStr::new("--data-dir"), data_dir.as_os_str()]);
        let mut daemon = Daemon::start(program, args, &envs);
        assert!(daemon.terminate().success(), "{}", daemon.stderr_text());
        let (mut folders, mut files) = (vec![PathBuf::new()], Vec::new());
        read_folder(&data_dir, Path::new(""), &mut folders, &mut files)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", data_dir.display()));
        Self { folders, files, database }
    }

    /// Writes the data folder to this path, which does not exist yet; returns a copy of the database.
    pub fn copy_to(&self, data_dir: &Path) -> Option<Database> {
        self.write_files(data_dir)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", data_dir.display()));
        self.database.as_ref().map(Database::copy)
    }

    fn write_files(&self, data_dir: &Path) -> io::Result<()> {
        for folder in &self.folders {
            DirBuilder::new().mode(0o700).create(data_dir.join(folder))?;
        }
        for (path, content) in &self.files {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(data_dir.join(path))?;
            file.write_all(content)?;
        }
        Ok(())
    }
}

/// Adds the folders and files in `base`/`folder`, with paths relative to `base`. A folder comes before its content.
fn read_folder(
    base: &Path,
    folder: &Path,
    folders: &mut Vec<PathBuf>,
    files: &mut Vec<(PathBuf, Vec<u8>)>,
) -> io::Result<()> {
    for entry in fs::read_dir(base.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            folders.push(path.clone());
            read_folder(base, &path, folders, files)?;
        } else {
            files.push((path, fs::read(entry.path())?));
        }
    }
    Ok(())
}
