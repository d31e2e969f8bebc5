//! Admin commands for gates: suspensions and slow-downs of one scope of delivery.

use postroad_boxed_futures::boxed_futures;
use postroad_model::GateScope;
use postroad_store::{AuditSubject, NewGate, StoreError};

use crate::App;
use crate::access::Operation;
use crate::accounts::Requester;

#[boxed_futures]
impl App {
    /// Sets a gate, which suspends or slows one scope of delivery.
    pub async fn suspend_scope(&self, new: NewGate) -> Result<(), StoreError> {
        let subject = AuditSubject::Gate(new.scope.clone());
        let store = self.audited_store(&Requester::command_line(), Operation::InstallationSuspend, subject);
        let result = store.set_gate(new).await;
        self.forget_setup();
        result
    }

    /// Lifts a gate, whether a person or Postroad itself set it. Returns whether the scope had a gate.
    pub async fn resume_scope(&self, scope: GateScope) -> Result<bool, StoreError> {
        let subject = AuditSubject::Gate(scope.clone());
        let store = self.audited_store(&Requester::command_line(), Operation::InstallationResume, subject);
        let result = store.remove_gate(scope).await;
        self.forget_setup();
        result
    }
}
