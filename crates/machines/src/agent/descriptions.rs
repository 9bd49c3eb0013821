//! The descriptions by which an agent drives real proxies: those that are installed at it, and one that came with a run.
//!
//! A description holds commands. Those of a coordinator run here only if the agent was started so.

use assay_lab::description::Description;
use assay_lab::prepare::check_described;
use assay_lab::{find, real};

use super::settings::AgentSettings;
use crate::error::FleetError;

/// What errors call the text that came with an order.
const SENT: &str = "the description that came with the run";

/// The description that came with a run.
#[derive(Debug, Clone)]
pub struct Brought {
    description: Description,
    /// The version that its proxy reports.
    pub version: String,
}

impl Brought {
    /// Reads one that a coordinator sent, and looks whether its proxy is here.
    pub async fn read(settings: &AgentSettings, text: &str) -> Result<Self, FleetError> {
        let plan = |e: &dyn std::fmt::Display| FleetError::plan(e.to_string());
        let description = Description::read(SENT, text).map_err(|e| plan(&e))?;
        if !settings.accepts_descriptions {
            return Err(FleetError::plan(refusal(&description.name)));
        }
        if let Some(mode) = description.modes.first() {
            check_described(&description, *mode).map_err(|e| plan(&e))?;
        }
        let version = real::version(&description).await.map_err(|e| plan(&e))?;
        Ok(Self { description, version })
    }
}

/// Why one that was sent is not used.
pub fn refusal(name: &str) -> String {
    format!(
        "the run sends a description of `{name}`, and the commands in it would run on this machine; put the description into \
         a directory there that the agent is given (--proxy-dir), or start the agent with --accept-descriptions"
    )
}

/// The description of this name: that which came with the run, or the one that is installed here.
pub fn text(settings: &AgentSettings, brought: Option<&Brought>, name: &str) -> Result<String, FleetError> {
    match brought.filter(|brought| brought.description.name == name) {
        Some(brought) => Ok(brought.description.source.clone()),
        None => match find(name, &settings.proxy_dirs) {
            Ok(description) => Ok(description.source),
            Err(error) => Err(FleetError::plan(error.to_string())),
        },
    }
}
