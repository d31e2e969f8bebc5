//! Audit log of the account: who changed what, when, and from where. The operator reads the logs of all accounts and of
//! the installation.

mod export;
mod filter;
mod list;
mod row;

use std::sync::Arc;

use axum::Router;
use postroad_model::AccountId;
use postroad_store::INSTALLATION;

use crate::answer::Answer;
use crate::layout::Section;
use crate::page_routes::get;
use crate::path::Path;
use crate::problem::Problem;
use crate::state::PortalState;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;

/// Owner of the log on a page.
enum Log {
    Account(ViewedAccount),
    Installation,
}

impl Log {
    fn own(visit: &Visit) -> Self {
        Self::Account(ViewedAccount::own(visit, Section::Audit))
    }

    async fn of_customer(visit: &Visit, id: i64) -> Result<Self, Problem> {
        Ok(Self::Account(ViewedAccount::of_customer(visit, id).await?))
    }

    fn of_installation(visit: &Visit) -> Result<Self, Problem> {
        visit.app().check_installation_audit(&visit.requester)?;
        Ok(Self::Installation)
    }

    fn account_id(&self) -> AccountId {
        match self {
            Self::Account(account) => account.id,
            Self::Installation => INSTALLATION,
        }
    }

    /// Path of the page.
    fn path(&self) -> String {
        let base = match self {
            Self::Account(account) => &account.base,
            Self::Installation => "/operator",
        };
        format!("{base}/audit")
    }

    fn section(&self) -> Section {
        match self {
            Self::Account(account) => account.section,
            Self::Installation => Section::Operator,
        }
    }

    fn is_own(&self) -> bool {
        matches!(self, Self::Account(account) if account.is_own())
    }
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/audit", get(show))
        .route("/account/audit/export", get(export))
        .route("/operator/accounts/{account}/audit", get(show_of_customer))
        .route("/operator/accounts/{account}/audit/export", get(export_of_customer))
        .route("/operator/audit", get(show_installation))
        .route("/operator/audit/export", get(export_installation))
}

async fn show(visit: Visit) -> Answer {
    list::show(&visit, Log::own(&visit)).await
}

async fn export(visit: Visit) -> Answer {
    export::send(&visit, Log::own(&visit)).await
}

async fn show_of_customer(Path(account): Path<i64>, visit: Visit) -> Answer {
    list::show(&visit, Log::of_customer(&visit, account).await?).await
}

async fn export_of_customer(Path(account): Path<i64>, visit: Visit) -> Answer {
    export::send(&visit, Log::of_customer(&visit, account).await?).await
}

async fn show_installation(visit: Visit) -> Answer {
    list::show(&visit, Log::of_installation(&visit)?).await
}

async fn export_installation(visit: Visit) -> Answer {
    export::send(&visit, Log::of_installation(&visit)?).await
}
