//! Refusals of `app` as failures of a call.

use postroad_app::accounts::AccountRefusal;
use postroad_app::domains::DomainRefusal;
use postroad_app::templates::TemplateRefusal;
use postroad_app::{FieldProblem, Refusal, WebhookRefusal};
use postroad_store::StoreError;

use super::{Failure, Reason};

impl From<FieldProblem> for Failure {
    fn from(problem: FieldProblem) -> Self {
        Self::validation(vec![problem])
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::from(match refusal {
            Refusal::Unavailable(cause) => Reason::Unavailable(cause),
            Refusal::Internal(cause) => Reason::Internal(cause),
            refusal => Reason::Refused(refusal),
        })
    }
}

impl From<WebhookRefusal> for Failure {
    fn from(refusal: WebhookRefusal) -> Self {
        match refusal {
            WebhookRefusal::Validation(problems) => Self::validation(problems),
            WebhookRefusal::NotFound => Reason::WebhookNotFound.into(),
            WebhookRefusal::EventNotFound => Reason::EventNotFound.into(),
            WebhookRefusal::OtherVersion(version) => AccountRefusal::OtherVersion(version).into(),
            WebhookRefusal::TooMany => Reason::TooManyWebhooks.into(),
            WebhookRefusal::Refused(refusal) => refusal.into(),
            WebhookRefusal::Store(error) => error.into(),
        }
    }
}

impl From<AccountRefusal> for Failure {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::Refused(refusal) => refusal.into(),
            AccountRefusal::Denied(denial) => Reason::Denied(denial).into(),
            AccountRefusal::Store(error) => error.into(),
            AccountRefusal::TooManyCalls { problem, limit } => {
                Self { rate_limit: Some(Box::new(limit.into())), ..(*problem).into() }
            }
            refusal => Reason::Account(refusal).into(),
        }
    }
}

impl From<DomainRefusal> for Failure {
    fn from(refusal: DomainRefusal) -> Self {
        match refusal {
            DomainRefusal::Validation(problems) => Self::validation(problems),
            DomainRefusal::NotFound => Reason::DomainNotFound.into(),
            DomainRefusal::Exists => Reason::DomainExists.into(),
            DomainRefusal::TooMany { domains_max } => Reason::TooManyDomains { domains_max }.into(),
            DomainRefusal::Busy => Reason::DomainsBusy.into(),
            DomainRefusal::NotVerified => Reason::DomainNotVerified.into(),
            DomainRefusal::OfAccount => Reason::DomainOfAccount.into(),
            DomainRefusal::Account(refusal) => refusal.into(),
            DomainRefusal::Store(error) => error.into(),
        }
    }
}

impl From<TemplateRefusal> for Failure {
    fn from(refusal: TemplateRefusal) -> Self {
        match refusal {
            TemplateRefusal::Validation(problems) => Self::validation(problems),
            TemplateRefusal::Invalid(problems) => Reason::TemplateInvalid(problems).into(),
            TemplateRefusal::NotFound => Reason::TemplateNotFound.into(),
            TemplateRefusal::VersionNotFound => Reason::TemplateVersionNotFound.into(),
            TemplateRefusal::NotPublished => Refusal::TemplateNotPublished.into(),
            TemplateRefusal::NothingToRollBackTo => Reason::NothingToRollBackTo.into(),
            TemplateRefusal::AliasTaken => Reason::TemplateAliasTaken.into(),
            TemplateRefusal::OtherVersion(version) => AccountRefusal::OtherVersion(version).into(),
            TemplateRefusal::InUse => Reason::TemplateInUse.into(),
            TemplateRefusal::TooMany => Reason::TooManyTemplates.into(),
            TemplateRefusal::Render(failure) => Refusal::TemplateRendering(Box::new(failure)).into(),
            TemplateRefusal::Store(refusal) => refusal.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Refusal::from(error).into()
    }
}
