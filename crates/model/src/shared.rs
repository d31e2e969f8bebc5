//! A shared pointer that is `Send` and `Sync` by its type, so that the compiler need not check the parts of its value.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The value that clones of a handle share, such as the parts of `App`.
///
/// Used instead of `Arc<T>` where `T` has many parts and many boxed futures hold the handle. For each boxed future, the
/// compiler proves again that all types within its `Arc`s are `Send` and `Sync`; for `App` these are thousands of
/// types, which took nearly half of the time to compile the portal. `Shared::new` demands the proof once. An access
/// costs a virtual call.
pub struct Shared<T>(Arc<dyn AsRef<T> + Send + Sync>);

impl<T: Send + Sync + 'static> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(Value(value)))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (*self.0).as_ref()
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

struct Value<T>(T);

impl<T> AsRef<T> for Value<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn clones_share_one_value() {
        let counter = Shared::new(AtomicU32::new(1));
        counter.clone().store(2, Ordering::Relaxed);
        assert_eq!(counter.load(Ordering::Relaxed), 2);
        assert_eq!(format!("{counter:?}"), "2");
    }

    #[test]
    fn the_value_is_dropped_with_the_last_clone() {
        let value = Arc::new(());
        let first = Shared::new(Arc::clone(&value));
        let second = first.clone();
        drop(first);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
