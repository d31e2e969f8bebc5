//! Admin commands for gates: suspensions and slow-downs of one scope of delivery.

use postroad_boxed_futures::boxed_futures;
use postroad_model::GateScope;
use postroad_store::{AuditSubject, NewGate, StoreError};

use crate::App;
use crate::access::Operation;

#[boxed_futures]
impl App {
    pub async fn suspend_scope(&self, new: NewGate) -> Result<(), StoreError> {
        let subject = AuditSubject::Gate(new.scope.clone());
        self.by_operator(Operation::InstallationSuspend, subject).set_gate(new).await
    }

    /// Lifts a gate that a person or Postroad itself closed. Returns whether there was one.
    pub async fn resume_scope(&self, scope: GateScope) -> Result<bool, StoreError> {
        let subject = AuditSubject::Gate(scope.clone());
        self.by_operator(Operation::InstallationResume, subject).remove_gate(scope).await
    }
}
