//! Finds a template by id or alias, lists the versions of a template, and lists the templates of a server.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId};
use postroad_store::{Template, TemplateRef, TemplateVersion, TemplateVersionInfo};

use super::compiled::CompiledTemplate;
use super::refusal::TemplateRefusal;
use crate::{App, Caller};

/// A template and one of its versions.
#[derive(Debug, Clone)]
pub struct FoundTemplate {
    pub template: Template,
    pub version: TemplateVersion,
    /// Alias of the layout, or its id if it has no alias.
    pub layout: Option<String>,
}

#[boxed_futures]
impl App {
    /// Finds a template with its newest version, or with the version that `version` names.
    pub async fn find_template(
        &self,
        caller: &Caller,
        template: TemplateRef,
        version: Option<i64>,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        let found = self.inner.store.find_template(caller.server_id, template).await?;
        let template = found.ok_or(TemplateRefusal::NotFound)?;
        self.with_version(template, version).await
    }

    /// The template with the named version, or else the newest, and with the name of that version's layout.
    pub(super) async fn with_version(
        &self,
        template: Template,
        version: Option<i64>,
    ) -> Result<FoundTemplate, TemplateRefusal> {
        let store = &self.inner.store;
        let number = version.unwrap_or(template.latest);
        let found = store.find_template_version(template.server_id, template.id, number).await?;
        let version = found.ok_or(TemplateRefusal::VersionNotFound)?;
        let layout = match version.content.layout {
            Some(id) => {
                let layout = store.find_template(template.server_id, TemplateRef::Id(id)).await?;
                Some(layout.and_then(|layout| layout.alias).unwrap_or_else(|| id.to_string()))
            }
            None => None,
        };
        Ok(FoundTemplate { template, version, layout })
    }

    /// Returns a page ordered by id, and whether there are more. `name_part` is searched for in names and aliases.
    pub async fn list_templates(
        &self,
        caller: &Caller,
        name_part: Option<String>,
        after: Option<TemplateId>,
        limit: usize,
    ) -> Result<(Vec<Template>, bool), TemplateRefusal> {
        let mut found =
            self.inner.store.list_templates(caller.server_id, name_part, after, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }

    /// Returns a page of versions, newest first, and whether there are more.
    pub async fn list_template_versions(
        &self,
        caller: &Caller,
        template: TemplateRef,
        before: Option<i64>,
        limit: usize,
    ) -> Result<(Template, Vec<TemplateVersionInfo>, bool), TemplateRefusal> {
        let store = &self.inner.store;
        let template =
            store.find_template(caller.server_id, template).await?.ok_or(TemplateRefusal::NotFound)?;
        let mut found =
            store.list_template_versions(caller.server_id, template.id, before, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((template, found, has_more))
    }

    /// A template, as it was at most two seconds ago.
    pub(super) async fn recent_template(
        &self,
        server_id: ServerId,
        template: TemplateRef,
    ) -> Result<Arc<Template>, TemplateRefusal> {
        let recent = &self.inner.templates.recent;
        let key = (server_id, template);
        if let Some(template) = recent.find(&key) {
            return Ok(template);
        }
        let start = recent.start_read();
        let found = self.inner.store.find_template(server_id, key.1.clone()).await?;
        let template = Arc::new(found.ok_or(TemplateRefusal::NotFound)?);
        recent.put(key, Arc::clone(&template), start);
        Ok(template)
    }

    /// A compiled version of a template, from the cache if the cache has it.
    pub(super) async fn compiled_template(
        &self,
        server_id: ServerId,
        id: TemplateId,
        version: i64,
    ) -> Result<Arc<CompiledTemplate>, TemplateRefusal> {
        let cache = &self.inner.templates.compiled;
        let key = (server_id, id, version);
        if let Some(compiled) = cache.find(key) {
            return Ok(compiled);
        }
        let found = self.inner.store.find_template_version(server_id, id, version).await?;
        let content = found.ok_or(TemplateRefusal::VersionNotFound)?.content;
        let engine = self.inner.templates.engine.clone();
        let compiled = super::render::run_blocking(move || {
            CompiledTemplate::compile(&engine, &content).map_err(TemplateRefusal::Invalid)
        });
        let compiled = Arc::new(compiled.await?);
        cache.put(key, Arc::clone(&compiled));
        Ok(compiled)
    }
}
