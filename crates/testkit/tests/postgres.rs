//! The PostgreSQL tools against a separate real server: start, use, cut, restore, stop.

use std::net::TcpStream;
use std::time::Duration;

use postroad_testkit::{Cluster, Database, PgProxy};
use tokio_postgres::{Client, Error, NoTls};

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn answers(client: &Client) -> bool {
    client.simple_query("").await.is_ok()
}

#[tokio::test]
async fn cluster_serves_databases_through_outages_and_stops() {
    let cluster = Cluster::start().unwrap();
    let address = cluster.url().split(['@', '/']).nth(3).unwrap().to_owned();
    let database = Database::create_on(cluster.url());
    let other = Database::create_on(cluster.url());
    assert_ne!(database.url(), other.url());

    let proxy = PgProxy::start(database.url());
    let client = connect(proxy.url()).await.unwrap();
    assert!(answers(&client).await);

    proxy.stall();
    let late = tokio::time::timeout(Duration::from_millis(50), answers(&client)).await;
    assert!(late.is_err(), "a stalled link answers nothing");
    proxy.restore();
    assert!(answers(&client).await);

    proxy.cut();
    assert!(!answers(&client).await);
    assert!(connect(proxy.url()).await.is_err());
    proxy.restore();
    let client = connect(proxy.url()).await.unwrap();
    assert!(answers(&client).await);

    // Dropping a database ends its open sessions.
    let (direct, gone) = (connect(database.url()).await.unwrap(), database.url().to_owned());
    drop(database);
    assert!(!answers(&direct).await);
    assert!(connect(&gone).await.is_err());

    drop(other);
    drop(cluster);
    assert!(TcpStream::connect(address).is_err(), "the server is gone");
}

#[test]
fn each_test_gets_its_own_database() {
    // POSTROAD_TEST_POSTGRES comes from `cargo xtask test`.
    let (one, two) = (Database::create(), Database::create());
    assert_ne!(one.url(), two.url());
}
