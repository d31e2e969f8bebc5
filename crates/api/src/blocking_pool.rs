//! Blocking threads for long work, so that such work does not delay other requests on the async threads.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use postroad_net::limits::FairPool;
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;

use crate::failure::{Failure, Reason};
use crate::tenant::Tenant;

/// Maximum number of calls running on blocking threads at the same time, in total and per tenant.
const CALLS_MAX: usize = 64;
const CALLS_OF_TENANT_MAX: usize = 16;

/// Runs whole calls with much work on blocking threads, within limits in total and per tenant.
#[derive(Debug)]
pub(crate) struct BlockingPool {
    /// One permit per blocking thread that a call uses.
    permits: FairPool<Tenant>,
}

impl BlockingPool {
    pub(crate) fn new(wait_max: Duration) -> Self {
        Self { permits: FairPool::new(CALLS_MAX, CALLS_OF_TENANT_MAX, wait_max) }
    }

    /// Runs a future to completion on blocking threads. While the future waits for the store or the network, it holds
    /// no thread; it takes one again when it is woken.
    ///
    /// The whole call runs there, because reading, decoding and composing a large request alternate with store calls.
    /// Moving only the long steps to other threads would need a copy of the texts for each step: a batch borrows its
    /// texts from the body all the way into `app`.
    pub(crate) async fn run<T, F>(&self, tenant: impl Into<Tenant>, call: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let result_of_call = Arc::clone(&result);
        let call = Box::pin(async move {
            let outcome = call.await;
            *result_of_call.lock() = Some(outcome);
        });
        self.run_without_result(tenant.into(), call).await?;
        let outcome = result.lock().take();
        outcome.expect("a call that ran to its end has left its result")
    }

    /// Like `run`, but without a result: compiled once and not for each kind of call.
    async fn run_without_result(
        &self,
        tenant: Tenant,
        mut call: Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> Result<(), Failure> {
        let Some(mut permit) = self.permits.acquire(tenant, 1).await else {
            return Err(Reason::Unavailable("too many large requests are in progress".into()).into());
        };
        let wake_signal = Arc::new(WakeSignal(Notify::new()));
        loop {
            let waker = Waker::from(Arc::clone(&wake_signal));
            let polled;
            (call, polled) = run_on_blocking_thread(move || {
                // The permit is released when the work is done, even if the caller has gone.
                let _permit = permit;
                let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
                (call, polled)
            })
            .await?;
            if polled.is_ready() {
                return Ok(());
            }
            wake_signal.0.notified().await;
            // This wait has no timeout: the call may have stored something already. Threads become free soon, because
            // calls hold them only while they work.
            permit = self.permits.acquire_without_timeout(tenant, 1).await;
        }
    }
}

/// Notifies the loop in `run_without_result` that the future can continue.
struct WakeSignal(Notify);

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Runs long work that never waits, on a blocking thread. Takes no permit of a `BlockingPool`.
pub(crate) async fn run_on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (sender, receiver) = oneshot::channel();
    // Sending fails if the caller has gone.
    let work = move || drop(sender.send(work()));
    run_boxed(Box::new(work)).await?;
    Ok(receiver.await.expect("work that ended has sent its result"))
}

/// Like `run_on_blocking_thread`, but without a result: compiled once and not for each kind of work.
async fn run_boxed(work: Box<dyn FnOnce() + Send>) -> Result<(), Failure> {
    spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
        // `boundary.rs` turns the panic into an error answer. The `JoinError` is not logged: its text quotes the panic
        // message.
        Ok(panic) => resume_unwind(panic),
        // Not a panic: the runtime is shutting down.
        Err(_) => Failure::from(Reason::Unavailable("the service is stopping".into())),
    })
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::panic::AssertUnwindSafe;
    use std::task::Poll;
    use std::thread;

    use futures_util::FutureExt;

    use postroad_model::ServerId;

    use super::*;

    const SERVER_1: ServerId = ServerId(1);

    #[tokio::test]
    async fn work_is_done_on_another_thread_and_may_wait() {
        let here = thread::current().id();
        let blocking_pool = BlockingPool::new(Duration::from_secs(1));
        let there = blocking_pool.run(SERVER_1, async move {
            let before = thread::current().id();
            tokio::time::sleep(Duration::from_millis(1)).await;
            run_on_blocking_thread(|| ()).await?;
            Ok([before, thread::current().id()].map(|thread| thread != here))
        });
        assert_eq!(there.await.unwrap(), [true, true]);
    }

    #[tokio::test]
    async fn calls_that_wait_hold_no_thread() {
        let blocking_pool = BlockingPool::new(Duration::from_millis(1));
        let (release, wait) = tokio::sync::watch::channel(false);
        let waiting = (0..10 * CALLS_MAX).map(|_| {
            let mut wait = wait.clone();
            blocking_pool.run(SERVER_1, async move {
                wait.wait_for(|released| *released).await.ok();
                Ok(())
            })
        });
        let mut waiting = Box::pin(futures_util::future::join_all(waiting));
        let other = async {
            // Calls of other servers get threads, although hundreds of calls of one server wait.
            for server in 2..20 {
                blocking_pool.run(ServerId(server), async { Ok(()) }).await.expect("there are threads");
            }
            release.send_replace(true);
        };
        let (done, ()) = tokio::join!(&mut waiting, other);
        // The others are refused if they wait longer than 1 ms for a thread.
        assert!(done.iter().any(Result::is_ok));
        assert_eq!(blocking_pool.permits.free(), CALLS_MAX);
    }

    #[tokio::test]
    async fn waiting_for_a_full_pool_has_a_timeout() {
        let blocking_pool = BlockingPool::new(Duration::from_millis(1));
        let all = blocking_pool.permits.acquire(SERVER_1.into(), CALLS_OF_TENANT_MAX).await.unwrap();
        let refused = blocking_pool.run(SERVER_1, async { Ok(()) }).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        blocking_pool.run(ServerId(2), async { Ok(()) }).await.expect("others have their own share");
        drop(all);
        blocking_pool.run(SERVER_1, async { Ok(()) }).await.unwrap();
        assert_eq!(blocking_pool.permits.free(), CALLS_MAX);
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller() {
        let panic = AssertUnwindSafe(run_on_blocking_thread(|| panic!("the cause")))
            .catch_unwind()
            .await
            .unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the cause"));
        let blocking_pool = BlockingPool::new(Duration::from_secs(1));
        let call =
            blocking_pool.run(SERVER_1, poll_fn(|_| -> Poll<Result<(), Failure>> { panic!("the cause") }));
        let panic = AssertUnwindSafe(call).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the cause"));
    }
}
