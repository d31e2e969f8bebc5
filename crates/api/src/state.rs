//! Long-lived parts of the HTTP API, shared by all requests.

use std::sync::{Arc, OnceLock};

use postroad_app::App;
use postroad_delivery::QueueAdmin;
use postroad_events::WebhookTester;
use postroad_net::limits::FairPool;

use crate::Settings;
use crate::answer_writer::AnswerWriter;
use crate::blocking_pool::BlockingPool;
use crate::body::BodyReader;
use crate::memory::Pools;
use crate::readiness::LastReadiness;
use crate::tenant::Tenant;

/// Maximum number of calls of all tenants that are in progress or whose answers are not sent yet.
const CALLS_IN_FLIGHT_MAX: usize = 16_384;

/// Maximum number of batches in progress at the same time, in total and per tenant: each keeps a processor busy.
const BATCHES_MAX: usize = 8;
const BATCHES_OF_TENANT_MAX: usize = 2;

/// Maximum number of calls that cancel or reschedule many messages at the same time, in total and per tenant. Their
/// permits are separate, so that mail can be stopped while batches are in progress.
const SCHEDULE_CHANGES_MAX: usize = 8;
const SCHEDULE_CHANGES_OF_TENANT_MAX: usize = 2;

/// Maximum number of sample events posted to webhooks at the same time, in total and per tenant: receivers may be slow.
const SAMPLES_MAX: usize = 128;
const SAMPLES_OF_TENANT_MAX: usize = 8;

/// Long-lived parts that endpoints work with.
#[derive(Debug)]
pub(crate) struct ApiState {
    pub(crate) app: App,
    pub(crate) body_reader: Arc<BodyReader>,
    pub(crate) answer_writer: Arc<AnswerWriter>,
    pub(crate) blocking_pool: Arc<BlockingPool>,
    /// One permit per call in flight.
    pub(crate) call_permits: FairPool<Tenant>,
    /// One permit per batch that is being checked and stored.
    pub(crate) batch_permits: Arc<FairPool<Tenant>>,
    /// One permit per call that cancels or reschedules many messages.
    pub(crate) schedule_change_permits: Arc<FairPool<Tenant>>,
    /// One permit per sample event that is being posted to a webhook.
    pub(crate) sample_permits: Arc<FairPool<Tenant>>,
    /// Posts sample events; set if the webhook worker runs in this process.
    webhook_tester: OnceLock<WebhookTester>,
    /// Delivery engine, if it runs in this process.
    queue: OnceLock<QueueAdmin>,
    /// Last result of `/ready`.
    pub(crate) readiness: LastReadiness,
}

impl ApiState {
    pub(crate) fn new(app: App, settings: &Settings) -> Self {
        let wait_max = settings.times.memory_wait;
        let pools = Arc::new(Pools::new(settings.in_flight_bytes_max, wait_max));
        Self {
            app,
            body_reader: Arc::new(BodyReader::new(settings, Arc::clone(&pools))),
            answer_writer: Arc::new(AnswerWriter::new(settings, pools)),
            blocking_pool: Arc::new(BlockingPool::new(wait_max)),
            call_permits: FairPool::new(CALLS_IN_FLIGHT_MAX, settings.requests_per_tenant_max, wait_max),
            batch_permits: Arc::new(FairPool::new(BATCHES_MAX, BATCHES_OF_TENANT_MAX, wait_max)),
            schedule_change_permits: Arc::new(FairPool::new(
                SCHEDULE_CHANGES_MAX,
                SCHEDULE_CHANGES_OF_TENANT_MAX,
                wait_max,
            )),
            sample_permits: Arc::new(FairPool::new(SAMPLES_MAX, SAMPLES_OF_TENANT_MAX, wait_max)),
            webhook_tester: OnceLock::new(),
            queue: OnceLock::new(),
            readiness: LastReadiness::default(),
        }
    }

    /// Sets the tester of webhooks; later calls are ignored.
    pub(crate) fn set_webhook_tester(&self, tester: WebhookTester) {
        self.webhook_tester.get_or_init(|| tester);
    }

    /// Sets the delivery engine; later calls are ignored.
    pub(crate) fn set_queue(&self, queue: QueueAdmin) {
        self.queue.get_or_init(|| queue);
    }

    pub(crate) fn queue(&self) -> Option<&QueueAdmin> {
        self.queue.get()
    }

    pub(crate) fn webhook_tester(&self) -> Option<&WebhookTester> {
        self.webhook_tester.get()
    }
}
