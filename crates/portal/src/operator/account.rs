//! One account for the operator: its usage, servers, name and ceilings; suspension, deletion and restoration.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::accounts::{AccountCeilingsRequest, AccountUpdateRequest, NewServerRequest};
use postroad_model::{AccountId, Change, PoolId, ServerId, ServerMode};
use postroad_store::{AccountCeilings, ServerFilter};

use crate::account::{UsageRow, usage_rows};
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::fields::Fields;
use crate::layout::{Layout, Section, ServerLink};
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::query::page_after;
use crate::redirect::see_other;
use crate::refill::refill_answer;
use crate::servers::{PoolChoice, list_pool_choices};
use crate::viewed_account::ViewedAccount;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;

struct DeletedServer {
    id: i64,
    name: String,
    /// When the server's data is removed.
    until: Option<When>,
}

/// A ceiling in the form; empty for none.
struct Ceiling {
    name: &'static str,
    label: &'static str,
    value: String,
}

#[derive(Template)]
#[template(path = "operator/account.html")]
struct AccountPage {
    layout: Layout,
    account: ViewedAccount,
    id: i64,
    usage: Vec<UsageRow>,
    pools: Vec<PoolChoice>,
    /// Idempotency key of the form for a server: submitting it twice creates one.
    once: String,
    name: String,
    version: i64,
    suspended: Option<String>,
    created_at: When,
    ceilings: Vec<Ceiling>,
    send_rate: String,
    servers: Vec<ServerLink>,
    /// Query of the page with more servers.
    next: Option<String>,
    deleted: Vec<DeletedServer>,
    problem: Option<String>,
}

pub(super) async fn show(Path(account): Path<i64>, visit: Visit) -> Answer {
    page_of(&visit, account, StatusCode::OK, None).await
}

async fn page_of(visit: &Visit, id: i64, status: StatusCode, problem: Option<String>) -> Answer {
    let viewed = ViewedAccount::of_customer(visit, id).await?;
    let account = visit.app().find_account_as(&visit.requester, AccountId(id)).await?;
    let found = visit.app().account_usage(&visit.requester, Some(account.id)).await?;
    let pools = list_pool_choices(visit, account.id, None).await?;
    let filter = ServerFilter { account_id: Some(account.id), ..ServerFilter::default() };
    let after = visit.query.number("after").map(ServerId);
    let (servers, has_more) =
        visit.app().list_servers_as(&visit.requester, filter.clone(), after, PAGE_ROWS).await?;
    let next = page_after("", servers.last().map(|last| last.id), has_more);
    let deleted = ServerFilter { deleted: true, ..filter };
    let (deleted, _) = visit.app().list_servers_as(&visit.requester, deleted, None, PAGE_ROWS).await?;
    let deleted = deleted.into_iter().map(|server| DeletedServer {
        id: server.id.0,
        name: server.name,
        until: server.delete_at.map(When),
    });
    let layout = visit.layout("Settings", Section::Operator).await?;
    page_with_status(
        status,
        &AccountPage {
            layout,
            account: viewed,
            id,
            usage: usage_rows(&found),
            pools,
            once: once::new_once(),
            version: account.version,
            suspended: account.suspended_reason,
            created_at: When(account.created_at),
            ceilings: ceilings(&account.ceilings),
            send_rate: account.ceilings.send_rate.map(|rate| rate.to_string()).unwrap_or_default(),
            servers: servers.iter().map(ServerLink::of).collect(),
            next,
            deleted: deleted.collect(),
            name: account.name,
            problem,
        },
    )
}

fn ceilings(ceilings: &AccountCeilings) -> Vec<Ceiling> {
    let ceiling = |name, label, value: Option<u32>| Ceiling {
        name,
        label,
        value: value.map(|value| value.to_string()).unwrap_or_default(),
    };
    vec![
        ceiling("hourly_limit", "Messages an hour", ceilings.hourly_limit),
        ceiling("daily_limit", "Messages a day", ceilings.daily_limit),
        ceiling("monthly_limit", "Messages a month", ceilings.monthly_limit),
        ceiling("servers", "Servers", ceilings.servers),
        ceiling("domains", "Domains", ceilings.domains),
        ceiling("webhooks", "Webhooks", ceilings.webhooks),
        ceiling("users", "People", ceilings.users),
        ceiling("bodies_days", "Days that content is kept", ceilings.bodies_days),
        ceiling("messages_days", "Days that messages are kept", ceilings.messages_days),
    ]
}

pub(super) async fn update(Path(account): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let changed = match read(&fields) {
        Ok(request) => {
            let changed = visit.app().update_account_as(&visit.requester, AccountId(account), request).await;
            changed.map_err(Problem::from)
        }
        Err(text) => Err(Problem::Invalid(text)),
    };
    match changed {
        Ok(_) => Ok(see_other(&format!("/operator/accounts/{account}?done=saved"))),
        Err(problem) => show_refused(&visit, account, "", &fields, problem).await,
    }
}

/// The page with the refused form as it was sent. The form's action is the path of the page followed by `path`.
async fn show_refused(visit: &Visit, account: i64, path: &str, fields: &Fields, problem: Problem) -> Answer {
    let text = problem.into_form_text()?;
    let page = page_of(visit, account, StatusCode::UNPROCESSABLE_ENTITY, Some(text.clone())).await;
    refill_answer(page, &format!("/operator/accounts/{account}{path}"), fields, &text).await
}

fn read(fields: &Fields) -> Result<AccountUpdateRequest, String> {
    let number = |name: &str| match fields.filled(name) {
        None => Ok(Change::Clear),
        Some(text) => {
            text.parse().map(Change::Set).map_err(|_| format!("“{text}” should be a number, or empty."))
        }
    };
    let send_rate = fields.filled("send_rate").map_or(Change::Clear, |rate| Change::Set(rate.to_owned()));
    Ok(AccountUpdateRequest {
        if_version: fields.number("version"),
        name: Some(fields.text("name").to_owned()),
        ceilings: AccountCeilingsRequest {
            hourly_limit: number("hourly_limit")?,
            daily_limit: number("daily_limit")?,
            monthly_limit: number("monthly_limit")?,
            send_rate,
            servers: number("servers")?,
            domains: number("domains")?,
            webhooks: number("webhooks")?,
            users: number("users")?,
            bodies_days: number("bodies_days")?,
            messages_days: number("messages_days")?,
        },
    })
}

/// Creates a server of the account.
pub(super) async fn create_server(Path(account): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let request = NewServerRequest {
        account: Some(ViewedAccount::of_customer(&visit, account).await?.id),
        name: fields.text("name").to_owned(),
        mode: ServerMode::parse(fields.text("mode")).unwrap_or(ServerMode::Live),
        pool: fields.number("pool").map(PoolId),
        idempotency_key: once::creation_key(&fields),
    };
    match visit.app().create_server_as(&visit.requester, request).await {
        Ok(_) => Ok(see_other(&format!(
            "/operator/accounts/{account}?done=created&ceiling=servers&account={account}"
        ))),
        Err(refusal) => show_refused(&visit, account, "/servers", &fields, refusal.into()).await,
    }
}

pub(super) async fn delete(Path(account): Path<i64>, form: Form) -> Answer {
    let found = form.visit.app().find_account_as(&form.visit.requester, AccountId(account)).await?;
    if form.fields.text("name") != found.name {
        let text = "Type the name of the account to delete it. Nothing was changed.";
        return Err(Problem::Invalid(text.to_owned()));
    }
    form.visit.app().delete_account_as(&form.visit.requester, found.id).await?;
    Ok(see_other("/operator/accounts?done=removed"))
}

pub(super) async fn restore(Path(account): Path<i64>, form: Form) -> Answer {
    form.visit.app().restore_account_as(&form.visit.requester, AccountId(account)).await?;
    Ok(see_other(&format!("/operator/accounts/{account}?done=restored")))
}
