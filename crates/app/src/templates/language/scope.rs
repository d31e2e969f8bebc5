//! Names that a template binds itself: by `for`, `set` and `with`.

use std::collections::HashMap;

use super::lookups::Segment;

/// How many values may be made of one another. Values that are nested deeper could overflow the stack when they are
/// compared or dropped, and a text that is doubled in each step grows beyond all bounds.
pub(super) const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    /// Where its value comes from in the model, if it is a plain part of it.
    pub(super) path: Option<Vec<Segment>>,
    /// Of how many steps it is made.
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

    /// Bound again, a name is as deep as the deepest of its values: which one it has depends on conditions.
    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        let frame = self.frames.last_mut().expect("the first frame is never popped");
        let depth = frame.get(name).map_or(0, |before| before.depth).max(binding.depth);
        frame.insert(name.to_owned(), Binding { depth, ..binding });
    }

    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        self.frames.iter().rev().find_map(|frame| frame.get(name))
    }
}
