//! Webhooks: endpoints, and the outbox they are told from.

use postroad_model::{EventId, ServerId, Timestamp, WebhookAttemptId, WebhookId};

use crate::records::{
    NewWebhook, Replay, Replayed, Webhook, WebhookAttempt, WebhookChange, WebhookDue, WebhookOutcome,
    WebhookSecret, WebhookWork,
};
use crate::verbs::{webhook_attempts, webhook_queue, webhooks};
use crate::{Engine, Result, Store};

impl Store {
    pub async fn create_webhook(&self, new: NewWebhook) -> Result<Webhook> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(webhooks::create(sql, new, now))).await
    }

    pub async fn find_webhook(&self, server_id: ServerId, id: WebhookId) -> Result<Option<Webhook>> {
        self.read(move |sql| Box::pin(webhooks::find(sql, server_id, id))).await
    }

    /// In the order of their ids, beginning after `after`.
    pub async fn list_webhooks(
        &self,
        server_id: ServerId,
        after: Option<WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>> {
        self.read(move |sql| Box::pin(webhooks::list(sql, server_id, after, limit as i64))).await
    }

    /// Of all servers.
    pub async fn list_enabled_webhooks(&self) -> Result<Vec<Webhook>> {
        self.read(move |sql| Box::pin(webhooks::list_enabled(sql))).await
    }

    /// Enabling it again forgives what it did before, and begins with what happens from then on.
    pub async fn change_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<Webhook> {
        let (now, is_over) = (self.clock.now(), change.enabled == Some(false));
        // A transaction that began before it was disabled may have left something when that was purged.
        if change.enabled == Some(true)
            && self.find_webhook(server_id, id).await?.is_some_and(|webhook| !webhook.enabled)
        {
            self.purge_webhook_queue(server_id, id).await?;
        }
        let webhook =
            self.write(move |sql| Box::pin(webhooks::change(sql, server_id, id, change, now))).await?;
        if is_over {
            self.purge_webhook_queue(server_id, id).await?;
        }
        Ok(webhook)
    }

    /// The secret so far stays good until `previous_until`.
    pub async fn rotate_webhook_secret(
        &self,
        server_id: ServerId,
        id: WebhookId,
        secret: WebhookSecret,
        previous_until: Timestamp,
    ) -> Result<Webhook> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(webhooks::rotate_secret(sql, server_id, id, secret, previous_until, now))
        })
        .await
    }

    /// What it was still to be told is forgotten. Disabled first, so that nothing is added meanwhile.
    pub async fn delete_webhook(&self, server_id: ServerId, id: WebhookId) -> Result<()> {
        let change = WebhookChange { enabled: Some(false), ..WebhookChange::default() };
        self.change_webhook(server_id, id, change).await?;
        self.write(move |sql| Box::pin(webhooks::delete(sql, server_id, id))).await
    }

    /// Disables an endpoint, tells of it, and forgets what it was to be told. `false` if it was disabled before, or if
    /// it has to be failing since `failing_before` and is not: a success came meanwhile.
    pub async fn disable_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        reason: String,
        failing_before: Option<Timestamp>,
    ) -> Result<bool> {
        let now = self.clock.now();
        let is_changed = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move {
                    webhook_queue::disable(sql, &ids, server_id, id, reason, failing_before, now).await
                })
            })
            .await?;
        if is_changed {
            self.bells.ring([server_id]);
            self.purge_webhook_queue(server_id, id).await?;
        }
        Ok(is_changed)
    }

    /// In small steps, between which others write.
    async fn purge_webhook_queue(&self, server_id: ServerId, id: WebhookId) -> Result<()> {
        while self.write(move |sql| Box::pin(webhooks::purge_queue(sql, server_id, id))).await? > 0 {}
        Ok(())
    }

    /// When each enabled webhook has something to be told next, those with nothing left out.
    pub async fn list_due_webhooks(&self) -> Result<Vec<WebhookDue>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(webhook_queue::due(sql, now))).await
    }

    /// Hands out what a webhook is to be told now, oldest first. On SQLite a claim is only a look, and what the
    /// caller has already (`held`) is left out; on PostgreSQL nobody else gets it for two minutes: to be taken in small
    /// portions.
    pub async fn claim_webhook_work(
        &self,
        server_id: ServerId,
        id: WebhookId,
        limit: usize,
        held: Vec<EventId>,
    ) -> Result<Vec<WebhookWork>> {
        let now = self.clock.now();
        let works = match &*self.engine {
            Engine::Sqlite { .. } => {
                self.read(move |sql| {
                    Box::pin(
                        async move { webhook_queue::claim(sql, server_id, id, limit, &held, 0, now).await },
                    )
                })
                .await?
            }
            Engine::Postgres(engine) => {
                let node = engine.node_number()?;
                self.write(move |sql| {
                    Box::pin(async move {
                        webhook_queue::claim(sql, server_id, id, limit, &held, node, now).await
                    })
                })
                .await?
            }
        };
        // All that is due was seen: what is left of it can never be told.
        if works.len() < limit
            && self.read(move |sql| Box::pin(webhook_queue::has_orphans(sql, server_id, id, now))).await?
        {
            self.write(move |sql| Box::pin(webhook_queue::remove_orphans(sql, server_id, id, now))).await?;
        }
        Ok(works)
    }

    /// Gives back what was claimed and not tried, so that nobody waits for the claim to end.
    pub async fn release_webhook_work(
        &self,
        server_id: ServerId,
        id: WebhookId,
        events: Vec<EventId>,
    ) -> Result<()> {
        if self.is_sqlite() || events.is_empty() {
            return Ok(());
        }
        self.write(move |sql| {
            Box::pin(async move { webhook_queue::release(sql, server_id, id, &events).await })
        })
        .await
    }

    /// Gives back everything that this node has claimed, when it posts no more.
    pub async fn release_webhook_claims(&self) -> Result<()> {
        match &*self.engine {
            // A claim is only a look.
            Engine::Sqlite { .. } => Ok(()),
            Engine::Postgres(engine) => engine.release_webhook_claims().await,
        }
    }

    /// Records what came of telling webhooks, all in one transaction.
    pub async fn settle_webhooks(&self, outcomes: Vec<WebhookOutcome>) -> Result<()> {
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move { webhook_attempts::settle(sql, &ids, &outcomes).await })
        })
        .await
    }

    /// Puts events into a webhook's queue again. `NotFound` if there is no such webhook or event.
    pub async fn replay_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        replay: Replay,
    ) -> Result<Replayed> {
        let now = self.clock.now();
        let replayed =
            self.write(move |sql| Box::pin(webhook_queue::replay(sql, server_id, id, replay, now))).await?;
        self.bells.ring([server_id]);
        Ok(replayed)
    }

    /// Newest first, beginning before `before`.
    pub async fn list_webhook_attempts(
        &self,
        server_id: ServerId,
        webhook_id: WebhookId,
        before: Option<WebhookAttemptId>,
        limit: usize,
    ) -> Result<Vec<WebhookAttempt>> {
        self.read(move |sql| {
            Box::pin(webhook_attempts::list_of_webhook(sql, server_id, webhook_id, before, limit as i64))
        })
        .await
    }

    /// In time order.
    pub async fn list_event_attempts(
        &self,
        server_id: ServerId,
        event_id: EventId,
        limit: usize,
    ) -> Result<Vec<WebhookAttempt>> {
        self.read(move |sql| {
            Box::pin(webhook_attempts::list_of_event(sql, server_id, event_id, limit as i64))
        })
        .await
    }

    pub async fn find_webhook_attempt(
        &self,
        server_id: ServerId,
        id: WebhookAttemptId,
    ) -> Result<Option<WebhookAttempt>> {
        self.read(move |sql| Box::pin(webhook_attempts::find(sql, server_id, id))).await
    }
}
