//! The time of an answer does not reveal whether an object or a person exists.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::account_isolation::{ABSENT, prepare_mail};
use crate::accounts::{ACCOUNT, Key, OPERATOR, SERVER, call_ok, create_customer, error_code, ready_field};
use crate::signing_in::{Visitor, join};
use crate::world::{World, both_engines};

/// How often each of two compared calls is made.
const CALLS_PER_KIND: usize = 121;

/// Key and body of a call.
type KeyAndBody<'a> = (Key<'a>, Value);

both_engines!(
    the_time_of_an_answer_does_not_reveal_whether_an_object_exists,
    the_time_of_a_sign_in_does_not_reveal_whether_the_person_exists
);

/// Maximum number of measurements of a pair of calls. A leak shows in every measurement, other
/// load of the machine only in some.
const MEASUREMENTS_MAX: usize = 4;

/// Whether the medians of two calls, made in turns, differ by at most 30 % plus 0.3 ms.
fn are_alike(times: &[Duration; 2]) -> bool {
    let (faster, slower) = (times[0].min(times[1]), times[0].max(times[1]));
    slower <= faster + faster * 3 / 10 + Duration::from_micros(300)
}

fn medians(times: [Vec<Duration>; 2]) -> [Duration; 2] {
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

async fn the_time_of_an_answer_does_not_reveal_whether_an_object_exists(world: World) {
    let (one, zebra) = (create_customer(&world, "one").await, create_customer(&world, "zebra").await);
    let sending = (SERVER, zebra.server_keys[0].as_str());
    let sent = call_ok(&world, sending, "send/message", &prepare_mail(&world, "a@zebra.example")).await;
    let message = &sent["messages"]["a@zebra.example"]["id"];
    let (account, server) = ((ACCOUNT, one.key.as_str()), (SERVER, one.server_keys[0].as_str()));
    let absent = json!({ "id": ABSENT });
    let user = world.admin(&["user", "create", "a@zebra.example", "--account", "zebra"])["id"].clone();
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let pool = json!({"name": "zebra", "account": zebra.id});
    let pool = call_ok(&world, operator, "ip_pools/create", &pool).await["id"].clone();
    let of_account = |name: &'static str, foreign: &Value| {
        (name, [(account, json!({ "id": foreign })), (account, absent.clone())])
    };
    let invite = json!({"email": "b@zebra.example", "account": zebra.id, "mail": false});
    let invitation = call_ok(&world, operator, "users/invite", &invite).await["id"].clone();
    let key = json!({"name": "zebra", "account": zebra.id});
    let key = call_ok(&world, operator, "account_keys/create", &key).await["id"].clone();
    let named = |name: &str| (account, json!({ "name": name }));
    let pairs: [(&str, [KeyAndBody<'_>; 2]); 8] = [
        of_account("servers/get", &zebra.servers[0]),
        of_account("credentials/get", &zebra.credentials[0]),
        of_account("users/sessions", &user),
        of_account("ip_pools/get", &pool),
        of_account("users/uninvite", &invitation),
        of_account("account_keys/revoke", &key),
        ("domains/get", [named("from.zebra.example"), named("horse.example")]),
        ("messages/message", [(server, json!({ "id": message })), (server, absent.clone())]),
    ];
    for (name, calls) in pairs {
        let mut all = Vec::new();
        while !all.last().is_some_and(are_alike) {
            assert!(all.len() < MEASUREMENTS_MAX, "{name}: {all:?}");
            all.push(measure(&world, name, &calls).await);
        }
    }
}

async fn measure(world: &World, name: &str, calls: &[KeyAndBody<'_>; 2]) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..CALLS_PER_KIND {
        // In turns, so that other load of the machine affects both.
        for at in [round % 2, (round + 1) % 2] {
            let (key, body) = &calls[at];
            let begun = Instant::now();
            error_code(world, *key, name, body).await;
            times[at].push(begun.elapsed());
        }
    }
    medians(times)
}

async fn the_time_of_a_sign_in_does_not_reveal_whether_the_person_exists(world: World) {
    join(&world, "ann@example.com").await;
    let emails = ["ann@example.com", "bob@example.com"];
    let mut times = [Vec::new(), Vec::new()];
    // Within the limits of failed attempts: ten for a person from one address, fifty from all.
    for address in 2..6 {
        let mut visitor = Visitor::at(&world, [127, 0, 0, address]);
        for round in 0..10 {
            for at in [round % 2, (round + 1) % 2] {
                let begun = Instant::now();
                let reply = visitor.sign_in(emails[at], "a wrong guess of it").await;
                times[at].push(begun.elapsed());
                assert!(reply.status == 422 && reply.text().contains("is wrong"), "{}", reply.text());
            }
        }
    }
    let times = medians(times);
    assert!(are_alike(&times), "{times:?}");
}
