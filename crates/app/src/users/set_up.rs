//! The first person of an installation, created with a set-up link; in `postroad dev`, a link that signs in.

use std::net::IpAddr;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, UserRole};
use postroad_store::{AuditSubject, FirstUser, NewUser, StoreError, UserTokenKind};

use super::visitor::Visitor;
use super::{NewSession, UserRefusal, parse_email, parse_person_name};
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};
use crate::secrets::{hash, new_key};
use crate::{App, names};

/// A set-up link works for this long; every start of an installation without people creates a new link.
const SET_UP_LINK_TIME: Duration = Duration::from_hours(24);
/// A sign-in link of `postroad dev` works for this long.
const DEV_LINK_TIME: Duration = Duration::from_hours(30 * 24);

#[boxed_futures]
impl App {
    /// A link to create the first person; `None` if there are people.
    pub async fn set_up_url(&self) -> Result<Option<String>, UserRefusal> {
        if self.inner.store.has_users().await? {
            return Ok(None);
        }
        let token = new_key();
        self.store_token(UserTokenKind::SetUp, None, &token, SET_UP_LINK_TIME).await?;
        Ok(Some(self.set_up_link(&token)))
    }

    /// Refuses a set-up link that no longer works.
    pub async fn check_set_up_link(&self, token: &str) -> Result<(), UserRefusal> {
        let found = self.inner.store.find_user_token(UserTokenKind::SetUp, hash(token)).await?;
        if found.is_some() { Ok(()) } else { Err(UserRefusal::LinkInvalid) }
    }

    /// Creates the first person and signs in. The person becomes the operator, and an owner of the account
    /// `account_name`; the account is created if there is none of that name.
    pub async fn set_up(
        &self,
        token: &str,
        account_name: &str,
        email: &str,
        password: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, UserRefusal> {
        self.check_set_up_link(token).await?;
        if let Some(problem) = names::find_account_problem(account_name) {
            return Err(AccountRefusal::problem("account", problem).into());
        }
        let email = parse_email(email)?;
        let password_hash = self.hash_new_password(password, email.as_str()).await?;
        let subject = AuditSubject::NewUser(email.as_str().to_owned());
        let by = Requester { address: Some(visitor.address), ..Requester::command_line() };
        let first = FirstUser {
            account_name: account_name.trim().to_owned(),
            email: email.as_str().to_owned(),
            name: String::new(),
            password_hash,
        };
        let store = self.audited_store(&by, Operation::UsersCreate, subject);
        let user = match store.create_first_user(hash(token), first).await {
            Err(StoreError::NotFound) => return Err(UserRefusal::LinkInvalid),
            created => created?,
        };
        self.begin_session(user, visitor).await
    }

    /// A link that signs in to the account of `postroad dev`. Creates the person with this address if there is none
    /// yet. If `replaces_earlier_links` is set, earlier links stop working.
    pub(crate) async fn dev_sign_in_url(
        &self,
        account_id: AccountId,
        email: &str,
        replaces_earlier_links: bool,
    ) -> Result<String, UserRefusal> {
        let store = &self.inner.store;
        let email = parse_email(email)?.as_str().to_owned();
        let user = if let Some(user) = store.find_user_by_email(email.clone()).await? {
            user
        } else {
            let new = NewUser {
                account_id,
                email: email.clone(),
                name: parse_person_name("dev")?,
                role: UserRole::Owner,
                operator: true,
                password_hash: None,
            };
            match store.create_user(new).await {
                // Another process on the same database created the person first.
                Err(StoreError::Conflict) => {
                    store.find_user_by_email(email).await?.ok_or(StoreError::NotFound)?
                }
                created => created?,
            }
        };
        if replaces_earlier_links {
            store.remove_user_tokens(UserTokenKind::SignIn, user.id).await?;
        }
        let token = new_key();
        self.store_token(UserTokenKind::SignIn, Some(&user), &token, DEV_LINK_TIME).await?;
        self.inner.dev.set_sign_in_token(&token);
        Ok(self.sign_in_link(&token))
    }

    /// Whether this is `postroad dev`, which prints a link that signs in.
    pub fn is_dev(&self) -> bool {
        self.inner.dev.sign_in_token().is_some()
    }

    /// Whether somebody at this address may sign in as the person of `postroad dev` without the link: on this machine
    /// only, where everybody can read the inbox anyway.
    pub fn admits_developer(&self, address: IpAddr) -> bool {
        self.is_dev() && address.to_canonical().is_loopback()
    }

    /// Signs in as the person of `postroad dev`. The caller checks that the request comes from a page of this service.
    pub async fn sign_in_as_developer(&self, visitor: &Visitor) -> Result<NewSession, UserRefusal> {
        match self.inner.dev.sign_in_token() {
            Some(token) if self.admits_developer(visitor.address) => {
                self.sign_in_by_link(token, visitor).await
            }
            _ => Err(UserRefusal::LinkInvalid),
        }
    }
}
