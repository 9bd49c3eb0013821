//! x
use crate::exit::{Exit, Failure};
/// x
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {}
/// x
pub fn workloads(_args: &WorkloadsArgs) -> Result<Exit, Failure> { Ok(Exit::Fine) }
