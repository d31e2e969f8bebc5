//! A crate uses only crates of layers below it, never its neighbours (ARCHITECTURE.md).

use super::Finding;
use super::tree::{File, Tree};

/// The layers, by folder under `crates/`.
const LAYERS: &[(&str, u8)] = &[
    ("boxed-futures", 0),
    ("openapi-macros", 0),
    ("model", 0),
    ("mail", 1),
    ("smtp", 1),
    ("store", 2),
    ("net", 2),
    ("app", 3),
    ("delivery", 3),
    ("events", 3),
    ("api", 4),
    ("portal", 4),
    ("relay", 4),
    ("track", 4),
    ("postroad", 5),
];

/// Crates outside the layers: they may use any crate, and no release build may use them.
const TOOLS: &[&str] = &["bench", "fuzz", "test-programs", "testkit", "xtask"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests().flat_map(|(name, file)| check_manifest(name, file)).collect()
}

fn check_manifest(name: &str, file: &File) -> Vec<Finding> {
    let Ok(manifest) = file.text.parse::<toml::Table>() else {
        return vec![Finding::new(&file.path, 1, "not valid TOML")];
    };
    let layer = layer_of(name);
    if layer.is_none() && !TOOLS.contains(&name) {
        let text = format!("the crate {name} has no layer; add it to LAYERS in xtask/src/tidy/layers.rs");
        return vec![Finding::new(&file.path, 1, text)];
    }
    let tables =
        ["dependencies", "build-dependencies"].iter().filter_map(|table| manifest.get(*table)?.as_table());
    let ours = tables.flat_map(toml::Table::keys).filter_map(|key| Some((key, own_crate(key)?)));
    ours.filter_map(|(key, used)| {
        let text = layer_violation(name, layer, used)?;
        Some(Finding::new(&file.path, file.line_where(|line| line.starts_with(key.as_str())), text))
    })
    .collect()
}

fn layer_violation(name: &str, layer: Option<u8>, used: &str) -> Option<String> {
    if TOOLS.contains(&used) {
        let is_allowed = TOOLS.contains(&name);
        return (!is_allowed).then(|| format!("{used} is for tests; move it to [dev-dependencies]"));
    }
    // Tools may use any crate.
    let layer = layer?;
    let below = layer_of(used).is_some_and(|used_layer| used_layer < layer);
    (!below).then(|| {
        format!(
            "{name} (layer {layer}) may use only crates of lower layers, not {used}; move the code down or up"
        )
    })
}

fn layer_of(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// `postroad-store` is the crate in `crates/store`, `postroad` the one in `crates/postroad`.
fn own_crate(package: &str) -> Option<&str> {
    if package == "postroad" || package == "xtask" {
        Some(package)
    } else {
        package.strip_prefix("postroad-")
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn neighbours_upper_layers_tools_and_unknown_crates_are_found() {
        let found = findings_in(
            check,
            &[
                (
                    "crates/store/Cargo.toml",
                    "[dependencies]\npostroad-model.workspace = true\npostroad-net.workspace = true",
                ),
                ("crates/model/Cargo.toml", "[build-dependencies]\npostroad-app = { workspace = true }"),
                ("crates/api/Cargo.toml", "[dependencies]\npostroad-testkit.workspace = true"),
                ("crates/app/Cargo.toml", "[dev-dependencies]\npostroad-testkit.workspace = true"),
                ("crates/attic/Cargo.toml", ""),
                ("xtask/Cargo.toml", "[dependencies]\npostroad-testkit.workspace = true"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/store/Cargo.toml:3: store (layer 2) may use only crates of lower layers, not net; \
                 move the code down or up",
                "crates/model/Cargo.toml:2: model (layer 0) may use only crates of lower layers, not app; \
                 move the code down or up",
                "crates/api/Cargo.toml:2: testkit is for tests; move it to [dev-dependencies]",
                "crates/attic/Cargo.toml:1: the crate attic has no layer; add it to LAYERS in xtask/src/tidy/layers.rs",
            ]
        );
    }
}
