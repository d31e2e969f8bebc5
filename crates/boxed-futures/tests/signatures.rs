//! Signatures that the attributes must handle: receivers, elided lifetimes, patterns, results that borrow.

#![expect(unreachable_pub, reason = "only public methods are changed")]

use std::pin::Pin;
use std::sync::Arc;

use postroad_boxed_futures::{boxed_future, boxed_futures};

struct Books {
    titles: Vec<String>,
}

struct Query<'a> {
    prefix: &'a str,
}

/// Sets its flag when it is dropped.
struct Guard(Arc<std::sync::atomic::AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[boxed_futures]
impl Books {
    pub async fn count(&self) -> usize {
        self.titles.len()
    }

    pub async fn find<'a>(&self, query: Query<'a>, also: &'a str) -> Option<String> {
        self.titles.iter().find(|title| title.starts_with(query.prefix) || *title == also).cloned()
    }

    pub async fn first(&self, _skipped: &[&str]) -> Option<&str> {
        self.titles.first().map(String::as_str)
    }

    pub async fn add(&mut self, mut titles: Vec<String>, Query { prefix }: Query<'_>) {
        titles.retain(|title| title.starts_with(prefix));
        self.titles.append(&mut titles);
    }

    pub async fn shared(self: &Arc<Self>) -> usize {
        self.count().await
    }

    pub async fn wait_with(&self, _guard: Guard) {
        tokio::task::yield_now().await;
    }

    pub async fn each(&self, mut see: impl FnMut(&str) + Send) {
        for title in &self.titles {
            see(title);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn boxed_methods_return_what_async_methods_return() {
    let mut books = Books { titles: vec!["Emma".into()] };
    books.add(vec!["Persuasion".into(), "Sanditon".into()], Query { prefix: "P" }).await;
    assert_eq!(books.count().await, 2);
    assert_eq!(books.find(Query { prefix: "Per" }, "").await.as_deref(), Some("Persuasion"));
    assert_eq!(books.first(&[]).await, Some("Emma"));
    let mut seen = 0;
    books.each(|_| seen += 1).await;
    assert_eq!((seen, Arc::new(books).shared().await), (2, 2));
}

#[tokio::test]
async fn unused_arguments_live_as_long_as_the_future() {
    let dropped = Arc::default();
    let books = Books { titles: Vec::new() };
    let waiting = books.wait_with(Guard(Arc::clone(&dropped)));
    assert!(!dropped.load(std::sync::atomic::Ordering::SeqCst));
    waiting.await;
    assert!(dropped.load(std::sync::atomic::Ordering::SeqCst));
}

struct Shelf(Books);

impl Shelf {
    /// A private method in an `impl` block without `#[boxed_futures]`.
    #[boxed_future]
    async fn titles_after(&self, title: &str) -> Vec<&str> {
        self.0.titles.iter().map(String::as_str).filter(|one| *one > title).collect()
    }
}

#[boxed_future]
async fn length_of(title: &str, times: usize) -> usize {
    tokio::task::yield_now().await;
    title.len() * times
}

#[tokio::test]
async fn single_functions_and_methods_are_boxed() {
    let shelf = Shelf(Books { titles: vec!["Emma".into(), "Sanditon".into()] });
    let running: Pin<Box<dyn Future<Output = usize> + Send>> = length_of("Emma", 2);
    assert_eq!(running.await, 8);
    assert_eq!(shelf.titles_after("Lady").await, ["Sanditon"]);
}
