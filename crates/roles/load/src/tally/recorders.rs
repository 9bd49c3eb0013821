//! The [`RobotRecorder`]s of one worker: one for each phase of which something was counted in the interval.

use super::RobotRecorder;

/// Recorders by phase. One that follows a recorder that was sent has as much room as that, so that histograms grow in
/// the first second and not in each.
#[derive(Debug)]
pub struct Recorders {
    phases: Vec<Option<Box<RobotRecorder>>>,
    /// An empty one that will be the next.
    spare: Option<Box<RobotRecorder>>,
}

impl Recorders {
    pub fn new(phases: usize) -> Self {
        Self { phases: (0..phases).map(|_| None).collect(), spare: None }
    }

    #[inline]
    pub fn recorder(&mut self, phase: u16) -> &mut RobotRecorder {
        self.phases[usize::from(phase)].get_or_insert_with(|| self.spare.take().unwrap_or_default())
    }

    /// None: nothing was counted of the phase.
    pub fn get(&self, phase: u16) -> Option<&RobotRecorder> {
        self.phases[usize::from(phase)].as_deref()
    }

    /// Takes all in which something was counted, with their phases in order.
    ///
    /// A function of its own, as counts of instructions leave it out: it is called once a second, however many requests there are.
    #[inline(never)]
    pub fn take(&mut self) -> Vec<(u16, Box<RobotRecorder>)> {
        let slots = self.phases.iter_mut().enumerate();
        let taken: Vec<_> = slots.filter_map(|(phase, slot)| Some((phase as u16, slot.take()?))).collect();
        // The latest phase is the one that goes on.
        if let Some((_, latest)) = taken.last() {
            self.spare = Some(Box::new(latest.emptied()));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_was_counted_since_the_last_time() {
        let mut recorders = Recorders::new(3);
        recorders.recorder(2).counts.completed = 2;
        recorders.recorder(0).counts.completed = 1;
        assert_eq!(recorders.get(2).map(|recorder| recorder.counts.completed), Some(2));
        let taken = recorders.take();
        let counted = |taken: &[(u16, Box<RobotRecorder>)]| -> Vec<(u16, u64)> {
            taken.iter().map(|(phase, recorder)| (*phase, recorder.counts.completed)).collect()
        };
        assert_eq!(counted(&taken), [(0, 1), (2, 2)]);
        assert!(recorders.get(0).is_none() && recorders.take().is_empty());
        recorders.recorder(1).counts.completed += 3;
        assert_eq!(counted(&recorders.take()), [(1, 3)]);
    }

    #[test]
    fn the_next_one_is_empty_and_has_room_for_what_the_last_one_held() {
        let mut recorders = Recorders::new(1);
        recorders.recorder(0).times.lateness.record(1_000_000);
        recorders.take();
        let next = recorders.recorder(0);
        assert_eq!((next.times.lateness.count(), next.times.lateness.max_us()), (0, None));
        let room = next.times.lateness.room();
        next.times.lateness.record(1_000_000);
        assert_eq!(next.times.lateness.room(), room);
        assert!(room > 0);
    }
}
