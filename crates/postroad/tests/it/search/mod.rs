//! messages/search, and the operations on messages that a search finds.

mod conditions;
mod erase;
mod erase_elsewhere;
mod erase_in_delivery;
mod holds;
mod many_holds;
mod postgres_files;
mod property;
mod retries;
mod timeline;
mod waits;

use serde_json::{Value, json};

use crate::world::World;

const SEARCH: &str = "/api/v1/messages/search";

/// Ids that a search finds, on all its pages.
async fn find_all(world: &World, conditions: &Value) -> Vec<i64> {
    let items = find_all_items(world, conditions).await;
    items.iter().map(|item| item["id"].as_i64().expect("an integer")).collect()
}

async fn find_all_items(world: &World, conditions: &Value) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut page = conditions.clone();
        page["cursor"] = cursor;
        let answer = world.call(SEARCH, &page).await;
        assert_eq!(answer["status"], "success", "{answer}");
        items.extend(answer["data"]["items"].as_array().expect("a list").iter().cloned());
        cursor = answer["flags"]["pagination"]["next_cursor"].clone();
        if cursor.is_null() {
            return items;
        }
    }
}

/// A search with this query and no other condition.
fn query(text: &str) -> Value {
    json!({ "q": text })
}
