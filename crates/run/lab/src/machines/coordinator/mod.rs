//! The part of a run that reaches agents.
//!
//! A [`Fleet`] is a connection, on a thread of its own: it finds agents and measures their clocks. Where a run takes some of
//! them, they become a [`Coordinator`](run::Coordinator), which is the run's [`RemoteMachines`](crate::remote::RemoteMachines).

pub mod assignment;
mod clocks;
mod distributed_role;
mod merge;
mod orders;
mod resume;
mod router;
pub mod run;
pub mod saved;
#[cfg(test)]
mod testing;

use crate::machines::fleet::clock::AgentClock;
use crate::machines::fleet::message::{AgentInfo, MessageError};
use async_nats::Client;

use crate::machines::background::Background;
use crate::machines::discovery;
use crate::machines::error::FleetError;
use crate::machines::login::Login;

/// Exchanges by which a clock is measured for a list.
const EXCHANGES: u32 = 20;

/// A connection to the server that agents are connected to.
#[derive(Debug)]
pub struct Fleet {
    client: Client,
    url: String,
    // Work of its own goes on while whoever called waits for something else.
    background: Background,
}

/// An agent and its clock.
#[derive(Debug, Clone)]
pub struct AgentWithClock {
    /// Description by the agent itself.
    pub info: AgentInfo,
    /// Clock as exchanges with it show it.
    pub clock: AgentClock,
}

impl Fleet {
    pub fn connect(login: &Login, name: &str) -> Result<Self, FleetError> {
        let background = Background::start()?;
        let (login, name) = (login.clone(), name.to_owned());
        let url = login.url.clone();
        let client = background.wait_for(async move { login.connect(&name).await })??;
        Ok(Self { client, url, background })
    }

    /// Agents that are there; agents of another protocol apart. Two of one name are an error.
    pub fn discover(&self) -> Result<(Vec<AgentInfo>, Vec<MessageError>), FleetError> {
        let (found, others) = self.discovered()?;
        match discovery::duplicate_name(&found) {
            Some(name) => Err(FleetError::plan(format!(
                "two agents are named {name}; start one of them again with another --name"
            ))),
            None => Ok((found, others)),
        }
    }

    fn discovered(&self) -> Result<(Vec<AgentInfo>, Vec<MessageError>), FleetError> {
        let client = self.client.clone();
        self.background.wait_for(async move { discovery::discover(&client).await })?
    }

    /// Measures the clocks of agents, one after the other: each exchange is alone on its way.
    pub fn measure(&self, agents: Vec<AgentInfo>) -> Result<Vec<AgentWithClock>, FleetError> {
        let client = self.client.clone();
        self.background.wait_for(async move {
            let mut seen = Vec::new();
            for info in agents {
                let clock = discovery::measure(&client, &info.name, EXCHANGES).await;
                seen.push(AgentWithClock { info, clock });
            }
            seen
        })
    }
}
