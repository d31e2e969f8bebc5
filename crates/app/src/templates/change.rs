//! Creates, changes, publishes and deletes templates.

use postroad_boxed_futures::boxed_futures;
use postroad_model::TemplateId;
use postroad_store::{
    AuditSubject, NewTemplate, Template, TemplateChange, TemplateContent, TemplateKind, TemplateRef,
};

use super::content::{self, TemplateFields};
use super::find::FoundTemplate;
use super::limits::{ALIAS_BYTES_MAX, TEMPLATES_PER_SERVER, VERSIONS_KEPT};
use super::refusal::TemplateRefusal;
use super::render::run_blocking;
use crate::access::Operation;
use crate::accounts::{Created, CreationKey};
use crate::{App, Caller, FieldProblem};
use postroad_store::{StoreError, UpdateResult};

/// Maximum number of times that a change is tried: it is tried again if somebody else saved a version meanwhile.
const CHANGE_TRIES_MAX: usize = 10;

/// A template and, if named, one of its versions.
#[derive(Debug)]
pub struct VersionRequest {
    pub template: TemplateRef,
    pub version: Option<i64>,
}

#[boxed_futures]
impl App {
    /// Creates a template with its first version, and publishes it if `publish` is set.
    pub async fn create_template(
        &self,
        caller: &Caller,
        fields: TemplateFields,
        publish: bool,
        key: Option<CreationKey>,
    ) -> Result<Created<FoundTemplate>, TemplateRefusal> {
        let key = key.map(|key| key.of_server(caller.server_id));
        if let Some(earlier) = self.find_template_created_before(caller, publish, key.as_ref()).await? {
            return Ok(earlier);
        }
        let mut problems = Vec::new();
        let kind = parse_kind(fields.kind.as_deref(), &mut problems);
        let alias = fields.alias.clone().flatten();
        content::check_alias(alias.as_deref(), &mut problems);
        let name = fields.name.clone().unwrap_or_default();
        content::check_name(&name, &mut problems);
        let before = TemplateContent { inline_css: true, ..TemplateContent::default() };
        let content = self.build_content(caller, kind, fields, before, problems).await?;
        let new = NewTemplate { server_id: caller.server_id, alias, name, kind, content };
        let subject = AuditSubject::NewTemplate(caller.server_id, new.name.clone());
        let creation = key.as_ref().map(|key| (caller.account_id, key));
        let store = self.audited_store_for_creation(
            &caller.requester(),
            Operation::TemplatesCreate,
            subject,
            creation,
        );
        let alias = new.alias.clone();
        let created = store.create_template(new, TEMPLATES_PER_SERVER).await;
        // A concurrent call with the same idempotency key may have created the template, and reached the limit with it.
        if matches!(created, Err(StoreError::Conflict | StoreError::LimitReached))
            && let Some(earlier) = self.find_template_created_before(caller, publish, key.as_ref()).await?
        {
            return Ok(earlier);
        }
        let created = match created {
            Ok(created) => created,
            Err(StoreError::LimitReached) => return Err(TemplateRefusal::TooMany),
            Err(StoreError::Conflict) => return Err(self.taken_refusal(caller, alias, None).await?),
            Err(other) => return Err(other.into()),
        };
        self.inner.templates.forget();
        let value = if publish {
            self.publish_version(caller, created.id, created.latest, Operation::TemplatesPublish).await?
        } else {
            self.with_version(created, None).await?
        };
        Ok(Created { value, is_replay: false })
    }

    /// The template that an earlier call with the same idempotency key created; published if `publish` is set.
    async fn find_template_created_before(
        &self,
        caller: &Caller,
        publish: bool,
        key: Option<&CreationKey>,
    ) -> Result<Option<Created<FoundTemplate>>, TemplateRefusal> {
        let Some(id) = self.find_created_id_on_server(caller.account_id, key).await? else { return Ok(None) };
        let mut value = self.find_template(caller, TemplateRef::Id(TemplateId(id)), None).await?;
        // The first call may have ended before it published.
        if publish && value.template.published.is_none() {
            let (id, latest) = (value.template.id, value.template.latest);
            value = self.publish_version(caller, id, latest, Operation::TemplatesPublish).await?;
        }
        Ok(Some(Created { value, is_replay: true }))
    }

    /// Changes the given fields, if `if_latest` is the newest version or left out. Changed content becomes a new
    /// version, unchanged content does not. Publishes the newest version if `publish` is set. Without `if_latest`,
    /// concurrent changes are applied one after the other.
    pub async fn change_template(
        &self,
        caller: &Caller,
        template: TemplateRef,
        if_latest: Option<i64>,
        fields: TemplateFields,
        publish: bool,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        let mut tries = 1;
        let changed = loop {
            // A copy, because another try needs the fields again.
            let changed = self.change_once(caller, template.clone(), if_latest, fields.clone()).await;
            let is_overtaken =
                if_latest.is_none() && matches!(changed, Err(TemplateRefusal::OtherVersion(_)));
            if !is_overtaken || tries == CHANGE_TRIES_MAX {
                break changed?;
            }
            tries += 1;
        };
        if publish {
            let (id, version) = (changed.id, changed.latest);
            return self.publish_version(caller, id, version, Operation::TemplatesPublish).await;
        }
        self.with_version(changed, None).await
    }

    /// Tries a change once. Refuses with `OtherVersion` if `if_latest` is not the newest version, or if another version
    /// was saved after the texts were read.
    async fn change_once(
        &self,
        caller: &Caller,
        template: TemplateRef,
        if_latest: Option<i64>,
        fields: TemplateFields,
    ) -> Result<Template, TemplateRefusal> {
        let before = self.find_template(caller, template, None).await?;
        let (id, latest) = (before.template.id, before.template.latest);
        let mut problems = Vec::new();
        let alias = fields.alias.clone();
        content::check_alias(alias.as_ref().and_then(Option::as_deref), &mut problems);
        let name = fields.name.clone();
        if let Some(name) = &name {
            content::check_name(name, &mut problems);
        }
        if fields.kind.as_deref().is_some_and(|kind| kind != before.template.kind.as_str()) {
            let message = "`type` is set when a template is created";
            problems.push(FieldProblem::new("/type", message));
        }
        let has_content = fields.has_content();
        let content = if has_content {
            let (kind, current) = (before.template.kind, before.version.content);
            let content = self.build_content(caller, kind, fields, current.clone(), problems).await?;
            Some(content).filter(|content| *content != current)
        } else if problems.is_empty() {
            None
        } else {
            return Err(TemplateRefusal::Validation(problems));
        };
        let if_latest = if_latest.or(has_content.then_some(latest));
        let change = TemplateChange { if_latest, alias, name, content };
        let subject = AuditSubject::Template(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), Operation::TemplatesUpdate, subject);
        let alias = change.alias.clone().flatten();
        let changed = store.change_template(caller.server_id, id, change, VERSIONS_KEPT).await;
        self.inner.templates.forget();
        match changed {
            Err(StoreError::Conflict) => Err(self.taken_refusal(caller, alias, Some(id)).await?),
            changed => match changed? {
                UpdateResult::Done(template) => Ok(template),
                UpdateResult::OtherVersion(version) => Err(TemplateRefusal::OtherVersion(version)),
            },
        }
    }

    /// Publishes the newest version, or the named one.
    pub async fn publish_template(
        &self,
        caller: &Caller,
        request: VersionRequest,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        let found = self.inner.store.find_template(caller.server_id, request.template).await?;
        let template = found.ok_or(TemplateRefusal::NotFound)?;
        let version = request.version.unwrap_or(template.latest);
        self.publish_version(caller, template.id, version, Operation::TemplatesPublish).await
    }

    /// Publishes the named version, or else the version that was published before the one published now.
    pub async fn roll_back_template(
        &self,
        caller: &Caller,
        request: VersionRequest,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        let found = self.inner.store.find_template(caller.server_id, request.template).await?;
        let template = found.ok_or(TemplateRefusal::NotFound)?;
        let version = request.version.or(template.previous).ok_or(TemplateRefusal::NothingToRollBackTo)?;
        self.publish_version(caller, template.id, version, Operation::TemplatesRollback).await
    }

    pub async fn delete_template(
        &self,
        caller: &Caller,
        template: TemplateRef,
    ) -> Result<TemplateId, TemplateRefusal> {
        let store = &self.inner.store;
        let template =
            store.find_template(caller.server_id, template).await?.ok_or(TemplateRefusal::NotFound)?;
        let subject = AuditSubject::Template(caller.server_id, template.id);
        let store = self.audited_store(&caller.requester(), Operation::TemplatesDelete, subject);
        store.delete_template(caller.server_id, template.id).await?;
        self.inner.templates.forget();
        Ok(template.id)
    }

    /// The refusal for an alias, or else a name, that another template has already.
    async fn taken_refusal(
        &self,
        caller: &Caller,
        alias: Option<String>,
        own: Option<TemplateId>,
    ) -> Result<TemplateRefusal, StoreError> {
        if let Some(alias) = alias {
            let found = self.inner.store.find_template(caller.server_id, TemplateRef::Alias(alias)).await?;
            if found.is_some_and(|found| Some(found.id) != own) {
                return Ok(TemplateRefusal::AliasTaken);
            }
        }
        let problem = FieldProblem::new("/name", "Another template of the server has this `name`");
        Ok(TemplateRefusal::Validation(vec![problem]))
    }

    async fn publish_version(
        &self,
        caller: &Caller,
        id: TemplateId,
        version: i64,
        operation: Operation,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        // The version could be compiled when it was saved, but a newer release may be stricter. Publishing a version
        // that no longer compiles would stop mail.
        self.compiled_template(caller.server_id, id, version).await?;
        // Everything is read before the version is published, so that nothing fails afterwards: a caller would repeat a
        // failed rollback, which would publish yet another version.
        let mut found = self.find_template(caller, TemplateRef::Id(id), Some(version)).await?;
        let subject = AuditSubject::Template(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), operation, subject);
        let published = store.publish_template(caller.server_id, id, version).await;
        self.inner.templates.forget();
        found.template = published?;
        found.version.info.published_at = Some(found.template.updated_at);
        Ok(found)
    }

    /// Applies fields to existing content, checks the result, and generates its HTML and plain text.
    pub(super) async fn build_content(
        &self,
        caller: &Caller,
        kind: TemplateKind,
        fields: TemplateFields,
        before: TemplateContent,
        mut problems: Vec<FieldProblem>,
    ) -> Result<TemplateContent, TemplateRefusal> {
        let layout = fields.layout.clone();
        let mut content = fields.apply(before, &mut problems);
        if let Some(layout) = layout {
            content.layout = match layout {
                Some(name) => self.find_layout(caller, &name, &mut problems).await?,
                None => None,
            };
        }
        if !problems.is_empty() {
            return Err(TemplateRefusal::Validation(problems));
        }
        let engine = self.inner.templates.engine.clone();
        run_blocking(move || content::build(&engine, kind, content).map(|(content, _)| content)).await
    }

    async fn find_layout(
        &self,
        caller: &Caller,
        name: &str,
        problems: &mut Vec<FieldProblem>,
    ) -> Result<Option<TemplateId>, TemplateRefusal> {
        let found = self.inner.store.find_template(caller.server_id, parse_template_ref(name)).await?;
        let layout = found.filter(|layout| layout.kind == TemplateKind::Layout);
        if layout.is_none() {
            let TemplateRefusal::Validation(problem) = TemplateRefusal::layout_not_found() else {
                return Ok(None);
            };
            problems.extend(problem);
        }
        Ok(layout.map(|layout| layout.id))
    }
}

/// Parses an id or alias. An alias begins with a letter, an id does not.
pub(crate) fn parse_template_ref(name: &str) -> TemplateRef {
    match name.parse() {
        Ok(id) => TemplateRef::Id(TemplateId(id)),
        // The name is longer than any alias, so no template has it. Id 0, which no template has, avoids copying a long
        // text.
        Err(_) if name.len() > ALIAS_BYTES_MAX => TemplateRef::Id(TemplateId(0)),
        Err(_) => TemplateRef::Alias(name.to_owned()),
    }
}

fn parse_kind(text: Option<&str>, problems: &mut Vec<FieldProblem>) -> TemplateKind {
    let kind = text.map_or(Some(TemplateKind::Standard), TemplateKind::parse);
    if kind.is_none() {
        problems.push(FieldProblem::new("/type", "`type` should be `standard` or `layout`"));
    }
    kind.unwrap_or(TemplateKind::Standard)
}
