//! A queue in which keys take turns: first come, first served within a key, and one item of each key in turn. However
//! many items one key has, the first item of another key waits for at most one turn of each of the others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Turns<K, V> {
    /// Keys with items; the next one first.
    ring: VecDeque<K>,
    items: HashMap<K, VecDeque<V>>,
    len: usize,
}

impl<K, V> Default for Turns<K, V> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), items: HashMap::new(), len: 0 }
    }
}

impl<K: Copy + Eq + Hash, V> Turns<K, V> {
    pub(crate) fn push(&mut self, key: K, item: V) {
        let items = self.items.entry(key).or_default();
        if items.is_empty() {
            self.ring.push_back(key);
        }
        items.push_back(item);
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<V> {
        self.pop_with_key().map(|(_, item)| item)
    }

    /// The next item, with the key whose turn it was.
    pub(crate) fn pop_with_key(&mut self) -> Option<(K, V)> {
        let key = self.ring.pop_front()?;
        let items = self.items.get_mut(&key)?;
        let item = items.pop_front()?;
        self.len -= 1;
        if items.is_empty() {
            self.items.remove(&key);
        } else {
            self.ring.push_back(key);
        }
        Some((key, item))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys with items, without `key`.
    pub(crate) fn count_other_keys(&self, key: K) -> usize {
        self.items.len() - usize::from(self.items.contains_key(&key))
    }

    /// The items at the head of each key's queue, in the order of the turns.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &V> {
        self.ring.iter().filter_map(|key| self.items.get(key)?.front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_item_waits_for_one_turn_of_each_other_key() {
        let mut turns = Turns::default();
        (0..1_000).for_each(|n| turns.push('a', n));
        turns.push('b', 5_000);
        turns.push('c', 6_000);
        assert_eq!((turns.len(), turns.count_other_keys('a'), turns.heads().count()), (1_002, 2, 3));
        let first: Vec<i32> = std::iter::from_fn(|| turns.pop()).take(5).collect();
        assert_eq!(first, [0, 5_000, 6_000, 1, 2]);
        assert_eq!(turns.count_other_keys('b'), 1);
        while turns.pop().is_some() {}
        assert!(turns.is_empty() && turns.items.is_empty() && turns.ring.is_empty());
    }
}
