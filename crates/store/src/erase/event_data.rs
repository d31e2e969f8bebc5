//! Removes personal fields from an event's data; keeps numbers, flags, and the texts of `IMPERSONAL_TEXT_FIELDS`.

use serde_json::{Map, Value};

/// Fields whose texts are kept: values from fixed sets, times, and our own names and addresses.
const IMPERSONAL_TEXT_FIELDS: [&str; 13] = [
    "status",
    "reason",
    "class",
    "bounce_class",
    "kind",
    "enhanced_code",
    "provider",
    "ip_pool",
    "source_ip",
    "tls",
    "tls_version",
    "next_attempt_at",
    "phase",
];

/// Returns the data without personal fields.
pub(super) fn without_personal_fields(data: &str) -> String {
    let kept = match serde_json::from_str(data) {
        Ok(Value::Object(fields)) => impersonal_fields(fields),
        _ => Map::new(),
    };
    Value::Object(kept).to_string()
}

fn impersonal_fields(fields: Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in fields {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                kept.insert(key, value);
            }
            Value::String(_) if IMPERSONAL_TEXT_FIELDS.contains(&key.as_str()) => {
                kept.insert(key, value);
            }
            Value::Object(fields) => {
                kept.insert(key, Value::Object(impersonal_fields(fields)));
            }
            Value::String(_) | Value::Array(_) => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_flags_and_listed_texts_stay() {
        let data = r#"{"status":"Bounced","output":"550 <ann@example.com> unknown","time":0.5,"sent_with_ssl":true,
            "bounce":{"class":"bad_mailbox","code":550,"returned":{"to":"x@rp.example.org","subject":"Undelivered"}},
            "ip_address":"192.0.2.1","links":["https://example.com/ann"]}"#;
        assert_eq!(
            without_personal_fields(data),
            r#"{"status":"Bounced","time":0.5,"sent_with_ssl":true,"bounce":{"class":"bad_mailbox","code":550,"returned":{}}}"#
        );
        assert_eq!(without_personal_fields("nonsense"), "{}");
    }
}
