//! Dependencies are declared once, in the root manifest, each with a reason; members refer to them.

use super::Finding;
use super::tree::{File, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let root = tree.file("Cargo.toml").map(check_reasons).unwrap_or_default();
    root.into_iter().chain(tree.manifests().flat_map(|(_, file)| check_member(file))).collect()
}

fn check_reasons(root: &File) -> Vec<Finding> {
    let mut section = "";
    let mut findings = Vec::new();
    for (number, line) in root.lines() {
        if line.starts_with('[') {
            section = line.trim();
        }
        let name = line.split(['=', '.']).next().unwrap_or_default().trim();
        let is_dependency = section == "[workspace.dependencies]"
            && line.starts_with(|c: char| c.is_ascii_alphanumeric())
            && line.contains('=');
        if is_dependency && !name.starts_with("postroad-") && !has_comment(line) {
            let text = format!("{name} has no reason; add `# why it is here` at the end of the line");
            findings.push(Finding::new(&root.path, number, text));
        }
    }
    findings
}

/// Whether the line has a `#` outside quotes, followed by text.
fn has_comment(line: &str) -> bool {
    let mut is_quoted = false;
    line.char_indices().any(|(at, c)| {
        is_quoted ^= c == '"';
        c == '#' && !is_quoted && !line[at + 1..].trim().is_empty()
    })
}

fn check_member(file: &File) -> Vec<Finding> {
    let Ok(manifest) = file.text.parse::<toml::Table>() else {
        return vec![Finding::new(&file.path, 1, "not valid TOML")];
    };
    let mut findings = Vec::new();
    for (table, dependencies) in dependency_tables(&manifest) {
        for (name, dependency) in dependencies {
            if !is_of_workspace(dependency) {
                let line = file.line_where(|line| line.starts_with(name.as_str()));
                let text = format!("{name} in [{table}] is declared here; write `{name}.workspace = true`");
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    if !manifest.get("lints").is_some_and(is_of_workspace) {
        findings.push(Finding::new(
            &file.path,
            1,
            "the lints are off; add `[lints]` with `workspace = true`",
        ));
    }
    findings
}

fn is_of_workspace(value: &toml::Value) -> bool {
    value.get("workspace").and_then(toml::Value::as_bool) == Some(true)
}

/// Dependency tables of the whole manifest and of its `[target.…]` sections.
pub(super) fn dependency_tables(manifest: &toml::Table) -> Vec<(&'static str, &toml::Table)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let mut tables = Vec::new();
    for holder in std::iter::once(manifest).chain(targets) {
        for name in ["dependencies", "dev-dependencies", "build-dependencies"] {
            tables.extend(holder.get(name).and_then(toml::Value::as_table).map(|table| (name, table)));
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn missing_reasons_and_own_versions_are_found() {
        let root = "[workspace.dependencies]\n# -- ours --\npostroad-model = { path = \"crates/model\" }\n\
                    tokio = \"1\" # runtime\nbytes = \"1\"\nodd = { git = \"a#b\" }\n[profile.dev]\ndebug = 1";
        let member = "[dependencies]\ntokio = { workspace = true, features = [\"rt\"] }\n\
                      [target.'cfg(unix)'.dev-dependencies]\nserde = \"1\"";
        let found = findings_in(check, &[("Cargo.toml", root), ("crates/app/Cargo.toml", member)]);
        assert_eq!(
            found,
            [
                "Cargo.toml:5: bytes has no reason; add `# why it is here` at the end of the line",
                "Cargo.toml:6: odd has no reason; add `# why it is here` at the end of the line",
                "crates/app/Cargo.toml:4: serde in [dev-dependencies] is declared here; write `serde.workspace = true`",
                "crates/app/Cargo.toml:1: the lints are off; add `[lints]` with `workspace = true`",
            ]
        );
    }
}
