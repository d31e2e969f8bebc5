//! Entries of the audit log for display, with the names of actors and objects.

use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{
    AccountId, AccountKeyId, CredentialId, DomainId, ServerId, TemplateId, UserId, WebhookId,
};
use postroad_store::{AuditEntry, AuditFilter, AuditPage, Store, StoreError, TemplateRef, User};
use serde_json::Value;

use super::{AccountRefusal, Requester};
use crate::App;

#[derive(Debug, Clone)]
pub struct NamedAuditEntry {
    pub entry: AuditEntry,
    pub actor: ActorName,
    pub subject: SubjectName,
}

/// Name of the actor that made a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActorName {
    /// The operator at the command line of the machine.
    CommandLine,
    /// The operator of the service, by a key or signed in. Shown to customers, who do not learn which key or person.
    Operator,
    OperatorKey(String),
    Person {
        name: String,
        email: String,
    },
    /// A person who was removed after the change.
    FormerPerson {
        email: Option<String>,
    },
    AccountKey(String),
    ServerKey {
        name: String,
        server: Option<String>,
    },
    /// A key that no longer exists: revoked long ago, or gone with its server or account.
    FormerKey,
}

/// The object that was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectName {
    /// The object's name after the change, or before a deletion; empty for objects without a name.
    pub name: String,
    /// The server itself, or the server that the object belongs to, if that server still exists.
    pub server: Option<(ServerId, String)>,
    /// Whether the object still has a page in the portal, or a list that shows it. False for entries without `after`,
    /// such as deletions.
    pub exists: bool,
}

#[boxed_futures]
impl App {
    /// Like `list_audit`, with names; also returns where the next page begins.
    pub async fn list_named_audit(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<(Vec<NamedAuditEntry>, Option<i64>), AccountRefusal> {
        let AuditPage { entries, next } = self.list_audit(by, account, filter, before, limit).await?;
        let mut names = NameCache::new(&self.inner.store, by.actor.is_operator());
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            let (actor, subject) = (names.actor(&entry).await?, names.subject(&entry).await?);
            named.push(NamedAuditEntry { entry, actor, subject });
        }
        Ok((named, next))
    }
}

/// Names that the entries of one page of the log need. Each is read from the store once.
struct NameCache<'a> {
    store: &'a Store,
    shows_operators: bool,
    actors: HashMap<(String, Option<i64>), ActorName>,
    servers: HashMap<i64, Option<String>>,
    /// Whether an object exists, by kind and id.
    objects: HashMap<(String, i64), bool>,
}

impl<'a> NameCache<'a> {
    fn new(store: &'a Store, shows_operators: bool) -> Self {
        Self {
            store,
            shows_operators,
            actors: HashMap::new(),
            servers: HashMap::new(),
            objects: HashMap::new(),
        }
    }

    async fn actor(&mut self, entry: &AuditEntry) -> Result<ActorName, StoreError> {
        let key = (entry.actor.clone(), entry.actor_id);
        if let Some(known) = self.actors.get(&key) {
            return Ok(known.clone());
        }
        let id = entry.actor_id.unwrap_or_default();
        let name = match entry.actor.as_str() {
            "command_line" => ActorName::CommandLine,
            // For customers, `list_audit` removes the ids of people outside the account.
            "user" if entry.actor_id.is_none() => ActorName::Operator,
            "user" => self.person(entry, UserId(id)).await?,
            "operator_key" if !self.shows_operators => ActorName::Operator,
            "operator_key" | "account_key" => {
                match self.store.find_account_key_by_id(AccountKeyId(id)).await? {
                    Some(key) if key.account_id.is_none() => ActorName::OperatorKey(key.name),
                    Some(key) => ActorName::AccountKey(key.name),
                    None => ActorName::FormerKey,
                }
            }
            _ => match self.store.find_credential(CredentialId(id)).await? {
                Some(key) => {
                    let server = self.server(key.server_id.0).await?;
                    ActorName::ServerKey { name: key.name, server }
                }
                None => ActorName::FormerKey,
            },
        };
        self.actors.insert(key, name.clone());
        Ok(name)
    }

    async fn person(&self, entry: &AuditEntry, id: UserId) -> Result<ActorName, StoreError> {
        if let Some(User { name, email, .. }) = self.store.find_user(id).await? {
            return Ok(ActorName::Person { name, email });
        }
        let filter = AuditFilter {
            subject: Some("user".to_owned()),
            subject_id: Some(id.0),
            ..AuditFilter::default()
        };
        // The newest entry about the person is the removal.
        let last = self.store.list_audit(entry.account_id, filter, None, 1).await?.entries.pop();
        Ok(ActorName::FormerPerson {
            email: last.and_then(|entry| text_field(entry.before.as_ref(), "email")),
        })
    }

    async fn subject(&mut self, entry: &AuditEntry) -> Result<SubjectName, StoreError> {
        let fields = entry.after.as_ref().or(entry.before.as_ref());
        let field = |name: &str| text_field(fields, name).unwrap_or_default();
        let name = match entry.subject.as_str() {
            "user" | "invitation" => field("email"),
            "domain_link" => field("domain"),
            "webhook" => field("url"),
            "address" => field("address"),
            "gate" => match (field("scope"), field("key")) {
                (scope, key) if key.is_empty() => scope,
                (scope, key) => format!("{scope}:{key}"),
            },
            "suppressions" | "messages" | "setting" => String::new(),
            _ => field("name"),
        };
        let number = |name: &str| fields.and_then(|fields| fields[name].as_i64());
        let server_id = match entry.subject.as_str() {
            "server" => entry.subject_id,
            "gate" => name.strip_prefix("server:").and_then(|id| id.parse().ok()),
            _ => number("server"),
        };
        let server = match server_id {
            Some(id) => self.server(id).await?.map(|name| (ServerId(id), name)),
            None => None,
        };
        let exists = entry.after.is_some() && self.exists(entry, server_id).await?;
        Ok(SubjectName { name, server, exists })
    }

    /// Name of a server; `None` if it was deleted.
    async fn server(&mut self, id: i64) -> Result<Option<String>, StoreError> {
        if let Some(known) = self.servers.get(&id) {
            return Ok(known.clone());
        }
        let found = self.store.find_server(ServerId(id)).await?;
        let name = found.filter(|server| server.delete_at.is_none()).map(|server| server.name);
        self.servers.insert(id, name.clone());
        Ok(name)
    }

    /// Whether the page of an object exists. Objects without a page are shown on a list, which always exists.
    async fn exists(&mut self, entry: &AuditEntry, server_id: Option<i64>) -> Result<bool, StoreError> {
        let (Some(id), kind) = (entry.subject_id, entry.subject.as_str()) else { return Ok(true) };
        let key = (kind.to_owned(), id);
        if let Some(known) = self.objects.get(&key) {
            return Ok(*known);
        }
        let server = ServerId(server_id.unwrap_or_default());
        let exists = match kind {
            "server" => self.server(id).await?.is_some(),
            "domain" => self.store.find_domain_by_id(DomainId(id)).await?.is_some(),
            "webhook" => self.store.find_webhook(server, WebhookId(id)).await?.is_some(),
            "template" => self.store.find_template(server, TemplateRef::Id(TemplateId(id))).await?.is_some(),
            _ => true,
        };
        self.objects.insert(key, exists);
        Ok(exists)
    }
}

fn text_field(fields: Option<&Value>, name: &str) -> Option<String> {
    fields?.get(name)?.as_str().map(ToOwned::to_owned)
}
