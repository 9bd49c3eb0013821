//! A workload at another rate, and in a world of its own.

pub use assay_workload::overrides::at_rate;

/// The seed of a cell's world: the same paths for all subjects of a repetition.
pub fn world(seed: u64) -> u32 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use assay_workload::model::{Pace, Workload};
    use assay_workload::timeline::Timeline;

    use super::*;
    use crate::testing;

    #[test]
    fn twice_the_rate_is_twice_the_requests() {
        let requests = |workload: &Workload| {
            let timeline = Timeline::new(workload).unwrap();
            timeline.phases()[0].expected.unwrap().requests
        };
        let mut workload = testing::workload();
        let before = requests(&workload);
        at_rate(&mut workload, 2.0).unwrap();
        assert!((requests(&workload) / before - 2.0).abs() < 1e-9);
    }

    #[test]
    fn robots_without_a_rate_cannot_be_made_to_send_more() {
        let mut workload = testing::workload();
        workload.robots[0].pace = Pace::BestEffort;
        assert!(at_rate(&mut workload, 2.0).unwrap_err().contains("no rate"));
        assert_eq!(at_rate(&mut workload, 1.0), Ok(()));
    }

    #[test]
    fn each_seed_has_a_world_of_its_own() {
        let worlds: std::collections::BTreeSet<u32> = (0..1000).map(world).collect();
        assert_eq!(worlds.len(), 1000);
    }
}
