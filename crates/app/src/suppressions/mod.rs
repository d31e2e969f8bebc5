//! The addresses that get no more mail from a server: look, add, remove, bring in and take away lists.

mod check;
mod csv_lines;
mod csv_text;

use postroad_model::ServerId;
use postroad_store::{AddedSuppression, StoreError, Suppression, SuppressionCursor, SuppressionFilter};

pub use check::GivenSuppression;
pub(crate) use csv_text::write_csv;
pub use csv_text::{CsvLine, CsvList, CsvReader, read_csv};

use crate::{App, FieldProblem, Refusal};

/// How one of many that were given ended: the entry that stands now, or what is wrong with it.
pub type AddedOrNot = Result<AddedSuppression, Vec<FieldProblem>>;

/// How one of many that were to be removed ended: whether it was there, or what is wrong with its address.
pub type RemovedOrNot = Result<bool, FieldProblem>;

/// A page of a list as CSV.
#[derive(Debug)]
pub struct ExportedPage {
    /// With its header.
    pub csv: String,
    pub count: usize,
    /// Its last address, if more may follow.
    pub next: Option<String>,
}

impl App {
    /// Suppresses addresses. Each is checked by itself: the good ones are added whatever the others are. Adding one
    /// again does no harm.
    pub async fn add_suppressions(
        &self,
        server_id: ServerId,
        given: &[GivenSuppression],
    ) -> Result<Vec<AddedOrNot>, StoreError> {
        let now = self.inner.clock.now();
        let mut good = Vec::new();
        let checked: Vec<Result<(), Vec<FieldProblem>>> =
            given.iter().map(|given| given.check(now).map(|new| good.push(new))).collect();
        let mut added = self.inner.store.add_suppressions(server_id, good).await?.into_iter();
        let ended = checked.into_iter().map(|checked| {
            checked.map(|()| added.next().expect("the store answers for each that it was given"))
        });
        Ok(ended.collect())
    }

    /// Lets addresses get mail again. What was held for them stays held until it is released.
    pub async fn remove_suppressions(
        &self,
        server_id: ServerId,
        addresses: &[String],
    ) -> Result<Vec<RemovedOrNot>, StoreError> {
        let mut good = Vec::new();
        let checked: Vec<Result<(), FieldProblem>> = addresses
            .iter()
            .map(|address| check::check_address(address).map(|address| good.push(address.into())))
            .collect();
        let mut removed = self.inner.store.remove_suppressions(server_id, good).await?.into_iter();
        let ended = checked.into_iter().map(|checked| {
            checked.map(|()| removed.next().expect("the store answers for each that it was given"))
        });
        Ok(ended.collect())
    }

    pub async fn find_suppression(
        &self,
        server_id: ServerId,
        address: &str,
    ) -> Result<Option<Suppression>, Refusal> {
        let address = check::check_address(address).map_err(|problem| Refusal::Validation(vec![problem]))?;
        Ok(self.inner.store.find_suppression(server_id, address.into()).await?)
    }

    /// Newest first; one more than `limit` is never returned, the flag says whether there are more.
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

    /// The whole list page by page, in the order of its addresses.
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
}
