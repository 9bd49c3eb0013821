//! Utilisation of each node of a cluster: its processors, disks and network, second by second.

use crate::series;

series! {
    /// A node in one second, or on average over several.
    #[derive(Copy)]
    pub struct NodeUse {
        processor: f64 = "share of its processors that was busy";
        disk: f64 = "share of its disks that was busy";
        network: f64 = "share of its link's rate that responses used; 0 if the cluster file gives it no link";
        in_flight: f64 = "requests that it had at the end of the second";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::{Described, Kind};

    #[test]
    fn every_value_of_a_node_is_a_number_with_a_fraction_so_that_seconds_can_be_averaged() {
        assert!(NodeUse::FIELDS.iter().all(|field| field.kind == Kind::Float));
        assert_eq!(NodeUse::FIELDS.len(), 4);
    }
}
