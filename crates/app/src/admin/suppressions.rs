//! Admin commands for suppressions.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{SuppressionReason, Timestamp};
use postroad_store::{Suppression, SuppressionFilter};
use serde_json::{Value, json};

use super::AdminError;
use crate::accounts::Requester;
use crate::suppressions::SuppressionRequest;
use crate::{App, FieldProblem};

/// Maximum number of suppressions in a list, and in one page of an export.
const PAGE_MAX: usize = 1_000;

#[boxed_futures]
impl App {
    pub async fn add_suppression(&self, server: &str, item: SuppressionRequest) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        match self.add_suppressions(&Requester::command_line(), server.id, &[item]).await?.pop() {
            Some(Ok(added)) => {
                let mut answer = suppression_json(&added.stored);
                answer["status"] = if added.is_new { "added" } else { "exists" }.into();
                Ok(answer)
            }
            Some(Err(problems)) => Err(AdminError::refused(joined_messages(&problems))),
            None => Ok(Value::Null),
        }
    }

    pub async fn import_suppressions(
        &self,
        server: &str,
        items: &[SuppressionRequest],
    ) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        let results =
            self.add_suppressions(&Requester::command_line(), server.id, items).await?.into_iter().map(
                |result| match result {
                    Ok(added) if added.is_new => json!({ "status": "added" }),
                    Ok(_) => json!({ "status": "exists" }),
                    Err(problems) => json!({ "status": "error", "message": joined_messages(&problems) }),
                },
            );
        Ok(json!({ "results": results.collect::<Value>() }))
    }

    pub async fn remove_suppression(&self, server: &str, address: String) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        let removed = self
            .remove_suppressions(&Requester::command_line(), server.id, std::slice::from_ref(&address))
            .await?;
        match removed.into_iter().next() {
            Some(Ok(true)) => Ok(json!({ "removed": address })),
            Some(Err(problem)) => Err(AdminError::refused(problem.message)),
            _ => Err(AdminError::refused(format!(
                "`{address}` is not suppressed on the server `{}`; \
                 `postroad admin suppression list --server {}` shows who is",
                server.name, server.name
            ))),
        }
    }

    pub async fn show_suppressions(
        &self,
        server: &str,
        reason: Option<SuppressionReason>,
        limit: usize,
    ) -> Result<Value, AdminError> {
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(AdminError::refused(format!(
                "--limit must be from 1 to {PAGE_MAX}; `postroad admin suppression export` writes all there are"
            )));
        }
        let server = self.find_server(server).await?;
        let filter = SuppressionFilter { reason, ..SuppressionFilter::default() };
        let (found, _) = self.list_suppressions(server.id, filter, None, limit).await?;
        Ok(found.iter().map(suppression_json).collect())
    }

    pub async fn export_suppressions_page(
        &self,
        server: &str,
        after: Option<String>,
    ) -> Result<Value, AdminError> {
        let server = self.find_server(server).await?;
        let page = self.export_suppressions(server.id, after, PAGE_MAX).await?;
        Ok(json!({ "csv": page.csv, "count": page.count, "next": page.next }))
    }
}

fn joined_messages(problems: &[FieldProblem]) -> String {
    problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn suppression_json(suppression: &Suppression) -> Value {
    json!({
        "address": suppression.address,
        "reason": suppression.reason,
        "details": suppression.details,
        "origin_message_id": suppression.origin_message_id,
        "created_at": suppression.created_at.to_rfc3339(),
        "expires_at": suppression.expires_at.map(Timestamp::to_rfc3339),
    })
}
