//! Generates docs/endpoints.md from the OpenAPI document, and checks that the file is up to date.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use postroad_api::OPENAPI_JSON;
use serde_json::Value;

const OPENING: &str = "\
# Endpoints

Every call of the HTTP API with its fields and an example. Generated from the code: `UPDATE_GOLDEN=1 cargo xtask test -- -p
postroad-api reference` rewrites this page. [http-api.md](http-api.md) explains envelope, errors and limits.

Post each example as the body of its call:

```sh run
curl \"$URL/api/v1/server/get\" -H \"X-Server-API-Key: $KEY\" -d '{}'
```
";

/// Depth down to which the fields of nested objects are listed.
const DEPTH_MAX: usize = 2;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn document() -> Value {
    serde_json::from_str(OPENAPI_JSON).expect("the document is JSON")
}

fn render_page(document: &Value) -> String {
    let mut page = OPENING.to_owned();
    let paths = document["paths"].as_object().expect("the document has paths");
    for tag in document["tags"].as_array().expect("the document has tags") {
        let name = tag["name"].as_str().unwrap_or_default();
        let description = tag["description"].as_str().unwrap_or_default();
        writeln!(page, "\n## {name}\n\n{description}.").expect("text can be written");
        for (path, item) in paths {
            if item["post"]["tags"][0] == *name {
                write_endpoint(&mut page, document, path, &item["post"]);
            }
        }
    }
    page
}

fn write_endpoint(page: &mut String, document: &Value, path: &str, operation: &Value) {
    let text = |key: &str| operation[key].as_str().unwrap_or_default();
    let short = path.trim_start_matches("/api/v1/");
    writeln!(page, "\n### {short}\n\n{}.\n{}", text("summary"), text("description").trim()).expect("text");
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let description = parameter["description"].as_str().unwrap_or_default();
        writeln!(page, "\nHeader `{}`: {description}.", parameter["name"].as_str().unwrap_or_default())
            .expect("text can be written");
    }
    let content = &operation["requestBody"]["content"]["application/json"];
    let reference = content.pointer("/schema/$ref");
    let Some(schema) = reference.and_then(Value::as_str).and_then(|found| document.pointer(&found[1..]))
    else {
        page.push_str("\n```json\n{}\n```\n");
        return;
    };
    if let Some(description) = schema["description"].as_str() {
        writeln!(page, "\nRequest: {description}").expect("text can be written");
    }
    if schema["properties"].as_object().is_some_and(|properties| !properties.is_empty()) {
        page.push_str("\n| field | type | |\n|---|---|---|\n");
        write_fields(page, document, schema, "");
    }
    // An example of the call itself takes precedence over that of its schema, which several calls may share.
    let example = content.get("example").unwrap_or(&schema["example"]);
    let example = serde_json::to_string_pretty(example).expect("it was JSON");
    writeln!(page, "\n```json\n{example}\n```").expect("text can be written");
}

/// Writes a row for each field of an object, required fields first, with the fields of objects in it below.
fn write_fields(page: &mut String, document: &Value, object: &Value, prefix: &str) {
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_required = |name: &str| required.contains(&name);
    let mut fields: Vec<(&String, &Value)> = object["properties"].as_object().into_iter().flatten().collect();
    fields.sort_by_key(|(name, _)| !is_required(name));
    for (name, field) in fields {
        let schemas = schemas_of_field(document, field);
        let description =
            schemas.iter().find_map(|schema| schema["description"].as_str()).unwrap_or_default();
        let description = description.replace('\n', " ").replace('|', "\\|");
        assert!(!description.is_empty(), "the field `{prefix}{name}` needs a doc comment:\n{object}");
        let needed = if is_required(name) { "Required. " } else { "" };
        writeln!(page, "| `{prefix}{name}` | {} | {needed}{description} |", type_names(&schemas))
            .expect("text can be written");
        if prefix.matches('.').count() == DEPTH_MAX {
            continue;
        }
        for inner in &schemas {
            write_fields(page, document, inner, &format!("{prefix}{name}."));
            for item in schemas_of_items(document, inner) {
                write_fields(page, document, item, &format!("{prefix}{name}[]."));
            }
        }
    }
}

/// The schemas of the items of an array; none for other schemas.
fn schemas_of_items<'a>(document: &'a Value, array: &'a Value) -> Vec<&'a Value> {
    array.get("items").map(|items| schemas_of_field(document, items)).unwrap_or_default()
}

/// A field's schema and the schemas it refers to.
fn schemas_of_field<'a>(document: &'a Value, field: &'a Value) -> Vec<&'a Value> {
    let alternatives = field["oneOf"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for schema in std::iter::once(field).chain(alternatives) {
        // A reference may have a description of its own, which comes before that of its target.
        found.push(schema);
        if let Some(reference) = schema["$ref"].as_str() {
            let target = document.pointer(&reference[1..]).expect("references resolve");
            found.extend(schemas_of_field(document, target));
        }
    }
    found
}

/// All types a field may have, except null.
fn type_names(schemas: &[&Value]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for schema in schemas {
        let one = schema["type"].as_str().into_iter();
        let several = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in one.chain(several).filter(|name| *name != "null") {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.join(" or ")
}

#[test]
fn the_page_of_endpoints_is_what_the_code_says() {
    let page = render_page(&document());
    let path = docs("endpoints.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("docs can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == page,
        "docs/endpoints.md is not what the code says; run with UPDATE_GOLDEN=1 and read the diff"
    );
}
