//! Mutates valid inputs: changes and inserts bytes; cuts, repeats and replaces pieces. The same seeds and
//! `number` give the same inputs.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Longest input.
const BYTES_MAX: usize = 64 << 10;
/// Bytes with a special meaning for parsers.
const SPECIAL: &[u8] = b"\0\t\n\r \"#%&'()*+,-./0:;<=>?@[\\]_{|}~\x7f\x80\xc3\xff";

#[derive(Debug)]
pub struct Mutator {
    random: StdRng,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    pub fn new(seeds: Vec<Vec<u8>>, number: u64) -> Self {
        Self { random: StdRng::seed_from_u64(number), seeds }
    }

    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick_seed();
        for _ in 0..self.random.random_range(1..=8) {
            self.change(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn pick_seed(&mut self) -> Vec<u8> {
        match self.seeds.len() {
            0 => Vec::new(),
            count => self.seeds[self.random.random_range(0..count)].clone(),
        }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (start, end) = self.random_piece(input.len());
        match self.random.random_range(0..8) {
            0 => drop(input.drain(start..end)),
            1 => {
                let piece = input[start..end].to_vec();
                for _ in 0..self.random.random_range(1..=16) {
                    if input.len() + piece.len() <= BYTES_MAX {
                        input.splice(start..start, piece.iter().copied());
                    }
                }
            }
            2 => {
                let other = self.pick_seed();
                let (from, to) = self.random_piece(other.len());
                input.splice(start..end, other[from..to].iter().copied());
            }
            3 => input.truncate(end),
            4 => {
                let number = self.random.random::<u64>() >> self.random.random_range(0..64);
                input.splice(start..end, number.to_string().into_bytes());
            }
            5 => {
                if let Some(byte) = input.get_mut(start) {
                    *byte = self.random.random();
                }
            }
            _ => {
                let byte = SPECIAL[self.random.random_range(0..SPECIAL.len())];
                let count = if self.random.random_ratio(1, 8) { self.random.random_range(1..300) } else { 1 };
                input.splice(start..start, std::iter::repeat_n(byte, count));
            }
        }
    }

    /// Start and end of a random piece of up to 64 bytes.
    fn random_piece(&mut self, length: usize) -> (usize, usize) {
        let start = self.random.random_range(0..=length);
        let end = (start + self.random.random_range(0..=64)).min(length);
        (start, end)
    }
}
