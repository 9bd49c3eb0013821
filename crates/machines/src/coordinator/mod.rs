//! The part of a run that reaches agents.
//!
//! A [`Fleet`] is a connection, on a thread of its own: it finds agents and measures their clocks. Where a run takes some of
//! them, they become a [`Coordinator`](run::Coordinator), which is the run's [`Elsewhere`](assay_lab::elsewhere::Elsewhere).

pub mod choice;
mod clocks;
mod gather;
mod line;
pub mod run;

use assay_fleet::clock::AgentClock;
use assay_fleet::message::{Hello, MessageError};
use async_nats::Client;

use crate::beside::Beside;
use crate::error::FleetError;
use crate::login::Login;
use crate::roster;

/// Exchanges by which a clock is measured for a list.
const EXCHANGES: u32 = 20;

/// A connection to the server that agents are connected to.
#[derive(Debug)]
pub struct Fleet {
    client: Client,
    // Work of its own goes on while whoever asked waits for something else.
    beside: Beside,
}

/// An agent and its clock.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What it says of itself.
    pub hello: Hello,
    /// What exchanges with it say.
    pub clock: AgentClock,
}

impl Fleet {
    /// Connects.
    pub fn connect(login: &Login, name: &str) -> Result<Self, FleetError> {
        let beside = Beside::start()?;
        let (login, name) = (login.clone(), name.to_owned());
        let client = beside.wait_for(async move { login.connect(&name).await })??;
        Ok(Self { client, beside })
    }

    /// Who is there; agents of another protocol apart. Two of one name are an error.
    pub fn who(&self) -> Result<(Vec<Hello>, Vec<MessageError>), FleetError> {
        let (found, others) = self.asked_who()?;
        match roster::twice(&found) {
            Some(name) => Err(FleetError::plan(format!(
                "two agents are named {name}; start one of them again with another --name"
            ))),
            None => Ok((found, others)),
        }
    }

    fn asked_who(&self) -> Result<(Vec<Hello>, Vec<MessageError>), FleetError> {
        let client = self.client.clone();
        self.beside.wait_for(async move { roster::who(&client).await })?
    }

    /// Measures the clocks of agents, one after the other: each exchange is alone on its way.
    pub fn measure(&self, agents: Vec<Hello>) -> Result<Vec<Seen>, FleetError> {
        let client = self.client.clone();
        self.beside.wait_for(async move {
            let mut seen = Vec::new();
            for hello in agents {
                let clock = roster::measure(&client, &hello.name, EXCHANGES).await;
                seen.push(Seen { hello, clock });
            }
            seen
        })
    }
}
