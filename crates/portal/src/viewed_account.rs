//! The account that a page is about: the person's own, or a customer's that the operator manages.

use postroad_model::AccountId;

use crate::layout::Section;
use crate::problem::Problem;
use crate::visit::Visit;

/// Pages of an account that the operator manages: the end of the path, and the title.
const TABS: [(&str, &str); 5] = [
    ("", "Settings"),
    ("/domains", "Domains"),
    ("/people", "People"),
    ("/keys", "Keys"),
    ("/audit", "Audit log"),
];

pub(crate) struct ViewedAccount {
    pub(crate) id: AccountId,
    /// Beginning of the paths of the account's pages: `/account`, or `/operator/accounts/7`.
    pub(crate) base: String,
    pub(crate) section: Section,
    /// Name of the account, if it is a customer's.
    pub(crate) customer: Option<String>,
}

impl ViewedAccount {
    /// The person's own account. The menu marks `section` as the current page.
    pub(crate) fn own(visit: &Visit, section: Section) -> Self {
        Self { id: visit.person.user.account_id, base: "/account".to_owned(), section, customer: None }
    }

    /// A customer's account; for the operator alone.
    pub(crate) async fn of_customer(visit: &Visit, id: i64) -> Result<Self, Problem> {
        let account = visit.app().find_account_as(&visit.requester, AccountId(id)).await?;
        let base = format!("/operator/accounts/{id}");
        Ok(Self { id: account.id, base, section: Section::Operator, customer: Some(account.name) })
    }

    /// The customer's account that the path names, or the person's own if it names none.
    pub(crate) async fn in_path(visit: &Visit, id: Option<i64>, section: Section) -> Result<Self, Problem> {
        match id {
            Some(id) => Self::of_customer(visit, id).await,
            None => Ok(Self::own(visit, section)),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.customer.is_none()
    }

    /// Path and title of each page of the account.
    pub(crate) fn tabs(&self) -> Vec<(String, &'static str)> {
        TABS.map(|(end, title)| (format!("{}{end}", self.base), title)).into()
    }
}
