//! The descriptions by which an agent drives real proxies: those that are installed at it, and one that came with a run.
//!
//! A description holds commands. Those of a coordinator run here only if the agent was started so.

use crate::description::Description;
use crate::machines::fleet::message::InstalledProxy;
use crate::prepare::check_described;
use crate::run_info::digest;
use crate::{find, real_proxy};

use super::AgentSettings;
use crate::machines::error::FleetError;

/// Name in errors of the text that came with an order.
const SENT: &str = "the description that came with the run";
/// Reason why a description that was sent is not used.
const REFUSAL: &str = "the run sends a description of a proxy, and the commands in it would run on this machine; put the description into \
                       a directory there that the agent is given (--proxy-dir), or start the agent with --accept-descriptions";

/// The description that came with a run.
#[derive(Debug, Clone)]
pub struct SentDescription {
    description: Description,
    /// The version that its proxy reports.
    pub version: String,
}

impl SentDescription {
    /// Reads one that a coordinator sent, and looks whether its proxy is here.
    pub async fn read(is_accepted: bool, text: &str) -> Result<Self, FleetError> {
        if !is_accepted {
            return Err(FleetError::plan(REFUSAL));
        }
        let description = Description::read(SENT, text).map_err(FleetError::plan)?;
        if let Some(mode) = description.modes.first() {
            check_described(&description, *mode).map_err(FleetError::plan)?;
        }
        let version = real_proxy::version(&description).await.map_err(FleetError::plan)?;
        Ok(Self { description, version })
    }
}

/// The description of this name: that which came with the run, or the one that is installed here, as coordinators were `told` of it.
pub fn text(
    settings: &AgentSettings,
    told: &[InstalledProxy],
    sent: Option<&SentDescription>,
    name: &str,
) -> Result<String, FleetError> {
    match sent.filter(|sent| sent.description.name == name) {
        Some(sent) => Ok(sent.description.source.clone()),
        None => {
            let source = find(name, &settings.proxy_dirs).map_err(FleetError::plan)?.source;
            let is_told = |one: &InstalledProxy| one.name == name && one.description == digest(&source);
            match told.iter().any(is_told) {
                true => Ok(source),
                false => Err(FleetError::plan(format!(
                    "the description of {name} has changed since this agent was started; start it again"
                ))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_description_that_was_sent_run_only_where_they_are_accepted() {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = directory.path().join("it-ran");
        let text = format!(
            "name = \"mine\"\ntitle = \"Mine\"\nmodes = [\"reverse\"]\n[version]\ncommand = [\"/bin/sh\", \"-c\", \"touch {} && echo mine/1.0\"]\n\
             after = \"mine/\"\n[start]\ncommand = [\"/bin/sh\"]\n",
            trace.display()
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let refused =
            runtime.block_on(SentDescription::read(false, &text)).expect_err("is refused").to_string();
        assert!(refused.contains("--accept-descriptions") && !trace.exists(), "{refused}");
        let sent = runtime.block_on(SentDescription::read(true, &text)).expect("is accepted");
        assert!(sent.version == "1.0" && trace.exists(), "{sent:?}");
    }
}
