//! Retries, releases, cancels, sends at once or erases one message.

use postroad_app::access::Operation;
use postroad_app::{ActionFailure, App, Caller, MessageAction};
use postroad_model::MessageId;
use postroad_store::ScheduleChange;

use crate::answer::Answer;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Action of a button, on one message or the ticked ones: a `MessageAction`, which a job can also apply to all results
/// of a search, or an action that no job applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Message(MessageAction),
    /// Send a scheduled message now.
    SendNow,
    /// Cancel a message that is queued or delayed.
    CancelQueued,
}

impl Act {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        Ok(match text {
            "retry" => Self::Message(MessageAction::Retry),
            "release" => Self::Message(MessageAction::Release),
            "cancel_hold" => Self::Message(MessageAction::CancelHold),
            "cancel" => Self::Message(MessageAction::CancelScheduled),
            "erase" => Self::Message(MessageAction::Erase),
            "send_now" => Self::SendNow,
            "cancel_queued" => Self::CancelQueued,
            _ => return Err(Problem::Invalid("Choose what to do.".to_owned())),
        })
    }

    fn operation(self) -> Operation {
        match self {
            Self::Message(MessageAction::Retry) => Operation::MessagesRetry,
            Self::Message(MessageAction::Release) => Operation::MessagesRelease,
            Self::Message(MessageAction::CancelHold) => Operation::MessagesCancelHold,
            Self::Message(MessageAction::CancelScheduled) => Operation::SendCancel,
            Self::Message(MessageAction::Erase) => Operation::MessagesErase,
            Self::SendNow => Operation::SendReschedule,
            Self::CancelQueued => Operation::MessagesCancel,
        }
    }

    /// Code of the notice after this action on ticked messages. `is_partial`: some of them did not change.
    pub(crate) fn bulk_notice(self, is_partial: bool) -> &'static str {
        match (is_partial, self) {
            (false, _) => "changed",
            (true, Self::CancelQueued) => "partly-cancelled",
            (true, _) => "partly",
        }
    }

    fn notice(self) -> &'static str {
        match self {
            Self::Message(MessageAction::Retry) => "retried",
            Self::SendNow => "sent-now",
            Self::Message(MessageAction::Release) => "released",
            Self::Message(MessageAction::CancelHold | MessageAction::CancelScheduled)
            | Self::CancelQueued => "cancelled",
            Self::Message(MessageAction::Erase) => "erased",
        }
    }

    pub(crate) async fn caller(self, visit: &Visit, server: i64) -> Result<Caller, Problem> {
        Ok(visit.caller(server, self.operation()).await?)
    }

    pub(crate) async fn run(self, app: &App, caller: &Caller, id: MessageId) -> Result<(), Problem> {
        match self {
            // Like `send/cancel`, this also cancels a message that is due but not being sent yet.
            Self::Message(MessageAction::CancelScheduled) => {
                let changed = app.change_schedule(caller, id, ScheduleChange::Cancel).await;
                changed.map(drop).map_err(Problem::from)
            }
            Self::SendNow => app.send_now(caller, id).await.map(drop).map_err(Problem::from),
            Self::CancelQueued => app.cancel_queued(caller, id).await.map_err(|failure| match failure {
                ActionFailure::InDelivery => Problem::Invalid(
                    "The message is being sent at this moment: it was not cancelled. If the attempt fails, you can \
                     cancel it then."
                        .to_owned(),
                ),
                other => problem_of(other),
            }),
            Self::Message(action) => app.change_message(caller, action, id).await.map_err(problem_of),
        }
    }
}

fn problem_of(failure: ActionFailure) -> Problem {
    match failure {
        ActionFailure::NotFound => Problem::NotFound,
        ActionFailure::Store(error) => error.into(),
        ActionFailure::NotQueued => Problem::Invalid("The message is not waiting for an attempt.".to_owned()),
        other => Problem::Invalid(format!("{other}.")),
    }
}

pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let act = Act::parse(form.fields.text("act"))?;
    let caller = act.caller(&form.visit, server).await?;
    act.run(form.visit.app(), &caller, MessageId(id)).await?;
    Ok(see_other(&format!("/servers/{server}/messages/{id}?done={}", act.notice())))
}
