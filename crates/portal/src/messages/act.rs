//! Retries, releases, cancels or erases one message.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::send::ScheduleRefusal;
use postroad_app::{ActionFailure, App, Caller, MessageAction};
use postroad_model::MessageId;
use postroad_store::ScheduleChange;

use crate::answer::Answer;
use crate::problem::{Problem, sentences};
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Action of a button: one of `app`'s, or cancelling a scheduled message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Message(MessageAction),
    CancelScheduled,
}

impl Act {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        Ok(match text {
            "retry" => Self::Message(MessageAction::Retry),
            "release" => Self::Message(MessageAction::Release),
            "cancel_hold" => Self::Message(MessageAction::CancelHold),
            "erase" => Self::Message(MessageAction::Erase),
            "cancel" => Self::CancelScheduled,
            _ => return Err(Problem::Invalid("Choose what to do.".to_owned())),
        })
    }

    fn operation(self) -> Operation {
        match self {
            Self::Message(MessageAction::Retry) => Operation::MessagesRetry,
            Self::Message(MessageAction::Release) => Operation::MessagesRelease,
            Self::Message(MessageAction::CancelHold) => Operation::MessagesCancelHold,
            Self::Message(MessageAction::Erase) => Operation::MessagesErase,
            Self::CancelScheduled => Operation::SendCancel,
        }
    }

    fn notice(self) -> &'static str {
        match self {
            Self::Message(MessageAction::Retry) => "retried",
            Self::Message(MessageAction::Release) => "released",
            Self::Message(MessageAction::CancelHold) | Self::CancelScheduled => "cancelled",
            Self::Message(MessageAction::Erase) => "erased",
        }
    }

    pub(super) async fn caller(self, visit: &Visit, server: i64) -> Result<Caller, Problem> {
        Ok(visit.caller(server, self.operation()).await?)
    }

    pub(super) async fn run(self, app: &App, caller: &Caller, id: MessageId) -> Result<(), Problem> {
        match self {
            Self::Message(action) => {
                app.change_message(caller, action, id).await.map_err(|failure| match failure {
                    ActionFailure::NotFound => Problem::NotFound,
                    ActionFailure::Store(error) => error.into(),
                    other => Problem::Invalid(format!("{other}.")),
                })
            }
            Self::CancelScheduled => {
                let changed = app.change_schedule(caller, id, ScheduleChange::Cancel).await;
                changed.map(drop).map_err(|refusal| match refusal {
                    ScheduleRefusal::NotFound => Problem::NotFound,
                    ScheduleRefusal::NotScheduled => {
                        Problem::Invalid("The message is not scheduled.".to_owned())
                    }
                    ScheduleRefusal::TooLate => {
                        Problem::Invalid("It is too late: the message is on its way.".to_owned())
                    }
                    ScheduleRefusal::Validation(problems) => Problem::Invalid(sentences(&problems)),
                    ScheduleRefusal::Store(error) => error.into(),
                })
            }
        }
    }
}

pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let act = Act::parse(form.fields.text("act"))?;
    let caller = act.caller(&form.visit, server).await?;
    act.run(form.visit.app(), &caller, MessageId(id)).await?;
    Ok(see_other(&format!("/servers/{server}/messages/{id}?done={}", act.notice())))
}
