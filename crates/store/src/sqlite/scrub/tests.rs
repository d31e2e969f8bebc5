//! Tests that removed rows leave no text in the file, and that rows in use stay unchanged.

use parking_lot::Mutex;

use super::*;

const ADDRESS: &str = "jane.doe@customer.example";

fn contains_address(path: &Path) -> bool {
    memchr::memmem::find(&std::fs::read(path).unwrap(), ADDRESS.as_bytes()).is_some()
}

fn texts() -> Vec<String> {
    vec![ADDRESS.to_owned()]
}

/// Overwrites pages as the writer does.
fn apply(connection: &Mutex<Connection>, overwrites: &[Overwrite]) {
    connection.lock().execute_batch("BEGIN IMMEDIATE; SAVEPOINT one").unwrap();
    overwrite_unchanged(&Sql::Sqlite(connection), overwrites).unwrap();
    connection.lock().execute_batch("RELEASE one; COMMIT").unwrap();
}

fn scrub(path: &Path, connection: &Mutex<Connection>) -> u64 {
    log::write_back(&connection::open_reader_of_pages(path).unwrap()).unwrap();
    for _ in 0..ROUNDS_MAX {
        let plan = plan_overwrites(path, &texts()).unwrap();
        if plan.overwrites.is_empty() && plan.unclear == 0 {
            return plan.pages_in_use;
        }
        plan.overwrites.chunks(PAGES_PER_GROUP_MAX).for_each(|chunk| apply(connection, chunk));
    }
    panic!("scrubbing does not end");
}

fn check_integrity(connection: &Connection) {
    let checked: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

/// Creates short and long rows, then removes and changes some, so that rows move between pages.
fn fill(connection: &Connection) {
    connection.execute_batch("CREATE TABLE t (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID; BEGIN").unwrap();
    for number in 0..3_000 {
        let id = format!("{}-{number}", number * 7_919 % 3_001);
        let text = if number % 10 == 0 { ADDRESS.repeat(1_000) } else { ADDRESS.to_owned() };
        connection.execute("INSERT INTO t VALUES (?1, ?2)", (id, text)).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    connection.execute("DELETE FROM t WHERE id LIKE '%5'", []).unwrap();
    connection.execute("UPDATE t SET text = 'gone' WHERE id LIKE '%3'", []).unwrap();
    connection.execute("UPDATE t SET text = replace(text, 'jane.doe', 'erased')", []).unwrap();
    // Long values that end inside of a page which was full of addresses.
    connection.execute("UPDATE t SET text = hex(zeroblob(6000)) WHERE id LIKE '%7'", []).unwrap();
}

#[test]
fn scrubbing_leaves_no_text_of_removed_rows_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let connection = Mutex::new(connection::open_writer(&path).unwrap());
    fill(&connection.lock());
    log::truncate(&mut connection.lock()).unwrap();
    assert!(contains_address(&path), "SQLite leaves remains; otherwise this test proves nothing");
    assert_eq!(scrub(&path, &connection), 0);
    log::truncate(&mut connection.lock()).unwrap();
    assert!(!contains_address(&path));
    check_integrity(&connection.lock());
    let rows = connection.lock().query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows.unwrap(), 2_700);
}

#[test]
fn pages_that_rows_reused_after_planning_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let connection = Mutex::new(connection::open_writer(&path).unwrap());
    fill(&connection.lock());
    log::write_back(&connection::open_reader_of_pages(&path).unwrap()).unwrap();
    let plan = plan_overwrites(&path, &texts()).unwrap();
    assert!(
        plan.overwrites.iter().any(|overwrite| overwrite.guard.is_some()),
        "the plan has free pages or last overflow pages"
    );
    // Fills all free pages with the same text again.
    let text = ADDRESS.repeat(1_000);
    connection.lock().execute_batch("BEGIN").unwrap();
    for number in 0..600 {
        let id = format!("again-{number}");
        connection.lock().execute("INSERT INTO t VALUES (?1, ?2)", (id, &text)).unwrap();
    }
    connection.lock().execute_batch("COMMIT").unwrap();
    connection.lock().execute("UPDATE t SET text = ?1 WHERE id LIKE '%7'", [&text]).unwrap();
    plan.overwrites.chunks(PAGES_PER_GROUP_MAX).for_each(|chunk| apply(&connection, chunk));
    check_integrity(&connection.lock());
    let whole = "SELECT count(*) FROM t WHERE text = ?1 AND (id LIKE 'again-%' OR id LIKE '%7')";
    let all = "SELECT count(*) FROM t WHERE id LIKE 'again-%' OR id LIKE '%7'";
    let count = |text: &str, with: &[&dyn rusqlite::ToSql]| {
        connection.lock().query_row(text, with, |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(count(whole, &[&text]), count(all, &[]));
}

#[test]
fn pages_with_rows_that_mention_the_text_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let connection = Mutex::new(connection::open_writer(&path).unwrap());
    connection.lock().execute_batch("CREATE TABLE t (text TEXT)").unwrap();
    let text = format!("About {}", ADDRESS.to_uppercase());
    connection.lock().execute("INSERT INTO t VALUES (?1)", [text]).unwrap();
    assert_eq!(scrub(&path, &connection), 1);
    let kept = connection.lock().query_row("SELECT text FROM t", [], |row| row.get::<_, String>(0));
    assert!(kept.unwrap().starts_with("About JANE"));
}
