//! Asks the DNS all the questions that a verdict needs, within limits.

use std::time::Duration;

use futures_util::future::join_all;
use postroad_net::dns::{Dns, LookupFailure, RecordType as WireType};
use tokio::time::{Instant, timeout_at};

use super::answers::{Answer, AnswersView, DnsAnswers, Question, TOO_MANY_QUESTIONS};
use super::expected::ExpectedRecords;
use super::judge::judge_all;
use super::record::{RecordCheck, RecordType};

/// Maximum number of questions of one check; further questions count as failed.
const QUESTIONS_MAX: usize = 240;
/// Time limit for all questions of one check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(30);

/// Looks up the expected records and judges them.
pub async fn check(dns: &Dns, expected: &ExpectedRecords) -> Vec<RecordCheck> {
    super::judge(expected, &look_up(dns, expected).await)
}

/// Asks the questions that [`judge`](super::judge) needs for `expected`: at most 240 in 30 seconds. Further
/// questions, and questions without an answer by then, count as failed.
pub async fn look_up(dns: &Dns, expected: &ExpectedRecords) -> DnsAnswers {
    look_up_for(dns, |view| {
        judge_all(expected, view);
    })
    .await
}

/// Asks the questions that `reader` finds unanswered, and calls `reader` again, until every question has an answer.
pub(super) async fn look_up_for(dns: &Dns, reader: impl Fn(&AnswersView<'_>)) -> DnsAnswers {
    let deadline = Instant::now() + CHECK_TIME_MAX;
    let mut answers = DnsAnswers::default();
    // Every round answers the questions that the previous round left open; beyond the limits they count as failed.
    loop {
        let unanswered = {
            let view = AnswersView::new(&answers);
            reader(&view);
            view.into_unanswered()
        };
        if unanswered.is_empty() {
            return answers;
        }
        let budget = QUESTIONS_MAX.saturating_sub(answers.len());
        let look_ups = unanswered.into_iter().enumerate().map(|(number, question)| async move {
            let answer = if number < budget {
                ask(dns, &question, deadline).await
            } else {
                Answer::Failed(TOO_MANY_QUESTIONS.to_owned())
            };
            (question, answer)
        });
        for ((name, record_type), answer) in join_all(look_ups).await {
            answers.insert(&name, record_type, answer);
        }
    }
}

async fn ask(dns: &Dns, (name, record_type): &Question, deadline: Instant) -> Answer {
    let late = || Answer::Failed(format!("the check took longer than {} s", CHECK_TIME_MAX.as_secs()));
    match timeout_at(deadline, dns.records(name, wire_type(*record_type))).await {
        Err(_) => late(),
        // `dns` leaves out records that it cannot parse: here it could parse none.
        Ok(Ok(records)) if records.is_empty() => Answer::Failed("malformed answer".to_owned()),
        Ok(Ok(records)) => Answer::Records(records),
        Ok(Err(LookupFailure::NoSuchName)) => Answer::NoSuchName,
        Ok(Err(LookupFailure::NoData)) => Answer::NoData,
        Ok(Err(trouble @ (LookupFailure::Temporary(_) | LookupFailure::Busy))) => {
            Answer::Failed(trouble.to_string())
        }
    }
}

fn wire_type(record_type: RecordType) -> WireType {
    match record_type {
        RecordType::A => WireType::A,
        RecordType::Aaaa => WireType::AAAA,
        RecordType::Cname => WireType::CNAME,
        RecordType::Mx => WireType::MX,
        RecordType::Ns => WireType::NS,
        RecordType::Ptr => WireType::PTR,
        RecordType::Txt => WireType::TXT,
    }
}
