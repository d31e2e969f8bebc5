//! The repository's files in memory: those that git tracks or would track; without git, everything outside build
//! folders.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Folders that are skipped when git is not available.
const SKIPPED_FOLDERS: &[&str] = &[".git", "target", "postroad-data"];

#[derive(Debug)]
pub(super) struct File {
    /// Path from the top of the repository, with slashes.
    pub(super) path: String,
    /// Empty if the file is not UTF-8: the checks read text only.
    pub(super) text: String,
}

impl File {
    /// Lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Number of the first line for which `is_it` holds, else 1.
    pub(super) fn line_where(&self, is_it: impl Fn(&str) -> bool) -> usize {
        self.lines().find(|(_, line)| is_it(line)).map_or(1, |(number, _)| number)
    }
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut paths = match list_with_git(root) {
            Some(paths) => paths,
            None => list_by_walking(root)?,
        };
        paths.sort();
        let read = |path: String| {
            // A file may be in git's index but deleted in the work tree.
            let bytes = fs::read(root.join(&path)).ok()?;
            Some(File { path, text: String::from_utf8(bytes).unwrap_or_default() })
        };
        Ok(Self { files: paths.into_iter().filter_map(read).collect() })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let make = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(make).collect() }
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| is_rust(&file.path))
    }

    /// Manifests of the workspace's members, with the names of their folders.
    pub(super) fn manifests(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().filter_map(|file| {
            let folder = file.path.strip_suffix("/Cargo.toml")?;
            let name = folder.strip_prefix("crates/").or((folder == "xtask").then_some(folder))?;
            (!name.contains('/')).then_some((name, file))
        })
    }
}

pub(super) fn is_rust(path: &str) -> bool {
    has_extension(path, "rs")
}

pub(super) fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == wanted)
}

fn list_with_git(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_terminator('\0').map(ToOwned::to_owned).collect())
}

fn list_by_walking(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !entry.file_type()?.is_dir() {
                paths.push(path);
            } else if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_finds_the_files_without_git() {
        let mut paths = list_by_walking(&crate::repository().join("xtask")).unwrap();
        paths.sort();
        assert!(paths.contains(&"Cargo.toml".to_owned()));
        assert!(paths.contains(&"src/tidy/tree.rs".to_owned()));
    }
}
