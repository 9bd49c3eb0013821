//! Processor sharing: how fast each request is when several share. Processors (or a link) that give all who are there the
//! same part.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::dispatch::moment::Moment;

/// Work that is left by less than this is done: a moment is a nanosecond, and this is a tenth of one.
const NOTHING_S: f64 = 1e-10;

/// A resource that is shared evenly: `servers` of them, none of which works for two at a time.
///
/// Time is counted in work: `served` grows at the rate at which each of those present is served, so what came with work w
/// when `served` was s is done when it reaches s + w, whoever comes or goes meanwhile.
#[derive(Debug)]
pub struct Sharing<T> {
    servers: u32,
    speed: f64,
    shared_speed: f64,
    crowded_speed: f64,
    at: Moment,
    served: f64,
    present: BinaryHeap<Reverse<Due<T>>>,
    number: u64,
}

#[derive(Debug)]
struct Due<T> {
    at: f64,
    /// Of those due at once, who came first is first.
    number: u64,
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

impl<T> Sharing<T> {
    /// So many, each working at `speed`, and at `shared_speed` times that when all of them work.
    pub fn new(servers: u32, speed: f64, shared_speed: f64) -> Self {
        let (at, present) = (Moment::START, BinaryHeap::new());
        let (servers, crowded_speed) = (servers.max(1), 1.0);
        Self { servers, speed, shared_speed, crowded_speed, at, served: 0.0, present, number: 0 }
    }

    /// The same, but each works at `crowded_speed` times its speed while more want to be served than there are servers:
    /// switching between them costs something, and caches that each finds full of the others' data.
    pub fn crowded_speed(self, crowded_speed: f64) -> Self {
        Self { crowded_speed, ..self }
    }

    /// How many of them work.
    pub fn busy(&self) -> u32 {
        self.servers.min(self.present.len() as u32)
    }

    pub fn present(&self) -> usize {
        self.present.len()
    }

    /// Somebody comes with work, in seconds at speed 1.
    pub fn add(&mut self, what: T, work_s: f64, now: Moment) {
        self.pass(now);
        let due = Due { at: self.served + work_s.max(0.0), number: self.number, what };
        self.number += 1;
        self.present.push(Reverse(due));
    }

    /// When the next one is done, if nobody comes before.
    pub fn next(&self) -> Option<Moment> {
        let Reverse(first) = self.present.peek()?;
        Some(self.at.plus_secs((first.at - self.served).max(0.0) / self.rate()))
    }

    /// Somebody who is done by now; call it until there is nobody.
    pub fn take(&mut self, now: Moment) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.pass(now);
        let Reverse(first) = self.present.pop()?;
        if self.present.is_empty() {
            // A sum that begins again stays exact.
            self.served = 0.0;
        }
        Some(first.what)
    }

    pub fn clear(&mut self, now: Moment) {
        self.present.clear();
        (self.at, self.served) = (self.at.max(now), 0.0);
    }

    fn pass(&mut self, now: Moment) {
        if !self.present.is_empty() {
            self.served += now.secs_since(self.at) * self.rate();
            if let Some(Reverse(first)) = self.present.peek()
                && first.at - self.served < NOTHING_S
            {
                self.served = self.served.max(first.at);
            }
        }
        self.at = self.at.max(now);
    }

    /// Work that each of those present gets in a second.
    fn rate(&self) -> f64 {
        let busy = f64::from(self.busy());
        let slowed = match self.servers {
            1 => 1.0,
            servers => 1.0 - (1.0 - self.shared_speed) * (busy - 1.0).max(0.0) / f64::from(servers - 1),
        };
        let crowded = if self.present.len() > self.servers as usize { self.crowded_speed } else { 1.0 };
        (self.speed * slowed * crowded * busy / self.present.len().max(1) as f64).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(sharing: &mut Sharing<u32>) -> Vec<(u32, f64)> {
        let mut done = Vec::new();
        while let Some(next) = sharing.next() {
            while let Some(what) = sharing.take(next) {
                done.push((what, (next.secs() * 1e6).round() / 1e6));
            }
        }
        done
    }

    #[test]
    fn two_on_one_processor_each_take_twice_as_long() {
        let mut sharing = Sharing::new(1, 1.0, 1.0);
        sharing.add(1, 1.0, Moment::START);
        sharing.add(2, 0.5, Moment::START);
        assert_eq!(run(&mut sharing), [(2, 1.0), (1, 1.5)]);
    }

    #[test]
    fn two_processors_do_not_help_one_and_slow_each_other_down() {
        let mut alone = Sharing::new(2, 1.0, 0.8);
        alone.add(1, 1.0, Moment::START);
        assert_eq!(run(&mut alone), [(1, 1.0)]);
        let mut both = Sharing::new(2, 1.0, 0.8);
        both.add(1, 1.0, Moment::START);
        both.add(2, 1.0, Moment::START);
        assert_eq!(run(&mut both), [(1, 1.25), (2, 1.25)]);
        let mut four = Sharing::new(2, 2.0, 0.8);
        (0..4).for_each(|who| four.add(who, 1.0, Moment::START));
        assert_eq!(run(&mut four).last(), Some(&(3, 1.25)));
    }

    #[test]
    fn a_crowd_slows_everybody_down_and_a_larger_one_no_more() {
        for (servers, crowd) in [(2, 3), (2, 10), (1, 2), (1, 10)] {
            let mut sharing = Sharing::new(servers, 1.0, 1.0).crowded_speed(0.8);
            (0..crowd).for_each(|who| sharing.add(who, 0.8, Moment::START));
            let seconds = f64::from(crowd) / f64::from(servers);
            assert_eq!(run(&mut sharing).last(), Some(&(crowd - 1, seconds)), "{crowd} on {servers}");
        }
        let mut none = Sharing::new(2, 1.0, 1.0).crowded_speed(0.8);
        (0..2).for_each(|who| none.add(who, 1.0, Moment::START));
        assert_eq!(run(&mut none), [(0, 1.0), (1, 1.0)]);
    }

    #[test]
    fn the_rate_is_bit_for_bit_that_of_a_cost_for_each_one_too_many_which_had_always_reached_its_most() {
        // Jones's testbed was once described by 15 % for each one too many and 12 % at most.
        let (each, most) = (0.15_f64, 0.12);
        for servers in 1..5_u32 {
            let mut sharing = Sharing::new(servers, 1.0, 0.84).crowded_speed(0.88);
            for present in 1..100_u32 {
                sharing.add(present, 1.0, Moment::START);
                let busy = f64::from(servers.min(present));
                let slowed = match servers {
                    1 => 1.0,
                    _ => 1.0 - (1.0 - 0.84) * (busy - 1.0).max(0.0) / f64::from(servers - 1),
                };
                let too_many = f64::from(present.saturating_sub(servers));
                let before = 1.0 * slowed * (1.0 - (each * too_many).min(most)) * busy / f64::from(present);
                assert_eq!(sharing.rate().to_bits(), before.to_bits(), "{present} on {servers}");
            }
        }
    }

    #[test]
    fn who_comes_later_takes_its_part_from_then_on() {
        let mut sharing = Sharing::new(1, 1.0, 1.0);
        sharing.add(1, 1.0, Moment::START);
        sharing.add(2, 1.0, Moment::from_secs(0.5));
        assert_eq!(run(&mut sharing), [(1, 1.5), (2, 2.0)]);
    }

    proptest! {
        #[test]
        fn all_work_is_done_and_none_is_done_twice(
            servers in 1u32..5, jobs in proptest::collection::vec((0.0f64..2.0, 0.0f64..0.5), 1..50),
        ) {
            let mut sharing = Sharing::new(servers, 1.0, 1.0);
            let (mut now, mut done, mut work) = (Moment::START, Vec::new(), 0.0);
            let mut last = now;
            for (number, (work_s, gap_s)) in jobs.iter().enumerate() {
                now = now.plus_secs(*gap_s);
                while let Some(next) = sharing.next().filter(|next| *next <= now) {
                    prop_assert!(next >= last);
                    last = next;
                    while let Some(what) = sharing.take(next) { done.push(what); }
                }
                sharing.add(number, *work_s, now);
                work += work_s;
            }
            while let Some(next) = sharing.next() {
                last = next;
                while let Some(what) = sharing.take(next) { done.push(what); }
            }
            done.sort_unstable();
            prop_assert_eq!(done, (0..jobs.len()).collect::<Vec<_>>());
            prop_assert!(last.secs() * f64::from(servers) >= work - 1e-6, "faster than possible");
        }
    }
}
