//! The account: its name, its usage and its limits.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use postroad_app::accounts::AccountUsage;

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::count;
use crate::state::PortalState;
use crate::visit::{Form, Visit};

struct UsageRow {
    what: &'static str,
    used: u64,
    /// `None` without a ceiling.
    most: Option<u64>,
}

impl UsageRow {
    fn of(what: &'static str, used: usize, most: Option<u32>) -> Self {
        Self { what, used: used as u64, most: most.map(u64::from) }
    }

    fn used(&self) -> String {
        count(self.used)
    }

    fn ceiling(&self) -> String {
        self.most.map_or_else(|| "no limit".to_owned(), count)
    }

    fn is_reached(&self) -> bool {
        self.most.is_some_and(|most| self.used >= most)
    }

    /// Share from which the bar is shown as high.
    fn high(&self) -> u64 {
        self.most.unwrap_or(0) / 5 * 4
    }
}

#[derive(Template)]
#[template(path = "account/show.html")]
struct AccountPage {
    layout: Layout,
    name: String,
    usage: Vec<UsageRow>,
    /// Other limits: name and value.
    limits: Vec<(&'static str, String)>,
    problem: Option<String>,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new().route("/account", get(show).post(rename))
}

async fn show(visit: Visit) -> Answer {
    page_of(&visit, StatusCode::OK, None).await
}

async fn page_of(visit: &Visit, status: StatusCode, problem: Option<String>) -> Answer {
    let account = Some(visit.person.user.account_id);
    let found = visit.app().account_usage(&visit.by, account).await?;
    let name = visit.app().find_own_account(&visit.by, account).await?.name;
    let layout = visit.layout("Account", Section::Account).await?;
    let (usage, limits) = (usage(&found), limits(&found));
    page_with(status, &AccountPage { layout, name, usage, limits, problem })
}

fn usage(found: &AccountUsage) -> Vec<UsageRow> {
    let most = &found.ceilings;
    let mut rows = vec![
        UsageRow::of("Servers", found.servers, most.servers),
        UsageRow::of("Domains", found.domains, most.domains),
        UsageRow::of("Webhooks", found.webhooks, most.webhooks),
        UsageRow::of("People and invitations", found.users, most.users),
    ];
    let periods = [
        ("Messages this hour", most.hourly_limit),
        ("Messages today", most.daily_limit),
        ("Messages this month", most.monthly_limit),
    ];
    for ((what, most), used) in periods.into_iter().zip(found.messages) {
        // Messages are counted only where a limit is set.
        let used = used.and_then(|used| u64::try_from(used).ok());
        rows.extend(used.map(|used| UsageRow { what, used, most: most.map(u64::from) }));
    }
    rows
}

fn limits(found: &AccountUsage) -> Vec<(&'static str, String)> {
    let most = &found.ceilings;
    let days = |days: u32| if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
    let mut limits = Vec::new();
    limits.extend(most.send_rate.map(|rate| ("Send rate of all servers together", rate.to_string())));
    limits.extend(most.bodies_days.map(|number| ("Content is kept at most", days(number))));
    limits.extend(most.messages_days.map(|number| ("Messages are kept at most", days(number))));
    limits
}

async fn rename(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let account = Some(visit.person.user.account_id);
    match visit.app().rename_own_account(&visit.by, account, None, fields.text("name")).await {
        Ok(_) => Ok(see_other("/account?done=saved")),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            page_of(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text)).await
        }
    }
}
