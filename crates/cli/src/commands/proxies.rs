//! x
use crate::exit::{Exit, Failure};
/// x
#[derive(Debug, clap::Args)]
pub struct ProxiesArgs {}
/// x
pub fn proxies(_args: &ProxiesArgs) -> Result<Exit, Failure> { Ok(Exit::Fine) }
