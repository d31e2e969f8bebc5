//! suppressions/* of the API, `postroad admin suppression`, and their effect on mail.

mod calls;
mod command_line;
mod csv_lists;
mod holds;

use serde_json::{Value, json};

use crate::world::World;

const ADD: &str = "/api/v1/suppressions/add";
const GET: &str = "/api/v1/suppressions/get";
const LIST: &str = "/api/v1/suppressions/list";
const REMOVE: &str = "/api/v1/suppressions/remove";
const IMPORT: &str = "/api/v1/suppressions/import";
const EXPORT: &str = "/api/v1/suppressions/export";

/// Calls and returns the `data` of the success.
async fn call_ok(world: &World, path: &str, body: &Value) -> Value {
    let answer = world.call(path, body).await;
    assert_eq!(answer["status"], "success", "{path}: {answer}");
    answer["data"].clone()
}

async fn add(world: &World, address: &str) -> Value {
    call_ok(world, ADD, &json!({ "address": address })).await
}

/// All addresses on the list, newest first.
async fn list_addresses(world: &World) -> Vec<String> {
    let data = call_ok(world, LIST, &json!({"limit": 500})).await;
    let items = data["items"].as_array().unwrap();
    items.iter().map(|item| item["address"].as_str().unwrap().to_owned()).collect()
}
