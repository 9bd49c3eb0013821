//! Assignment of agents to the parts of a run.

use std::collections::BTreeSet;

use crate::checks::Supply;
use crate::checks::machines::MachineLoad;
use crate::machines::fleet::message::AgentInfo;
use crate::machines::fleet::name::Name;
use crate::machines::fleet::share;
use serde::{Deserialize, Serialize};

use crate::machines::error::FleetError;

/// The labels by which agents are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentLabels {
    /// For robots: all that carry it take a share.
    pub robots: Option<Name>,
    /// For origins: all that carry it take a share.
    pub origins: Option<Name>,
    /// For the proxy: one that carries it.
    pub proxy: Option<Name>,
}

/// The agents of a run. One may be in several lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentAssignment {
    /// Robots run there, divided by processors.
    pub robots: Vec<AgentInfo>,
    pub origins: Vec<AgentInfo>,
    /// The proxy runs there; none: there is no proxy.
    pub proxy: Option<AgentInfo>,
    /// Robots of the workload, which are divided.
    pub robot_count: u32,
    pub origin_count: u32,
}

/// By what robots and origins are divided: processors.
pub fn weights(machines: &[AgentInfo]) -> Vec<f64> {
    machines.iter().map(|machine| f64::from(machine.cpus)).collect()
}

impl AgentAssignment {
    /// Each of them once.
    pub fn all(&self) -> Vec<AgentInfo> {
        let mut seen = BTreeSet::new();
        let all = self.robots.iter().chain(&self.origins).chain(&self.proxy);
        all.filter(|info| seen.insert(info.name.clone())).cloned().collect()
    }

    /// Load of each of them.
    pub fn carriers(&self) -> Vec<MachineLoad> {
        let part_of = |machines: &[AgentInfo], count: u32, name: &Name| {
            let parts = share::divide(count, &weights(machines)).unwrap_or_default();
            machines.iter().zip(parts).find(|(info, _)| info.name == *name).map(|(_, part)| part)
        };
        let carrier = |info: AgentInfo| MachineLoad {
            robots: part_of(&self.robots, self.robot_count, &info.name),
            origins: part_of(&self.origins, self.origin_count, &info.name),
            proxy: self.proxy.as_ref().is_some_and(|proxy| proxy.name == info.name),
            name: info.name.to_string(),
            supply: Supply {
                descriptors: info.descriptors,
                ports: info.free.ports,
                port_rest_s: info.free.port_rest_s,
                memory_bytes: info.free.memory_bytes,
                run_dir_free_bytes: info.free.dir_bytes,
                work_dir_free_bytes: info.free.work_bytes,
                work_dir: info.free.work_dir,
                robot_cpus: info.cpus.into(),
                origin_cpus: info.cpus.into(),
                shared_cpus: info.cpus.into(),
            },
        };
        self.all().into_iter().map(carrier).collect()
    }
}

/// Needs of a run for agents.
#[derive(Debug, Clone, Copy)]
pub struct AgentNeeds<'a> {
    /// Robots of the workload.
    pub robots: u32,
    /// Origins of the workload.
    pub origins: u32,
    /// Whether it has a proxy.
    pub proxy: bool,
    /// The real proxy that its machine must have; none: none, or the built-in one.
    pub described: Option<WantedProxy<'a>>,
    /// The version of Assay that all must be.
    pub version: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct WantedProxy<'a> {
    /// The name of its description.
    pub name: &'a str,
    /// The digest of that.
    pub description: &'a str,
}

impl WantedProxy<'_> {
    /// Whether an agent can start it as it is described here.
    pub fn is_installed(&self, info: &AgentInfo) -> bool {
        info.proxies.iter().any(|proxy| proxy.name == self.name && proxy.description == self.description)
    }
}

/// Chooses agents for a run, or says which is missing. A list without a label takes every agent, the proxy the first.
pub fn choose(
    found: &[AgentInfo],
    labels: &AgentLabels,
    needs: AgentNeeds<'_>,
) -> Result<AgentAssignment, FleetError> {
    if found.is_empty() {
        return Err(FleetError::plan(
            "no agent is connected to this server; start some: `assay agent --nats URL --name NAME` on each machine",
        ));
    }
    let robots = carriers(found, "--robots-on", labels.robots.as_ref())?;
    let origins = carriers(found, "--origins-on", labels.origins.as_ref())?;
    // A machine without a share would be of no use.
    let robots = first(robots, needs.robots);
    let origins = first(origins, needs.origins);
    let proxy = match needs.proxy {
        true => Some(proxy(carriers(found, "--proxy-on", labels.proxy.as_ref())?, needs.described)?),
        false => None,
    };
    let chosen =
        AgentAssignment { robots, origins, proxy, robot_count: needs.robots, origin_count: needs.origins };
    for info in chosen.all() {
        check(&info, needs.version)?;
    }
    Ok(chosen)
}

fn first(mut agents: Vec<AgentInfo>, most: u32) -> Vec<AgentInfo> {
    agents.truncate(usize::try_from(most.max(1)).unwrap_or(usize::MAX));
    agents
}

fn carriers(found: &[AgentInfo], flag: &str, label: Option<&Name>) -> Result<Vec<AgentInfo>, FleetError> {
    let Some(label) = label else { return Ok(found.to_vec()) };
    let carriers: Vec<AgentInfo> = found.iter().filter(|info| info.is_called(label)).cloned().collect();
    if carriers.is_empty() {
        let known: Vec<String> = found.iter().map(described).collect();
        return Err(FleetError::plan(format!(
            "{flag} {label}: no agent has that name or label; there are: {}",
            known.join(", ")
        )));
    }
    Ok(carriers)
}

/// A name, and the labels after it.
fn described(info: &AgentInfo) -> String {
    match info.labels.is_empty() {
        true => info.name.to_string(),
        false => {
            format!("{} ({})", info.name, info.labels.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The first that has it, or else the first that takes its description from here.
fn proxy(carriers: Vec<AgentInfo>, wanted: Option<WantedProxy<'_>>) -> Result<AgentInfo, FleetError> {
    let has = |info: &&AgentInfo| wanted.is_none_or(|wanted| wanted.is_installed(info));
    let accepts = || carriers.iter().find(|info| info.accepts_descriptions);
    if let Some(info) = carriers.iter().find(has).or_else(accepts) {
        return Ok(info.clone());
    }
    let name = wanted.map_or("it", |wanted| wanted.name);
    if let Some(info) = carriers.iter().find(|info| info.proxies.iter().any(|proxy| proxy.name == name)) {
        return Err(FleetError::plan(format!(
            "the agent {} has another description of {name} than this machine; give both the same description (--proxy-dir), \
             or start the agent with --accept-descriptions",
            info.name
        )));
    }
    let each = carriers.iter().map(|info| match info.proxies.is_empty() {
        true => format!("{} has none", info.name),
        false => {
            let names: Vec<&str> = info.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
            format!("{} has {}", info.name, names.join(", "))
        }
    });
    Err(FleetError::plan(format!(
        "no agent for the proxy has {name}: {}; install it there and start the agent again, with its description (--proxy-dir) if \
         that is not one of Assay's",
        each.collect::<Vec<_>>().join("; ")
    )))
}

fn check(info: &AgentInfo, version: &str) -> Result<(), FleetError> {
    if info.version != version {
        return Err(FleetError::plan(format!(
            "the agent {} is Assay {}, and this is Assay {version}; install the same version on both",
            info.name, info.version
        )));
    }
    match &info.busy {
        Some(busy) => Err(FleetError::plan(format!(
            "the agent {} takes part in the run {} of {}; wait for its end, or choose others with --robots-on, --origins-on and \
             --proxy-on",
            info.name, busy.run, busy.by
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::machines::fleet::message::{Busy, InstalledProxy};

    use super::super::testing;
    use super::*;

    fn agent(name: &str, labels: &[&str]) -> AgentInfo {
        let labels = labels.iter().map(|label| label.parse().unwrap()).collect();
        AgentInfo { labels, ..testing::agent(name) }
    }

    const NEEDS: AgentNeeds<'_> =
        AgentNeeds { robots: 10, origins: 1, proxy: true, described: None, version: "1.0" };

    fn labels(robots: &str, origins: &str, proxy: &str) -> AgentLabels {
        let label = |text: &str| Some(text.parse().unwrap());
        AgentLabels { robots: label(robots), origins: label(origins), proxy: label(proxy) }
    }

    fn refused(found: &[AgentInfo], labels: &AgentLabels, needs: AgentNeeds<'_>) -> String {
        choose(found, labels, needs).unwrap_err().to_string()
    }

    #[test]
    fn agents_are_chosen_by_label_and_by_name() {
        let found = [agent("a", &["load"]), agent("b", &["load"]), agent("c", &["cache"])];
        let chosen = choose(&found, &labels("load", "b", "cache"), NEEDS).unwrap();
        let names =
            |list: &[AgentInfo]| list.iter().map(|info| info.name.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!((names(&chosen.robots), names(&chosen.origins)), ("a b".into(), "b".into()));
        assert_eq!(names(chosen.proxy.as_slice()), "c");
        assert_eq!(names(&chosen.all()), "a b c");
        // One origin needs one machine, and one robot too.
        let few = AgentNeeds { robots: 1, ..NEEDS };
        let chosen = choose(&found, &labels("load", "load", "c"), few).unwrap();
        assert_eq!((names(&chosen.robots), names(&chosen.origins)), ("a".into(), "a".into()));
    }

    #[test]
    fn each_machine_carries_its_part() {
        let mut found = [agent("a", &["load"]), agent("b", &["load"]), agent("c", &["cache"])];
        found[1].cpus = 6;
        let chosen =
            choose(&found, &labels("load", "a", "cache"), AgentNeeds { robots: 8, ..NEEDS }).unwrap();
        let carriers = chosen.carriers();
        let parts: Vec<_> =
            carriers.iter().map(|one| (one.name.as_str(), one.robots, one.origins, one.proxy)).collect();
        let whole = [
            ("a", Some((0, 1)), Some((0, 0)), false),
            ("b", Some((2, 7)), None, false),
            ("c", None, None, true),
        ];
        assert_eq!(parts, whole);
        assert_eq!(carriers[1].supply.robot_cpus, 6);
    }

    #[test]
    fn what_is_missing_is_said_before_anything_starts() {
        let mut found = [agent("a", &["load"]), agent("b", &[])];
        assert!(refused(&[], &AgentLabels::default(), NEEDS).contains("no agent is connected"));
        let words = refused(&found, &labels("load", "a", "cache"), NEEDS);
        assert!(words.contains("--proxy-on cache") && words.contains("a (load), b"), "{words}");
        let wanted = |name| AgentNeeds { described: Some(WantedProxy { name, description: "d1" }), ..NEEDS };
        let proxy = |description: &str| {
            vec![InstalledProxy {
                name: "nginx".into(),
                description: description.into(),
                version: "1".into(),
            }]
        };
        found[1].proxies = proxy("d1");
        let words = refused(&found, &AgentLabels::default(), wanted("squid"));
        assert!(words.contains("a has none; b has nginx"), "{words}");
        let name_of = |found: &[AgentInfo]| {
            choose(found, &AgentLabels::default(), wanted("nginx"))
                .map(|chosen| chosen.proxy.unwrap().name.to_string())
        };
        assert_eq!(name_of(&found).unwrap(), "b");
        found[1].proxies = proxy("d2");
        let words = name_of(&found).unwrap_err().to_string();
        assert!(words.contains("the agent b has another description of nginx"), "{words}");
        found[0].accepts_descriptions = true;
        assert_eq!(name_of(&found).unwrap(), "a");
        let words = refused(&found, &AgentLabels::default(), AgentNeeds { version: "2.0", ..NEEDS });
        assert!(words.contains("the agent a is Assay 1.0, and this is Assay 2.0"), "{words}");
        found[0].busy = Some(Busy { run: "r9".parse().unwrap(), by: "ann@desk".into(), roles: Vec::new() });
        let words = refused(&found, &AgentLabels::default(), NEEDS);
        assert!(words.contains("takes part in the run r9 of ann@desk"), "{words}");
    }
}
