//! Invitations to an account, by mail and as a link.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountScope, EmailAddress, InvitationId, LimitedObject, UserRole};
use postroad_store::{AuditSubject, Invitation, InvitationFilter, NewInvitation, StoreError};

use super::visitor::Visitor;
use super::{NewSession, UserRefusal, parse_email, parse_person_name};
use crate::App;
use crate::access::{Actor, Operation};
use crate::accounts::{AccountRefusal, CallLimit, Created, CreationKey, ObjectKind, Requester, page};
use crate::secrets::{hash, new_key};
use crate::send::IdempotencyRequest;

/// An invitation can be accepted for this long.
const INVITATION_TIME: Duration = Duration::from_hours(7 * 24);
/// Number of times a refused call looks for an invitation that a concurrent call with the same idempotency key may be
/// creating.
const EARLIER_INVITATION_POLLS_MAX: usize = 10;
const EARLIER_INVITATION_POLL_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of people and open invitations of one account.
pub(super) const PEOPLE_MAX: usize = 1_000;

#[derive(Debug, Clone)]
pub struct InvitationRequest {
    /// Required with the operator's key.
    pub account: Option<AccountId>,
    pub email: String,
    pub role: UserRole,
    /// Only the operator can invite operators.
    pub operator: bool,
    /// Whether the link is mailed; else the operator passes the link on.
    pub mail: bool,
    pub idempotency_key: Option<CreationKey>,
}

/// A new invitation, as the answer to its creator shows it.
#[derive(Clone)]
pub struct CreatedInvitation {
    pub invitation: Invitation,
    /// The link, shown only to the operator and only once. Whoever opens the link chooses the invited person's
    /// password, and learns whether somebody has that address already.
    pub link: Option<String>,
    /// The limit that the mail counted against; `None` if nothing was counted.
    pub limit: Option<CallLimit>,
}

impl std::fmt::Debug for CreatedInvitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedInvitation").field("invitation", &self.invitation.id).finish_non_exhaustive()
    }
}

#[boxed_futures]
impl App {
    /// Invites a person. A second invitation of the same address replaces the first. The answer does not reveal whether
    /// another account has a person of that address.
    pub async fn invite_user(
        &self,
        by: &Requester,
        request: InvitationRequest,
    ) -> Result<Created<CreatedInvitation>, AccountRefusal> {
        let operation = Operation::UsersInvite;
        let account_id = self.permitted_account_id(by, operation, request.account).await?;
        // Count before looking up the idempotency key. If the count includes the invitation of a concurrent call with
        // the same key, the look-up finds that invitation, so this call is not refused for the maximum number of
        // people.
        let people = self.inner.store.count_objects(account_id, LimitedObject::Users).await?;
        if let Some(earlier) = self.find_earlier_invitation(account_id, &request).await? {
            return Ok(earlier);
        }
        let email = parse_email(&request.email)?;
        check_role(by, request.role, request.operator)?;
        self.check_open_invitation(by, account_id, email.as_str()).await?;
        let shows_link = by.actor.is_operator();
        if !request.mail && !shows_link {
            return Err(AccountRefusal::problem("mail", "should be true: only the operator passes links on"));
        }
        if people >= PEOPLE_MAX {
            return Err(AccountRefusal::problem("account", "has the maximum number of people"));
        }
        let limit = if request.mail && !by.actor.is_operator() {
            match self.count_invitation(account_id, email.as_str()).await {
                Ok(limit) => Some(limit),
                Err(refusal) => {
                    return self.wait_for_concurrent_invitation(account_id, &request).await?.ok_or(refusal);
                }
            }
        } else {
            None
        };
        let token = self.invitation_token(account_id, request.idempotency_key.as_ref());
        let new = NewInvitation {
            account_id,
            email: email.as_str().to_owned(),
            role: request.role,
            operator: request.operator,
            token_hash: hash(&token),
            expires_at: self.inner.clock.now().plus(INVITATION_TIME),
        };
        let subject = AuditSubject::NewInvitation(account_id, email.as_str().to_owned());
        let key = request.idempotency_key.as_ref().map(|key| (account_id, key));
        let store = self.audited_store_for_creation(by, operation, subject, key);
        let created = store.create_invitation(new).await;
        // A concurrent call with the same idempotency key may have created the invitation, and reached the ceiling with
        // it.
        if matches!(created, Err(StoreError::Conflict | StoreError::CeilingReached { .. }))
            && let Some(earlier) = self.find_earlier_invitation(account_id, &request).await?
        {
            return Ok(earlier);
        }
        let invitation = created.map_err(AccountRefusal::from_store_error_on(ObjectKind::User))?;
        let link = self.invitation_link(&token);
        if request.mail {
            self.mail_invitation(email, &invitation, &link, request.idempotency_key.as_ref()).await?;
        }
        let value = CreatedInvitation { invitation, link: shows_link.then_some(link), limit };
        Ok(Created { value, is_replay: false })
    }

    /// The invitation that an earlier call with the same idempotency key created. Mails its link if that call did not.
    async fn find_earlier_invitation(
        &self,
        account_id: AccountId,
        request: &InvitationRequest,
    ) -> Result<Option<Created<CreatedInvitation>>, AccountRefusal> {
        let key = request.idempotency_key.as_ref();
        let Some(id) = self.find_created_id(Some(account_id), key).await? else { return Ok(None) };
        let found = self.inner.store.find_invitation_of(account_id, InvitationId(id)).await?;
        let invitation = found.ok_or(AccountRefusal::NotFound(ObjectKind::Invitation))?;
        if request.mail {
            // The first call may have ended before its mail was stored.
            let token = self.invitation_token(account_id, key);
            if self.inner.store.find_invitation(hash(&token)).await?.is_some() {
                let link = self.invitation_link(&token);
                self.mail_invitation(parse_email(&invitation.email)?, &invitation, &link, key).await?;
            }
        }
        Ok(Some(Created {
            value: CreatedInvitation { invitation, link: None, limit: None },
            is_replay: true,
        }))
    }

    /// Waits for the invitation of a concurrent call with the same idempotency key, which may have used up the limit.
    async fn wait_for_concurrent_invitation(
        &self,
        account_id: AccountId,
        request: &InvitationRequest,
    ) -> Result<Option<Created<CreatedInvitation>>, AccountRefusal> {
        if request.idempotency_key.is_none() {
            return Ok(None);
        }
        for _ in 0..EARLIER_INVITATION_POLLS_MAX {
            if let Some(earlier) = self.find_earlier_invitation(account_id, request).await? {
                return Ok(Some(earlier));
            }
            tokio::time::sleep(EARLIER_INVITATION_POLL_PAUSE).await;
        }
        Ok(None)
    }

    /// Refuses if the address has an open invitation that `by` could not have created: `by` may not replace it.
    async fn check_open_invitation(
        &self,
        by: &Requester,
        account_id: AccountId,
        email: &str,
    ) -> Result<(), AccountRefusal> {
        let filter = InvitationFilter { email: Some(email.to_owned()), ..InvitationFilter::default() };
        let open_invitations = self.inner.store.list_invitations(account_id, filter, None, 1).await?;
        if open_invitations.iter().all(|invitation| could_have_invited(by, invitation)) {
            return Ok(());
        }
        Err(AccountRefusal::problem("email", "has an open invitation with more rights than the caller's"))
    }

    /// Token of an invitation. Calls with the same idempotency key get the same token, so that any of them can mail the
    /// link.
    fn invitation_token(&self, account_id: AccountId, key: Option<&CreationKey>) -> String {
        let Some(key) = key else { return new_key() };
        let input = [&account_id.0.to_be_bytes()[..], &key.fingerprint, key.key.as_bytes()].concat();
        self.inner.sealing_key.derive("invitation", &input)
    }

    /// Mails the link of an invitation. With an idempotency key, the mail is stored once, however many calls try.
    async fn mail_invitation(
        &self,
        email: EmailAddress,
        invitation: &Invitation,
        link: &str,
        key: Option<&CreationKey>,
    ) -> Result<(), AccountRefusal> {
        let text = format!(
            "You are invited to {} as {}.\n\nTo accept, open this link within a week and choose a password:\n\n{link}\n",
            invitation.account_name, invitation.role
        );
        let idempotency = key.map(|key| IdempotencyRequest {
            key: format!("invitation {}\n{}", invitation.account_id, key.key),
            fingerprint: key.fingerprint,
        });
        Ok(self.send_notice(email, "Invitation", &text, idempotency).await?)
    }

    /// Open invitations in the order they were made, and whether there are more.
    pub async fn list_invitations(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: InvitationFilter,
        after: Option<InvitationId>,
        limit: usize,
    ) -> Result<(Vec<Invitation>, bool), AccountRefusal> {
        let account_id = self.permitted_account_id(by, Operation::UsersInvitations, account).await?;
        let email = filter.email.as_deref().map(parse_email).transpose()?;
        let filter = InvitationFilter { email: email.map(|email| email.as_str().to_owned()), ..filter };
        Ok(page(self.inner.store.list_invitations(account_id, filter, after, limit + 1).await?, limit))
    }

    /// Revokes an invitation: its link stops working.
    pub async fn uninvite_user(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        id: InvitationId,
    ) -> Result<(), AccountRefusal> {
        let operation = Operation::UsersUninvite;
        let account_id = self.permitted_account_id(by, operation, account).await?;
        let found = self.inner.store.find_invitation_of(account_id, id).await?;
        let found = found.ok_or(AccountRefusal::NotFound(ObjectKind::Invitation))?;
        if !could_have_invited(by, &found) {
            return Err(AccountRefusal::problem("id", "is an invitation with more rights than the caller's"));
        }
        let store = self.audited_store(by, operation, AuditSubject::Invitation(id));
        store
            .remove_invitation(account_id, id)
            .await
            .map_err(AccountRefusal::from_store_error_on(ObjectKind::Invitation))
    }

    /// The invitation that belongs to a link, for the page that accepts it.
    pub async fn find_invitation(&self, token: &str) -> Result<Invitation, UserRefusal> {
        self.inner.store.find_invitation(hash(token)).await?.ok_or(UserRefusal::LinkInvalid)
    }

    /// Creates the invited person and signs them in.
    pub async fn accept_invitation(
        &self,
        token: &str,
        name: &str,
        password: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, UserRefusal> {
        let invitation = self.find_invitation(token).await?;
        let name = parse_person_name(name)?;
        let password_hash = self.hash_new_password(password, &invitation.email).await?;
        // The person has no id yet; the subject of the audit entry will have the id.
        let actor = Actor::User {
            id: postroad_model::UserId(0),
            account_id: invitation.account_id,
            role: invitation.role,
            operator: false,
        };
        let by = Requester { actor, address: Some(visitor.address) };
        let subject = AuditSubject::NewUser(invitation.email);
        let store = self.audited_store(&by, Operation::PersonAcceptInvitation, subject);
        let user = match store.accept_invitation(hash(token), name, password_hash).await {
            Err(StoreError::NotFound) => return Err(UserRefusal::LinkInvalid),
            Err(StoreError::Conflict) => return Err(UserRefusal::EmailTaken),
            created => created?,
        };
        self.begin_session(user, visitor).await
    }
}

/// Checks whether `by` can grant a role and operator rights. Nobody can grant more than they have: only owners and the
/// operator create owners, only the operator creates operators.
pub(super) fn check_role(by: &Requester, role: UserRole, operator: bool) -> Result<(), AccountRefusal> {
    if operator && !can_grant_operator(&by.actor) {
        return Err(AccountRefusal::problem("operator", "can be set only by the operator of the service"));
    }
    if highest_grantable_role(&by.actor).covers(role) {
        Ok(())
    } else {
        Err(AccountRefusal::problem("role", "should not be higher than the caller's"))
    }
}

/// Whether the actor can grant what an invitation grants.
fn could_have_invited(by: &Requester, invitation: &Invitation) -> bool {
    (!invitation.operator || can_grant_operator(&by.actor))
        && highest_grantable_role(&by.actor).covers(invitation.role)
}

/// The highest role that the actor can grant and revoke. Admins create account keys, so an account key ranks as an
/// admin. A key without all scopes ranks as a member.
pub(super) fn highest_grantable_role(actor: &Actor) -> UserRole {
    let is_full = |scopes: &[AccountScope]| scopes.contains(&AccountScope::Full);
    match actor {
        Actor::CommandLine => UserRole::Owner,
        Actor::OperatorKey { scopes, .. } if is_full(scopes) => UserRole::Owner,
        Actor::AccountKey { scopes, .. } if is_full(scopes) => UserRole::Admin,
        Actor::OperatorKey { .. } | Actor::AccountKey { .. } => UserRole::Member,
        Actor::User { role, .. } => *role,
        Actor::ServerKey { .. } => UserRole::ReadOnly,
    }
}

/// Whether the actor can grant and revoke operator rights.
pub(super) fn can_grant_operator(actor: &Actor) -> bool {
    actor.is_operator() && highest_grantable_role(actor) == UserRole::Owner
}
