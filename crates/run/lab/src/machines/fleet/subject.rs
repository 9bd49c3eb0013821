//! The subjects on which agents and coordinators meet.
//!
//! | subject | from | what |
//! |---|---|---|
//! | `assay.discover` | coordinator, to all agents | which agents are there? Each responds with an [`AgentInfo`](crate::machines::fleet::message::AgentInfo) |
//! | `assay.agent.NAME.order` | coordinator, to one agent | an [`Order`](crate::machines::fleet::message::Order); the response is a [`Response`](crate::machines::fleet::message::Response) |
//! | `assay.agent.NAME.clock` | coordinator, to one agent | a [`ClockRequest`](crate::machines::fleet::message::ClockRequest); the response is a [`Reading`](crate::machines::fleet::message::Reading) |
//! | `assay.run.RUN.NAME` | agent NAME, kept by JetStream | what its roles say: [`Report`](crate::machines::fleet::message::Report) |
//!
//! A run has a stream and an object store of its own, named by [`stream`] and [`bucket`]; both are removed with its end.

use crate::machines::fleet::name::Name;

/// Subject on which all agents listen.
pub const DISCOVER: &str = "assay.discover";

/// Subject of orders to an agent.
pub fn orders(agent: &Name) -> String {
    format!("assay.agent.{agent}.order")
}

/// Subject of requests for an agent's clock.
pub fn clock(agent: &Name) -> String {
    format!("assay.agent.{agent}.clock")
}

/// Subject of the reports of an agent on a run.
pub fn reports(run: &Name, agent: &Name) -> String {
    format!("assay.run.{run}.{agent}")
}

/// Subject of the reports of all agents on a run.
pub fn all_reports(run: &Name) -> String {
    format!("assay.run.{run}.*")
}

/// The stream that keeps what the roles of a run say.
pub fn stream(run: &Name) -> String {
    format!("assay-run-{run}")
}

/// The object store in which files of a run are exchanged.
pub fn bucket(run: &Name) -> String {
    format!("assay-files-{run}")
}

/// The name under which a file of an agent is in the object store.
pub fn file(agent: &Name, file: &str) -> String {
    format!("{agent}/{file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_subjects_of_its_own_that_its_account_can_be_held_to() {
        let (one, run): (Name, Name) = ("one".parse().unwrap(), "r1".parse().unwrap());
        assert_eq!(orders(&one), "assay.agent.one.order");
        assert_eq!(clock(&one), "assay.agent.one.clock");
        assert_eq!(
            (reports(&run, &one), all_reports(&run)),
            ("assay.run.r1.one".into(), "assay.run.r1.*".into())
        );
        assert_eq!((stream(&run), bucket(&run)), ("assay-run-r1".into(), "assay-files-r1".into()));
        assert_eq!(file(&one, "roles/robots.log"), "one/roles/robots.log");
    }
}
