//! Tests that filtered lists use their indexes on both engines, and that the list of changed servers does on SQLite.

use std::sync::Arc;

use postroad_model::{AccountId, Clock as _, ServerId, SystemClock};
use tokio_postgres::NoTls;

use super::{AccountFilter, CredentialFilter, ServerFilter, accounts, credential_list, servers};
use crate::delivery_setup::CHANGED_SERVERS;
use crate::sql::Value;
use crate::{Database, Role, Settings, Store};

const LIMIT: i64 = 50;

/// A query with its parameters, and the index that it must use.
type IndexedQuery = ((&'static str, Vec<Value>), &'static str);

fn queries() -> Vec<IndexedQuery> {
    let (named, account) = (Some("x".to_owned()), Some(AccountId(1)));
    let (mut queries, now) = (Vec::new(), SystemClock.now());
    let all = AccountFilter::default;
    for (filter, index) in [
        (AccountFilter { name: named.clone(), ..all() }, "accounts_by_name"),
        (AccountFilter { deleted: true, ..all() }, "accounts_deleted"),
        (AccountFilter { suspended: Some(true), ..all() }, "accounts_suspended"),
    ] {
        queries.push((accounts::page_query(filter, None, LIMIT, now), index));
    }
    let all = ServerFilter::default;
    let by_account = || ServerFilter { account_id: account, ..ServerFilter::default() };
    for (filter, index) in [
        (ServerFilter { name: named.clone(), ..all() }, "servers_by_name"),
        (ServerFilter { deleted: true, ..all() }, "servers_deleted"),
        (ServerFilter { suspended: Some(true), ..all() }, "servers_suspended"),
        (ServerFilter { deleted: true, ..by_account() }, "servers_deleted_by_account"),
        (ServerFilter { suspended: Some(true), ..by_account() }, "servers_suspended_by_account"),
        (by_account(), "servers_by_account"),
    ] {
        queries.push((servers::page_query(filter, None, LIMIT, now), index));
    }
    let by_account = CredentialFilter { account_id: account, ..CredentialFilter::default() };
    let by_server = CredentialFilter { server_id: Some(ServerId(1)), ..by_account.clone() };
    for (filter, revoked, unrevoked, by_name) in [
        (CredentialFilter::default(), "credentials_revoked", "credentials_unrevoked", "credentials_by_name"),
        (
            by_account,
            "credentials_revoked_by_account",
            "credentials_unrevoked_by_account",
            "credentials_by_account_name",
        ),
        (
            by_server,
            "credentials_revoked_by_server",
            "credentials_unrevoked_by_server",
            "credentials_by_server_name",
        ),
    ] {
        let of_name = CredentialFilter { name: named.clone(), ..filter.clone() };
        queries.push((credential_list::page_query(of_name, None, LIMIT), by_name));
        for (is_revoked, index) in [(true, revoked), (false, unrevoked)] {
            let filter = CredentialFilter { revoked: Some(is_revoked), ..filter.clone() };
            queries.push((credential_list::page_query(filter, None, LIMIT), index));
        }
    }
    queries
}

/// For SQLite only: PostgreSQL's choice depends on its statistics and on the number that is compared with
/// `changed_xact`.
fn changed_servers() -> [IndexedQuery; 2] {
    ["servers_by_change", "accounts_by_change"].map(|index| ((CHANGED_SERVERS, vec![Value::Int(1)]), index))
}

async fn create_schema(database: Database) {
    let role = Role::Node { identity: "plans".into() };
    Store::open(Settings::small(database), role, Arc::new(SystemClock)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_lists_use_their_indexes_on_sqlite() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postroad.db");
    create_schema(Database::Sqlite(path.clone())).await;
    let connection = rusqlite::Connection::open(path).unwrap();
    for ((text, _), index) in queries().into_iter().chain(changed_servers()) {
        // SQLite's indexes end with the id in any case, so the index of all credentials of a server serves as well.
        let index = if index.ends_with("revoked_by_server") { "credentials_by_server" } else { index };
        let explained = format!("EXPLAIN QUERY PLAN {}", text.replace('$', "?"));
        let mut statement = connection.prepare(&explained).unwrap();
        let count = statement.parameter_count();
        let params = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, count));
        let steps = statement.query_map(params, |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = steps.map(|step| step.unwrap()).collect();
        let uses_index = plan.iter().any(|step| step.contains(&format!("INDEX {index} (")));
        assert!(uses_index, "{index} is not in {plan:#?} of {text}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?} of {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_lists_use_their_indexes_on_postgres() {
    let database = postroad_testkit::Database::create();
    create_schema(Database::Postgres(database.url().to_owned())).await;
    let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").await.unwrap();
    for ((text, params), index) in queries() {
        let mut text = text.to_owned();
        for (number, value) in params.iter().enumerate().rev() {
            let value = match value {
                Value::Int(int) => int.to_string(),
                Value::Text(text) => format!("'{text}'"),
                _ => "NULL".to_owned(),
            };
            text = text.replace(&format!("${}", number + 1), &value);
        }
        let rows = client.query(&format!("EXPLAIN {text}"), &[]).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let uses_index = plan.iter().any(|line| line.contains(&format!("using {index} on")));
        assert!(uses_index, "{index} is not in {plan:#?} of {text}");
    }
}
