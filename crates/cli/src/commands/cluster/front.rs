//! What stands in front of the nodes? A switch, with the cluster file's policy and classes.

use std::net::SocketAddr;

use anyhow::anyhow;
use assay_simulate::Experiment;

use super::ClusterArgs;
use crate::exit::Failure;

/// A switch that runs until this is dropped.
pub struct Front {
    /// Where it is.
    pub address: SocketAddr,
}

/// Starts a switch in front of these nodes, for the places of a mix, a cluster and a policy.
pub fn start(
    _args: &ClusterArgs,
    _experiment: &Experiment,
    _place: (usize, usize, usize),
    _nodes: &[SocketAddr],
) -> Result<Front, Failure> {
    Err(Failure::usage(anyhow!("this build has no switch")).hint("--without-switch has clients choose nodes"))
}
