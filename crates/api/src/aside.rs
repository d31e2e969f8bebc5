//! Long work off the async threads, which belong to everybody's requests.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use crate::failure::{Failure, Reason};

/// Calls driven aside at the same time. They wait for work that needs blocking threads too (reading and compressing
/// bodies): with all of tokio's 512 threads taken by calls, that work would never begin and the calls never end.
const CALLS_MAX: usize = 64;

/// Where whole calls run that have much to do.
#[derive(Debug)]
pub(crate) struct Aside {
    places: Arc<Semaphore>,
    wait_max: Duration,
}

impl Aside {
    pub(crate) fn new(wait_max: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(CALLS_MAX)), wait_max }
    }

    /// Drives a future to its end on a blocking thread. A large request borrows its texts from the body all the way
    /// into `app`, where decoding and composing alternate with the store: to hand only the long steps to other
    /// threads, each would need a copy of its own.
    pub(crate) async fn drive<T, F>(&self, call: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let Ok(Ok(place)) = timeout(self.wait_max, Arc::clone(&self.places).acquire_owned()).await else {
            return Err(Reason::Unavailable("the large requests in work are at their limit".into()).into());
        };
        run(move || {
            // Given back when the work is done, not when the caller has gone.
            let _place = place;
            Handle::current().block_on(call)
        })
        .await?
    }
}

/// Does work that takes long but waits for nothing.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
        // The boundary answers it. The error itself must not get into a log: its text quotes the panic's.
        Ok(panic) => resume_unwind(panic),
        Err(stopping) => cancelled(&stopping),
    })
}

fn cancelled(_: &JoinError) -> Failure {
    Reason::Unavailable("the service is stopping".into()).into()
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::thread;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_is_done_on_another_thread_and_may_wait() {
        let here = thread::current().id();
        let aside = Aside::new(Duration::from_secs(1));
        let there = aside.drive(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            run(|| ()).await?;
            Ok(thread::current().id())
        });
        assert_ne!(there.await.unwrap(), here);
    }

    #[tokio::test]
    async fn a_full_house_is_waited_for_and_not_for_ever() {
        let aside = Aside::new(Duration::from_millis(1));
        let all = Arc::clone(&aside.places).acquire_many_owned(CALLS_MAX as u32).await.unwrap();
        let refused = aside.drive(async { Ok(()) }).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        drop(all);
        aside.drive(async { Ok(()) }).await.unwrap();
        assert_eq!(aside.places.available_permits(), CALLS_MAX);
    }

    #[tokio::test]
    async fn a_panic_goes_on_where_the_work_was_asked_for() {
        let panic = AssertUnwindSafe(run(|| panic!("the cause"))).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the cause"));
    }
}
