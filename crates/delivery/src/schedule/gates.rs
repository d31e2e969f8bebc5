//! Gates: suspensions and slow-downs on a scope. A gate is one small record and changes no message, so lifting it
//! resumes at once.

use std::collections::HashMap;

use postroad_model::{GateAction, GateScope, Timestamp};
use postroad_store::Gate;

use super::Block;
use super::block::Why;
use super::bucket::Bucket;

#[derive(Debug, Default)]
pub(super) struct GateTable {
    gates: HashMap<GateScope, Vec<ClosedGate>>,
}

/// A gate in effect, with the pace of a slow-down.
#[derive(Debug)]
struct ClosedGate {
    gate: Gate,
    pace: Option<Bucket>,
}

impl GateTable {
    /// Applies the gates from the store.
    pub(super) fn replace(&mut self, gates: &[Gate]) {
        let same = |old: &Gate, new: &Gate| {
            (old.automatic, old.set_by, old.action, old.ends_at, &old.reason)
                == (new.automatic, new.set_by, new.action, new.ends_at, &new.reason)
        };
        let mut before = std::mem::take(&mut self.gates);
        for gate in gates {
            let old = before.get_mut(&gate.scope).and_then(|closed| {
                let at = closed.iter().position(|closed| same(&closed.gate, gate))?;
                Some(closed.swap_remove(at))
            });
            let closed = old.unwrap_or_else(|| ClosedGate {
                gate: gate.clone(),
                pace: match gate.action {
                    GateAction::Suspend => None,
                    GateAction::Slow { per_minute } => Some(Bucket::per_minute(f64::from(per_minute))),
                },
            });
            self.gates.entry(gate.scope.clone()).or_default().push(closed);
        }
    }

    /// The gate that blocks these scopes now.
    pub(super) fn block(&self, scopes: &[GateScope], now: Timestamp) -> Option<Block> {
        if self.gates.is_empty() {
            return None;
        }
        let closed = scopes.iter().filter_map(|scope| self.gates.get(scope)).flatten();
        closed.filter(|closed| closed.gate.ends_at.is_none_or(|end| end > now)).find_map(|closed| {
            let until = match &closed.pace {
                None => closed.gate.ends_at,
                Some(pace) => Some(pace.blocked_until(now)?),
            };
            Some(Block { until, why: Why::Gate(Box::new(closed.gate.clone())) })
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// Whether one of these scopes is suspended.
    pub(super) fn is_suspended(&self, scopes: &[GateScope], now: Timestamp) -> bool {
        let is_in_effect =
            |gate: &Gate| gate.action == GateAction::Suspend && gate.ends_at.is_none_or(|end| end > now);
        let mut closed = scopes.iter().filter_map(|scope| self.gates.get(scope)).flatten();
        closed.any(|closed| is_in_effect(&closed.gate))
    }

    /// Whether one of these scopes has a gate, so that messages leave one at a time.
    pub(super) fn is_paced(&self, scopes: &[GateScope]) -> bool {
        !self.gates.is_empty() && scopes.iter().any(|scope| self.gates.contains_key(scope))
    }

    /// One message passes.
    pub(super) fn pass(&mut self, scopes: &[GateScope], now: Timestamp) {
        if self.gates.is_empty() {
            return;
        }
        for scope in scopes {
            for closed in self.gates.get_mut(scope).into_iter().flatten() {
                if let Some(pace) = &mut closed.pace {
                    pace.take(now);
                }
            }
        }
    }

    /// Shifts only the paces of slow-downs: the store decides when a gate ends.
    pub(super) fn shift_back(&mut self, by: std::time::Duration) {
        for closed in self.gates.values_mut().flatten() {
            if let Some(pace) = &mut closed.pace {
                pace.shift_back(by);
            }
        }
    }

    /// When the next gate expires.
    pub(super) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.gates.values().flatten().filter_map(|closed| closed.gate.ends_at);
        ends.filter(|end| *end > now).min()
    }
}
