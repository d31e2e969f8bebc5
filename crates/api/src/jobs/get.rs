//! jobs/get: the progress of a job.

use crate::documented::ToSchema;
use postroad_openapi_macros::request_fields;
use postroad_store::{JobProblem, MessageJob};
use serde::Serialize;

use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json::{self, Json};

/// Id of the job.
#[request_fields]
#[schema(example = json!({"id": 5_123_456_789_012_345_i64}))]
pub(crate) struct JobIn {
    /// `job_id` of the call that started it.
    id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobOut {
    id: i64,
    /// `retry`, `release`, `cancel_hold`, `cancel_scheduled` or `erase`
    #[schema(example = "release")]
    kind: &'static str,
    /// `running`, `done` or `failed`
    #[schema(example = "running")]
    state: &'static str,
    /// Messages examined so far.
    done: u64,
    /// Messages that matched when the job was started.
    total: u64,
    /// Messages that could not be changed.
    failed: u64,
    /// Errors of messages that failed, or that the job tries again; up to 100.
    errors: Vec<JobErrorOut>,
    /// For a finished erasure: data that the database still keeps.
    note: Option<&'static str>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobErrorOut {
    /// Id of the message; 0 if the error is not about a message.
    id: i64,
    #[schema(example = "RecipientSuppressed")]
    code: String,
    message: String,
}

/// Get a job
///
/// Jobs are kept for 30 days after their end.
#[crate::documented::path(
    post,
    path = "/api/v1/jobs/get",
    tag = "jobs",
    operation_id = "getJob",
    request_body = JobIn,
    responses((status = 200, body = crate::documented::Answer<JobOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<JobOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let job = call.app.find_job(call.caller.server_id, id).await?;
    let found = job.map(|job| job_out(&call, job)).ok_or_else(|| Reason::JobNotFound.into());
    Success::with_warnings(found, warnings)
}

/// Parses the request; `JobIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<i64, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = match fields.take("id", findings) {
        Some(Json::Number(number)) if !number.is_float() => number.as_i64().unwrap_or(0),
        Some(Json::Number(_)) => {
            findings.wrong_type("/id", "Integer", "Float");
            0
        }
        Some(other) => {
            findings.wrong_type("/id", "Integer", other.type_name());
            0
        }
        None => {
            findings.missing("id");
            0
        }
    };
    fields.finish(findings);
    Ok(id)
}

fn job_out(call: &Call, job: MessageJob) -> JobOut {
    let note = call.app.note_on_job(&job);
    let error = |JobProblem { id, code, message, .. }| JobErrorOut { id, code, message };
    JobOut {
        id: job.id,
        kind: job.kind.as_str(),
        state: job.state.as_str(),
        done: job.done,
        total: job.total,
        failed: job.failed,
        errors: job.problems.into_iter().map(error).collect(),
        note,
        created_at: job.created_at.to_rfc3339(),
        updated_at: job.updated_at.to_rfc3339(),
    }
}
