//! Message of a batch for the OpenAPI document.

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::SendMessageIn;
use crate::idempotency;

/// The fields of `SendMessageIn` except the idempotency key, which is one for the whole batch. No field is required,
/// because each may come from the batch's `defaults`.
#[derive(Debug)]
pub(crate) enum BatchMessageIn {}

impl PartialSchema for BatchMessageIn {
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut message)) = SendMessageIn::schema() else {
            panic!("a struct's schema is an object");
        };
        message.properties.remove(idempotency::FIELD).expect("send/message has an idempotency key");
        message.required.clear();
        message.description =
            Some("E-mail of a batch: the fields of send/message, each here or in `defaults`.".to_owned());
        message.example = None;
        RefOr::T(Schema::Object(message))
    }
}

impl ToSchema for BatchMessageIn {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SendMessageIn::schemas(schemas);
    }
}
