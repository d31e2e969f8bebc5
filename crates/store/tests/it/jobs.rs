//! Jobs: their list, and the maximum number of running ones.

use std::time::Duration;

use postroad_model::{MessageId, ServerId};
use postroad_store::{JobKind, JobProblem, JobState, JobStep, MessageJob, NewJob};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    jobs_of_a_server_are_listed_newest_first_without_their_problems,
    jobs_created_at_the_same_moment_stay_within_the_maximum,
);

async fn create(fixture: &Fixture, server_id: ServerId, request: &str) -> i64 {
    let new = NewJob { server_id, kind: JobKind::Erase, request: request.into(), total: 7 };
    let created = fixture.store.create_job(new, 10).await.expect("the store works");
    fixture.clock.advance(Duration::from_secs(1));
    created.expect("there is room").id
}

async fn list(fixture: &Fixture, before: Option<i64>, limit: usize) -> Vec<MessageJob> {
    fixture.store.list_jobs(fixture.server, before, limit).await.expect("the store works")
}

async fn jobs_of_a_server_are_listed_newest_first_without_their_problems(fixture: Fixture) {
    let store = &fixture.store;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(create(&fixture, fixture.server, &format!("tag:{number}")).await);
        create(&fixture, fixture.other_server, "tag:other").await;
    }
    let problem = JobProblem {
        id: 5,
        code: "MessageInDelivery".into(),
        message: "It is being sent".into(),
        is_tried_again: false,
    };
    let claimed = store.claim_job(fixture.server, ids[1]).await.expect("it works").expect("nobody has it");
    let step = JobStep {
        done: 3,
        problems: vec![problem.clone()],
        is_repetition: false,
        position: MessageId(0),
        state: JobState::Failed,
        pause: Duration::ZERO,
        forgets_request: true,
    };
    assert!(store.advance_job(claimed, step).await.expect("the store works"));

    let listed = list(&fixture, None, 10).await;
    let newest_first: Vec<i64> = ids.iter().rev().copied().collect();
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), newest_first);
    assert!(listed.iter().all(|job| job.server_id == fixture.server && job.problems.is_empty()));
    let failed = &listed[2];
    assert_eq!((failed.state, failed.done, failed.failed, failed.total), (JobState::Failed, 3, 1, 7));
    assert_eq!((failed.request.as_str(), listed[0].request.as_str()), ("", "tag:3"));
    let found = store.find_job(fixture.server, ids[1]).await.expect("it works").expect("it is there");
    assert_eq!(found.problems, [problem], "the job itself has them");

    let page = list(&fixture, None, 3).await;
    assert_eq!(page.iter().map(|job| job.id).collect::<Vec<_>>(), newest_first[..3]);
    let next = list(&fixture, Some(page[2].id), 3).await;
    assert_eq!(next.iter().map(|job| job.id).collect::<Vec<_>>(), newest_first[3..]);
}

async fn jobs_created_at_the_same_moment_stay_within_the_maximum(fixture: Fixture) {
    let create = || {
        let new =
            NewJob { server_id: fixture.server, kind: JobKind::Erase, request: "tag:old".into(), total: 1 };
        fixture.store.create_job(new, 2)
    };
    let created = tokio::join!(create(), create(), create(), create(), create(), create());
    let created = [created.0, created.1, created.2, created.3, created.4, created.5];
    let begun = created.iter().filter(|job| job.as_ref().expect("the store works").is_some()).count();
    assert_eq!(begun, 2);
}
