//! Suppressions of a server: list, add, remove, import and export.

mod check;
mod csv_lines;
mod csv_text;

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;
use postroad_store::{
    AddedSuppression, AuditSubject, StoreError, Suppression, SuppressionCursor, SuppressionFilter,
};

pub use check::SuppressionRequest;
pub(crate) use csv_text::write_csv;
pub use csv_text::{CsvLine, CsvList, CsvReader, read_csv};

use crate::access::Operation;
use crate::accounts::Requester;
use crate::{App, FieldProblem, Refusal};

/// Result for one item: the entry now in force, or the problems of the item.
pub type AddResult = Result<AddedSuppression, Vec<FieldProblem>>;

/// Result for one removal: whether the entry existed, or the problem of the address.
pub type RemoveResult = Result<bool, FieldProblem>;

/// Page of an export.
#[derive(Debug)]
pub struct ExportedPage {
    /// CSV text with its header.
    pub csv: String,
    pub count: usize,
    /// Last address of the page, if more may follow.
    pub next: Option<String>,
}

#[boxed_futures]
impl App {
    /// Suppresses addresses. Each address is checked on its own: valid ones are added even if others are invalid.
    /// Adding an address twice is harmless.
    pub async fn add_suppressions(
        &self,
        by: &Requester,
        server_id: ServerId,
        requests: &[SuppressionRequest],
    ) -> Result<Vec<AddResult>, StoreError> {
        let now = self.inner.clock.now();
        let mut valid = Vec::new();
        let checked: Vec<Result<(), Vec<FieldProblem>>> =
            requests.iter().map(|request| request.check(now).map(|new| valid.push(new))).collect();
        let store = self.audited_store(by, Operation::SuppressionsAdd, AuditSubject::Suppressions(server_id));
        let mut added = store.add_suppressions(server_id, valid).await?.into_iter();
        let results = checked
            .into_iter()
            .map(|checked| checked.map(|()| added.next().expect("the store returns a result for each")));
        Ok(results.collect())
    }

    /// Ends the suppression of addresses. Messages held because of a suppression stay held.
    pub async fn remove_suppressions(
        &self,
        by: &Requester,
        server_id: ServerId,
        addresses: &[String],
    ) -> Result<Vec<RemoveResult>, StoreError> {
        let mut valid = Vec::new();
        let checked: Vec<Result<(), FieldProblem>> = addresses
            .iter()
            .map(|address| check::check_address(address).map(|address| valid.push(address.into())))
            .collect();
        let store =
            self.audited_store(by, Operation::SuppressionsRemove, AuditSubject::Suppressions(server_id));
        let mut removed = store.remove_suppressions(server_id, valid).await?.into_iter();
        let results = checked
            .into_iter()
            .map(|checked| checked.map(|()| removed.next().expect("the store returns a result for each")));
        Ok(results.collect())
    }

    pub async fn find_suppression(
        &self,
        server_id: ServerId,
        address: &str,
    ) -> Result<Option<Suppression>, Refusal> {
        let address = check::check_address(address).map_err(|problem| Refusal::Validation(vec![problem]))?;
        Ok(self.inner.store.find_suppression(server_id, address.into()).await?)
    }

    /// Returns at most `limit` entries, newest first, and whether there are more.
    pub async fn list_suppressions(
        &self,
        server_id: ServerId,
        filter: SuppressionFilter,
        after: Option<SuppressionCursor>,
        limit: usize,
    ) -> Result<(Vec<Suppression>, bool), StoreError> {
        let mut found = self.inner.store.list_suppressions(server_id, filter, after, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }

    /// Exports the list page by page, sorted by address.
    pub async fn export_suppressions(
        &self,
        server_id: ServerId,
        after: Option<String>,
        limit: usize,
    ) -> Result<ExportedPage, StoreError> {
        let mut found = self.inner.store.list_suppressions_by_address(server_id, after, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| last.address.clone());
        Ok(ExportedPage { csv: write_csv(&found), count: found.len(), next })
    }

    /// Exports, page by page, the entries that a filter selects, newest first. Returns CSV text with its header, and
    /// where the next page begins if more may follow.
    pub async fn export_selected_suppressions(
        &self,
        server_id: ServerId,
        filter: SuppressionFilter,
        after: Option<SuppressionCursor>,
        limit: usize,
    ) -> Result<(String, Option<SuppressionCursor>), StoreError> {
        let (found, has_more) = self.list_suppressions(server_id, filter, after, limit).await?;
        let next = found.last().filter(|_| has_more).map(SuppressionCursor::after);
        Ok((write_csv(&found), next))
    }
}
