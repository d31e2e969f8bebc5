//! Gates: suspensions and slow-downs on a scope. A gate is one small record and changes no message, so lifting it
//! resumes at once.

use std::collections::HashMap;

use postroad_model::{GateAction, GateScope, Timestamp};
use postroad_store::Gate;

use super::Block;
use super::block::BlockCause;
use super::even_pace::EvenPace;

#[derive(Debug, Default)]
pub(super) struct GateTable {
    gates: HashMap<GateScope, Vec<ActiveGate>>,
}

/// A gate in effect, with the pace of a slow-down.
#[derive(Debug)]
struct ActiveGate {
    gate: Gate,
    pace: Option<EvenPace>,
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
            let old = before.get_mut(&gate.scope).and_then(|active| {
                let at = active.iter().position(|active| same(&active.gate, gate))?;
                Some(active.swap_remove(at))
            });
            let active = old.unwrap_or_else(|| ActiveGate {
                gate: gate.clone(),
                pace: match gate.action {
                    GateAction::Suspend => None,
                    GateAction::Slow { per_minute } => Some(EvenPace::per_minute(f64::from(per_minute))),
                },
            });
            self.gates.entry(gate.scope.clone()).or_default().push(active);
        }
    }

    /// The gate that blocks these scopes now.
    pub(super) fn block(&self, scopes: &[GateScope], now: Timestamp) -> Option<Block> {
        if self.gates.is_empty() {
            return None;
        }
        let active = scopes.iter().filter_map(|scope| self.gates.get(scope)).flatten();
        active.filter(|active| active.gate.ends_at.is_none_or(|end| end > now)).find_map(|active| {
            let until = match &active.pace {
                None => active.gate.ends_at,
                Some(pace) => Some(pace.blocked_until(now)?),
            };
            Some(Block { until, cause: BlockCause::Gate(Box::new(active.gate.clone())) })
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// Whether one of these scopes is suspended.
    pub(super) fn is_suspended(&self, scopes: &[GateScope], now: Timestamp) -> bool {
        let is_in_effect =
            |gate: &Gate| gate.action == GateAction::Suspend && gate.ends_at.is_none_or(|end| end > now);
        let mut active = scopes.iter().filter_map(|scope| self.gates.get(scope)).flatten();
        active.any(|active| is_in_effect(&active.gate))
    }

    /// Whether one of these scopes has a gate, so that messages leave one at a time.
    pub(super) fn is_paced(&self, scopes: &[GateScope]) -> bool {
        !self.gates.is_empty() && scopes.iter().any(|scope| self.gates.contains_key(scope))
    }

    /// Counts one message that these scopes let pass.
    pub(super) fn count_message(&mut self, scopes: &[GateScope], now: Timestamp) {
        if self.gates.is_empty() {
            return;
        }
        for scope in scopes {
            for active in self.gates.get_mut(scope).into_iter().flatten() {
                if let Some(pace) = &mut active.pace {
                    pace.count_message(now);
                }
            }
        }
    }

    /// Shifts only the paces of slow-downs: the store decides when a gate ends.
    pub(super) fn shift_back(&mut self, by: std::time::Duration) {
        for active in self.gates.values_mut().flatten() {
            if let Some(pace) = &mut active.pace {
                pace.shift_back(by);
            }
        }
    }

    /// When the next gate expires.
    pub(super) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.gates.values().flatten().filter_map(|active| active.gate.ends_at);
        ends.filter(|end| *end > now).min()
    }
}
