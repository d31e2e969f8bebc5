//! Message text, byte for byte: small, large, incompressible, empty.

use std::fs;
use std::path::{Path, PathBuf};

use postroad_store::InitialState;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    bodies_of_all_sizes_are_read_back_byte_for_byte,
    largest_message_survives_a_restart,
    damaged_size_is_an_error_not_a_crash,
);

fn incompressible(bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes];
    SmallRng::seed_from_u64(bytes as u64).fill_bytes(&mut message);
    message
}

async fn bodies_of_all_sizes_are_read_back_byte_for_byte(fixture: Fixture) {
    let around_inline = (64 << 10) - 32..=(64 << 10) + 1;
    let sizes = [0, 1, 100, 5_000, 63 << 10, 65 << 10, 200_000, (512 << 10) + 1, 1_500_000];
    let mut messages: Vec<Vec<u8>> = sizes.map(incompressible).into();
    // zstd adds a few bytes: compressed, some of these are just small enough for the database, and some just too large.
    messages.extend(around_inline.map(incompressible));
    messages.push(vec![b'a'; 3 << 20]);
    messages.push("Zeile – 行\r\n\0".repeat(10_000).into_bytes());
    for message in messages {
        let state = InitialState::Pending;
        let send = fixture.send(fixture.server, &["ann@example.com"], state, &message);
        let (id, size) = (send.info.id, send.info.size);
        fixture.accept(send).await;
        let read = fixture.store.read_body(fixture.server, id, size).await.expect("the store works");
        assert!(read == message, "{size} bytes were not read back");
    }
}

async fn largest_message_survives_a_restart(fixture: Fixture) {
    let message = incompressible(25 << 20);
    let send = fixture.send(fixture.server, &["ann@example.com"], InitialState::Pending, &message);
    let (id, size) = (send.info.id, send.info.size);
    fixture.accept(send).await;
    let fixture = fixture.reopen().await;
    let read = fixture.store.read_body(fixture.server, id, size).await.expect("the store works");
    assert!(read == message, "the message was not read back");
}

async fn damaged_size_is_an_error_not_a_crash(fixture: Fixture) {
    let send = fixture.send_to(&["ann@example.com"]);
    let (id, size) = (send.info.id, send.info.size);
    fixture.accept(send).await;
    for wrong in [size - 1, size + 1] {
        assert!(fixture.store.read_body(fixture.server, id, wrong).await.is_err(), "{wrong} for {size}");
    }
}

#[tokio::test]
async fn files_that_no_row_names_are_removed_at_start() {
    let fixture = Fixture::sqlite().await;
    let message = incompressible(100_000);
    let send = fixture.send(fixture.server, &["ann@example.com"], InitialState::Pending, &message);
    let (id, size) = (send.info.id, send.info.size);
    fixture.accept(send).await;
    let folder = fixture.engine_files.sqlite_path().with_file_name("bodies");
    let named = files_below(&folder);
    assert_eq!(named.len(), 1);
    for orphan in ["4711.zst", "4712.part", "notes.txt"] {
        fs::write(named[0].with_file_name(orphan), "left by a crash").unwrap();
    }
    // Files that the store did not write.
    let others = [folder.join("README"), folder.join("lost+found").join("1.zst")];
    fs::create_dir(folder.join("lost+found")).unwrap();
    for file in &others {
        fs::write(file, "not a body").unwrap();
    }
    let fixture = fixture.reopen().await;
    let left: Vec<PathBuf> = files_below(&folder).into_iter().filter(|file| !others.contains(file)).collect();
    assert_eq!(left, named);
    assert!(others.iter().all(|file| file.exists()));
    assert!(fixture.store.read_body(fixture.server, id, size).await.expect("the store works") == message);
}

#[tokio::test]
async fn repeated_large_send_leaves_no_file() {
    let fixture = Fixture::sqlite().await;
    let message = incompressible(100_000);
    for _ in 0..2 {
        let key = fixture.send_with_key("once", 1, "answer").idempotency;
        let mut send = fixture.send(fixture.server, &["ann@example.com"], InitialState::Pending, &message);
        send.idempotency = key;
        fixture.store.accept(send).await.expect("the store works");
    }
    assert_eq!(files_below(&fixture.engine_files.sqlite_path().with_file_name("bodies")).len(), 1);
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}
