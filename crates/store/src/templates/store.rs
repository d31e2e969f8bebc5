//! The methods of `Store` about templates.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId};

use super::records::{
    NewTemplate, Template, TemplateChange, TemplateRef, TemplateVersion, TemplateVersionInfo,
};
use super::{statements, versions};
use crate::{Result, Store, Updated};

#[boxed_futures]
impl Store {
    /// Creates a template with its first version, not published. `Conflict` if the alias or name is taken,
    /// `LimitReached` if the server already has `templates_max`, `MissingReference` without its layout.
    pub async fn create_template(&self, new: NewTemplate, templates_max: usize) -> Result<Template> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(statements::create(sql, new, templates_max as i64, now))).await
    }

    pub async fn find_template(
        &self,
        server_id: ServerId,
        template: TemplateRef,
    ) -> Result<Option<Template>> {
        self.read(move |sql| Box::pin(statements::find(sql, server_id, template))).await
    }

    /// Templates after `after`, in the order of their ids.
    pub async fn list_templates(
        &self,
        server_id: ServerId,
        name_part: Option<String>,
        after: Option<TemplateId>,
        limit: usize,
    ) -> Result<Vec<Template>> {
        self.read(move |sql| {
            Box::pin(async move {
                statements::list(sql, server_id, name_part.as_deref(), after, limit as i64).await
            })
        })
        .await
    }

    /// Changes alias and name, and adds a version if there is new content. Keeps the newest `versions_kept_max`
    /// versions, the published version and the one published before it. `OtherVersion` unless `if_latest` is the newest
    /// version; `Conflict` if the alias or name is taken, `MissingReference` without the layout of the content.
    pub async fn change_template(
        &self,
        server_id: ServerId,
        id: TemplateId,
        change: TemplateChange,
        versions_kept_max: usize,
    ) -> Result<Updated<Template>> {
        let now = self.clock.now();
        let kept_max = versions_kept_max as i64;
        self.write(move |sql| Box::pin(statements::change(sql, server_id, id, change, kept_max, now))).await
    }

    /// Publishes this version, and its layout if that has no published version. `NotFound` without the template or the
    /// version, `MissingReference` without its layout.
    pub async fn publish_template(
        &self,
        server_id: ServerId,
        id: TemplateId,
        version: i64,
    ) -> Result<Template> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(statements::publish(sql, server_id, id, version, now))).await
    }

    /// Deletes a template with all its versions. `InUse` while the newest or published version of another template has
    /// it as its layout.
    pub async fn delete_template(&self, server_id: ServerId, id: TemplateId) -> Result<()> {
        self.write(move |sql| Box::pin(statements::delete(sql, server_id, id))).await
    }

    pub async fn find_template_version(
        &self,
        server_id: ServerId,
        id: TemplateId,
        version: i64,
    ) -> Result<Option<TemplateVersion>> {
        self.read(move |sql| Box::pin(versions::find(sql, server_id, id, version))).await
    }

    /// Versions before `before`, newest first.
    pub async fn list_template_versions(
        &self,
        server_id: ServerId,
        id: TemplateId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TemplateVersionInfo>> {
        self.read(move |sql| Box::pin(versions::list(sql, server_id, id, before, limit as i64))).await
    }
}
