//! Names that a template binds itself with `for`, `set` and `with`.

use std::collections::HashMap;

use super::lookups::Segment;

/// Longest chain of values computed from one another. Deeper nesting could overflow the stack when values are compared
/// or dropped.
pub(super) const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    /// Path of the bound value in the model; `None` if the template computes the value.
    pub(super) path: Option<Vec<Segment>>,
    /// Number of steps in which the template computes the bound value.
    pub(super) depth: usize,
}

#[derive(Debug)]
pub(super) struct Scopes {
    frames: Vec<HashMap<String, Binding>>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self { frames: vec![HashMap::new()] }
    }
}

impl Scopes {
    pub(super) fn push(&mut self) {
        self.frames.push(HashMap::new());
    }

    pub(super) fn pop(&mut self) {
        self.frames.pop();
    }

    /// Binds a name in the innermost scope. A name that is bound again keeps the greatest depth of its values, because
    /// conditions decide which value applies.
    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        let frame = self.frames.last_mut().expect("the first frame is never popped");
        let depth = frame.get(name).map_or(0, |before| before.depth).max(binding.depth);
        frame.insert(name.to_owned(), Binding { depth, ..binding });
    }

    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        self.frames.iter().rev().find_map(|frame| frame.get(name))
    }
}
