//! Keys bound to networks or a time create no credentials without these limits; the grace period of a rotated
//! credential cannot be extended.

use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, Key, OPERATOR, call_ok, create_customer, error_code, ready_field};
use crate::world::{World, both_engines};

const KEY_EXPIRES_AT: &str = "2099-01-01T00:00:00Z";

both_engines!(
    a_limited_key_creates_no_credential_with_wider_limits,
    the_grace_period_of_a_rotated_credential_cannot_be_extended
);

/// Networks and expiry of the credential that a call returns.
async fn limits(world: &World, key: Key<'_>, name: &str, body: &Value) -> (Value, Value) {
    let answer = call_ok(world, key, name, body).await;
    (answer["allow"].clone(), answer["expires_at"].clone())
}

async fn a_limited_key_creates_no_credential_with_wider_limits(world: World) {
    let one = create_customer(&world, "one").await;
    let account = (ACCOUNT, one.key.as_str());
    let bound = json!({"name": "bound", "allow": ["127.0.0.0/8"], "expires_at": KEY_EXPIRES_AT});
    let bound = call_ok(&world, account, "account_keys/create", &bound).await;
    let bound_key = (ACCOUNT, bound["api_key"].as_str().unwrap());
    let own = (bound["allow"].clone(), bound["expires_at"].clone());
    let new = |more: Value| {
        let mut body = json!({"server": one.servers[0], "name": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    assert_eq!(limits(&world, bound_key, "credentials/create", &new(json!({}))).await, own);
    let longer = new(json!({"expires_at": "2199-01-01T00:00:00Z"}));
    assert_eq!(limits(&world, bound_key, "credentials/create", &longer).await, own);
    let narrower = new(json!({"allow": ["127.0.0.1/32"], "expires_at": "2098-01-01T00:00:00Z"}));
    let narrower = limits(&world, bound_key, "credentials/create", &narrower).await;
    assert_eq!((&narrower.0, narrower.1 == own.1), (&json!(["127.0.0.1/32"]), false));
    let wider = json!(["127.0.0.1/32", "192.0.2.0/24"]);
    assert_eq!(
        error_code(&world, bound_key, "credentials/create", &new(json!({ "allow": wider }))).await,
        "ValidationError"
    );

    // A credential without limits: a change cannot set wider limits than the key's, and fields not in the request stay.
    let id = &one.credentials[0];
    let free = (json!([]), Value::Null);
    let unchanged = json!({"id": id, "hold": false});
    assert_eq!(limits(&world, bound_key, "credentials/update", &unchanged).await, free);
    let body = json!({"id": id, "allow": wider});
    assert_eq!(error_code(&world, bound_key, "credentials/update", &body).await, "ValidationError");
    let body = json!({"id": id, "allow": [], "expires_at": "none"});
    assert_eq!(limits(&world, bound_key, "credentials/update", &body).await, own);
    assert_eq!(limits(&world, account, "credentials/update", &body).await, free);
    // The new credential of a rotation gets the key's limits too.
    let rotated = json!({"id": one.credentials[0], "grace_s": 60});
    assert_eq!(limits(&world, bound_key, "credentials/rotate", &rotated).await, own);
    let elsewhere = json!({"id": one.credentials[1], "allow": ["192.0.2.0/24"]});
    call_ok(&world, account, "credentials/update", &elsewhere).await;
    let rotated = json!({ "id": one.credentials[1] });
    assert_eq!(error_code(&world, bound_key, "credentials/rotate", &rotated).await, "ValidationError");
}

async fn the_grace_period_of_a_rotated_credential_cannot_be_extended(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, id) = ((ACCOUNT, one.key.as_str()), &one.credentials[0]);
    call_ok(&world, account_key, "credentials/rotate", &json!({"id": id, "grace_s": 3_600})).await;
    let ends =
        call_ok(&world, account_key, "credentials/get", &json!({ "id": id })).await["expires_at"].clone();
    for longer in ["none", KEY_EXPIRES_AT] {
        let body = json!({"id": id, "expires_at": longer});
        for key in [account_key, (OPERATOR, ready_field(&world, "operator_api_key"))] {
            assert_eq!(
                error_code(&world, key, "credentials/update", &body).await,
                "CredentialEnded",
                "{longer}"
            );
        }
    }
    let (success, _, error) = world.admin_output(&["key", "update", &id.to_string(), "--no-expiry"]);
    assert!(!success && error.contains("replaced"), "{error}");
    let renamed = call_ok(&world, account_key, "credentials/update", &json!({"id": id, "name": "old"})).await;
    assert_eq!((&renamed["name"], &renamed["expires_at"]), (&json!("old"), &ends));
}
