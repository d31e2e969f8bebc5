//! The chain of the audit log: a removed or changed entry is noticed.

use postroad_store::{Audit, AuditSubject, AuditVerdict};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(a_changed_or_removed_entry_is_noticed,);

async fn suspend(fixture: &Fixture, reason: Option<&str>) {
    let audit = Audit {
        actor: ("command_line", None),
        address: None,
        operation: "servers/suspend",
        subject: AuditSubject::Server(fixture.server),
        creation: None,
    };
    let store = fixture.store.audited(audit);
    store.set_server_suspended(fixture.server, reason.map(ToOwned::to_owned)).await.expect("the store works");
}

async fn verdict(fixture: &Fixture) -> AuditVerdict {
    fixture.store.verify_audit(fixture.account).await.expect("the store works")
}

async fn a_changed_or_removed_entry_is_noticed(fixture: Fixture) {
    for reason in [Some("one"), Some("two"), None, Some("four"), Some("four")] {
        suspend(&fixture, reason).await;
    }
    // The fifth changed nothing.
    let whole = verdict(&fixture).await;
    assert_eq!((whole.account_id, whole.good, whole.broken_at), (fixture.account, 4, None));
    let last = fixture.store.find_audit_hash(fixture.account, 4).await.expect("the store works");
    assert_eq!(last, Some(whole.hash.clone()));
    let account = fixture.account.0;
    let change = |operation: &str| {
        format!("UPDATE audit SET operation = '{operation}' WHERE account_id = {account} AND seq = 2")
    };
    fixture.execute(&change("servers/resume")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(2));
    fixture.execute(&change("servers/suspend")).await;
    assert_eq!(verdict(&fixture).await, whole);
    fixture.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq = 4")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(4), "the head knows the last one");
    // Also while a later one is written behind the head that is checked.
    fixture.execute(&format!("UPDATE audit SET seq = 9 WHERE account_id = {account} AND seq = 3")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(3));
    fixture.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq = 1")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(1));
    fixture.execute(&format!("DELETE FROM audit_heads WHERE account_id = {account}")).await;
    assert_eq!(verdict(&fixture).await.broken_at, Some(1), "entries without a head");
    let audited = fixture.store.list_audited_accounts(postroad_model::AccountId(-1), 10).await;
    assert!(audited.expect("the store works").contains(&fixture.account));
}
