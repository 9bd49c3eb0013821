//! An estimate of how many different things there were. Exact for the first ones, then HyperLogLog (Flajolet and others,
//! 2007): 16 KB, standard error 0.81 %.

use super::prehashed_map::PrehashedMap;

/// Registers, as a power of two.
const BITS: u32 = 14;
/// Upper bound on the number that is counted exactly.
const EXACT: usize = 20_000;
/// Standard error of an estimate, relative to it.
pub const STANDARD_ERROR: f64 = 1.04 / (1u32 << (BITS / 2)) as f64;

#[derive(Debug, Clone, Default)]
pub struct DistinctCounter {
    exact: PrehashedMap<()>,
    registers: Vec<u8>,
}

impl DistinctCounter {
    /// Takes note of a hash.
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        if self.registers.is_empty() {
            if self.exact.get(hash).is_none() {
                self.exact.insert(hash, ());
            }
            if self.exact.len() > EXACT {
                self.registers = vec![0; 1 << BITS];
                for hash in std::mem::take(&mut self.exact).hashes() {
                    self.register(hash);
                }
            }
            return;
        }
        self.register(hash);
    }

    #[inline]
    fn register(&mut self, hash: u64) {
        let at = (hash >> (64 - BITS)) as usize;
        let rank = (hash << BITS | 1 << (BITS - 1)).leading_zeros() as u8 + 1;
        let register = &mut self.registers[at];
        *register = (*register).max(rank);
    }

    /// Count, and whether it is an estimate.
    pub fn count(&self) -> (f64, bool) {
        if self.registers.is_empty() {
            return (self.exact.len() as f64, false);
        }
        let registers = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|rank| 0.5f64.powi(i32::from(*rank))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        // Few for so many registers: counting the empty ones is better.
        let estimate = if raw <= 2.5 * registers && empty > 0 {
            registers * (registers / empty as f64).ln()
        } else {
            raw
        };
        (estimate, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash;

    #[test]
    fn counts_are_exact_first_and_then_within_four_standard_errors() {
        let mut distinct = DistinctCounter::default();
        let mut next = 0u64;
        for (up_to, exact) in [(1000, true), (20_000, true), (50_000, false), (400_000, false)] {
            while next < up_to {
                distinct.insert(hash(&next.to_le_bytes()));
                distinct.insert(hash(&next.to_le_bytes()));
                next += 1;
            }
            let (count, estimate) = distinct.count();
            assert_eq!(estimate, !exact);
            let off = (count / up_to as f64 - 1.0).abs();
            assert!(off <= if exact { 0.0 } else { 4.0 * STANDARD_ERROR }, "{count} of {up_to}");
        }
    }
}
