//! Parses a cluster file to an [`Experiment`].
//!
//! A file may extend another: its own fields at the top replace the other's, so one description of a cluster serves many figures.

use std::error::Error;
use std::time::Duration;

use crate::dispatch::node::NodeSpec;
use crate::dispatch::policies::bounded_hash::BoundedHashSettings;
use crate::dispatch::policies::cap::CapSettings;
use crate::dispatch::policies::lard::LardSettings;
use crate::dispatch::policies::lard_replicated::LardReplicatedSettings;
use crate::dispatch::policies::peak_ewma::PeakEwmaSettings;
use crate::dispatch::policies::prequal::PrequalSettings;
use crate::dispatch::{ClassId, PolicyConfig, ServerId};
use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Source, Value, units};

use crate::simulate::error::ClusterValueError;
use crate::simulate::experiment::{
    Cluster, Experiment, ForwardingMethod, NamedPolicy, NodeFailure, NodeGroup, OfferedLoad, PolicySpec,
    Service, ServiceMix, ServiceTimeLaw, SwitchSpec,
};
use crate::simulate::failures;
use crate::simulate::forwarding;
use crate::simulate::paths::default_path;
use crate::simulate::references;

/// A file that another one extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    /// Name in messages and results: its path, or that it is bundled.
    pub name: String,
    pub text: String,
}

/// Finds the file that another one extends. The error is shown at the field `extends`.
pub type Resolver<'a> = &'a dyn Fn(&str) -> Result<BaseFile, Box<dyn Error>>;

const TOP: [&str; 21] = [
    "forwarding",
    "extends",
    "title",
    "seed",
    "repetitions",
    "warm-up",
    "measure",
    "warm-memory",
    "switch",
    "node",
    "classes",
    "service",
    "program-scale",
    "program-disk",
    "mix",
    "cluster",
    "policy",
    "policies",
    "clients",
    "rates",
    "failure",
];
const REFERENCE: &str = "reference";
const SWITCH: [&str; 8] = [
    "processors",
    "per-request",
    "per-megabyte",
    "network",
    "link",
    "retries",
    "notices-after",
    "reports-every",
];
const NODE: [&str; 12] = [
    "processors",
    "speed",
    "shared-speed",
    "crowded-speed",
    "disks",
    "disk-seek",
    "disk-rate",
    "memory",
    "workers",
    "queue",
    "weight",
    "link",
];
const SERVICE: [&str; 9] =
    ["name", "path", "class", "processor", "disk", "law", "bytes", "documents", "zipf"];
const POLICY: [&str; 13] = [
    "name",
    "label",
    "forwarding",
    "decay",
    "bound",
    "t-low",
    "t-high",
    "shrink-after",
    "hand-over",
    "probes",
    "pool",
    "lists",
    "age",
];
/// The most nodes that a cluster may have.
pub(crate) const MOST_NODES: u64 = 1_000_000;

/// Reads a cluster file; `file` names it in messages.
pub fn read(file: &str, text: &str, resolver: Resolver<'_>) -> Result<Experiment, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let own = Fields::whole(source, "a cluster file", &table);
    only(&own)?;
    let Some(extended) = own.get("extends") else { return experiment(&Layers { own: &own, base: None }) };
    let name = extended.text()?;
    let found = resolver(name).map_err(|error| extended.wrong(&error.to_string()))?;
    let base_source = Source { file: &found.name, text: &found.text };
    let base_table = base_source.parse()?;
    let base = Fields::whole(base_source, "a cluster file", &base_table);
    only(&base)?;
    if let Some(further) = base.get("extends") {
        return Err(further.wrong("a file that is extended may not extend another"));
    }
    let experiment = experiment(&Layers { own: &own, base: Some(&base) })?;
    Ok(Experiment { extends: Some(found.name.clone()), ..experiment })
}

fn only(fields: &Fields<'_>) -> Result<(), Mistake> {
    let known: Vec<&str> = TOP.into_iter().chain([REFERENCE]).collect();
    fields.only(&known)
}

/// A file and the one that it extends.
struct Layers<'f, 'a> {
    own: &'f Fields<'a>,
    base: Option<&'f Fields<'a>>,
}

impl<'f, 'a> Layers<'f, 'a> {
    /// The fields that define this one.
    fn holder(&self, key: &str) -> &'f Fields<'a> {
        match self.base {
            Some(base) if self.own.get(key).is_none() => base,
            _ => self.own,
        }
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.holder(key).get(key)
    }

    fn tables(&self, key: &str, what: &'static str, known: &[&str]) -> Result<Vec<Fields<'a>>, Mistake> {
        self.holder(key).tables(key, what, known)
    }
}

pub(crate) fn seconds(value: &Value<'_>) -> Result<f64, Mistake> {
    Ok(value.read(units::duration)?.as_secs_f64())
}

fn time(fields: &Fields<'_>, key: &str, usual_s: f64) -> Result<f64, Mistake> {
    fields.get(key).map_or(Ok(usual_s), |value| seconds(&value))
}

fn whole(fields: &Fields<'_>, key: &str, usual: u64, least: u64, most: u64) -> Result<u64, Mistake> {
    fields.get(key).map_or(Ok(usual), |value| value.whole(least, most))
}

fn experiment(layers: &Layers<'_, '_>) -> Result<Experiment, Mistake> {
    let or = |key: &str, usual: u64, most| layers.get(key).map_or(Ok(usual), |value| value.whole(1, most));
    let long = |key: &str, usual_s: u64| {
        layers.get(key).map_or(Ok(Duration::from_secs(usual_s).as_secs_f64()), |value| seconds(&value))
    };
    let classes = classes(layers)?;
    let services = services(layers, &classes)?;
    let mixes = mixes(layers, &services)?;
    let node = match layers.get("node") {
        Some(value) => Some(value.fields("[node]")?),
        None => None,
    };
    if let Some(node) = &node {
        node.only(&NODE)?;
    }
    let forwarding_methods = layers
        .tables("forwarding", "[[forwarding]]", &forwarding::KNOWN)?
        .iter()
        .map(forwarding::read)
        .collect::<Result<Vec<_>, _>>()?;
    let clusters = clusters(layers, node.as_ref())?;
    let (warm_up_s, measure_s) = (long("warm-up", 10)?, long("measure", 60)?);
    Ok(Experiment {
        title: layers.get("title").map_or(Ok(""), |value| value.text())?.to_owned(),
        seed: layers.get("seed").map_or(Ok(1), |value| value.whole(0, u64::MAX))?,
        repetitions: or("repetitions", 3, 1000)? as u32,
        warm_up_s,
        measure_s,
        warm_memory: layers.get("warm-memory").map_or(Ok(false), |value| value.flag())?,
        switch: switch(layers)?,
        policies: policies(layers, &classes, &forwarding_methods)?,
        forwarding_methods,
        classes,
        services,
        mixes,
        loads: loads(layers)?,
        failures: failures(layers, &clusters, warm_up_s + measure_s)?,
        clusters,
        references: layers
            .tables(REFERENCE, "[[reference]]", &references::KNOWN)?
            .iter()
            .map(references::read)
            .collect::<Result<_, _>>()?,
        extends: None,
    })
}

fn switch(layers: &Layers<'_, '_>) -> Result<SwitchSpec, Mistake> {
    let usual = SwitchSpec {
        processors: 1,
        per_request_s: 0.0,
        per_byte_s: 0.0,
        sees_requests: true,
        direct_return: false,
        network_s: 0.0,
        link_bits_per_s: None,
        retries: 1,
        notices_after_s: 1.0,
        reports_every_s: 1.0,
    };
    let Some(value) = layers.get("switch") else { return Ok(usual) };
    let fields = value.fields("[switch]")?;
    fields.only(&SWITCH)?;
    Ok(SwitchSpec {
        processors: whole(&fields, "processors", 1, 1, 4096)? as u32,
        per_request_s: time(&fields, "per-request", 0.0)?,
        per_byte_s: time(&fields, "per-megabyte", 0.0)? / 1e6,
        sees_requests: true,
        direct_return: false,
        network_s: time(&fields, "network", 0.0)?,
        link_bits_per_s: fields.get("link").map(|value| value.read(units::bit_rate)).transpose()?,
        retries: whole(&fields, "retries", 1, 0, 100)? as u32,
        notices_after_s: time(&fields, "notices-after", 1.0)?,
        reports_every_s: time(&fields, "reports-every", 1.0)?,
    })
}

fn classes(layers: &Layers<'_, '_>) -> Result<Vec<String>, Mistake> {
    let Some(value) = layers.get("classes") else { return Ok(vec!["all".to_owned()]) };
    let named: Vec<String> =
        value.list()?.iter().map(|name| name.text().map(str::to_owned)).collect::<Result<_, _>>()?;
    let twice = (1..named.len()).find(|at| named[..*at].contains(&named[*at]));
    match twice {
        Some(at) => Err(value.wrong(&format!("`{}` is there twice", named[at]))),
        None if named.len() > usize::from(u16::MAX) => Err(value.wrong("there are too many")),
        None => Ok(named),
    }
}

fn services(layers: &Layers<'_, '_>, classes: &[String]) -> Result<Vec<Service>, Mistake> {
    let scale = layers.get("program-scale").map_or(Ok(1.0), |value| value.number(0.0, 1e6))?;
    let disk_part = layers.get("program-disk").map(|value| value.number(0.0, 1.0)).transpose()?;
    let mut found: Vec<Service> = Vec::new();
    for fields in layers.tables("service", "[[service]]", &SERVICE)? {
        let named = fields.need("name", "what it is called in mixes")?;
        let name = named.text()?.to_owned();
        if found.iter().any(|service| service.name == name) {
            return Err(named.wrong(&format!("`{name}` is there twice")));
        }
        let class = match fields.get("class") {
            Some(value) => class_of(&value, classes)?,
            None => 0,
        };
        let documents = whole(&fields, "documents", 0, 0, 100_000_000)?;
        let (mut processor_s, mut disk_s) = (time(&fields, "processor", 0.0)?, time(&fields, "disk", 0.0)?);
        if documents == 0 {
            let all_s = (processor_s + disk_s) * scale;
            let disk = disk_part.unwrap_or(if all_s > 0.0 { disk_s * scale / all_s } else { 0.0 });
            (processor_s, disk_s) = (all_s * (1.0 - disk), all_s * disk);
        }
        let path = match fields.get("path") {
            Some(value) => value.read(path)?,
            None => default_path(&name, documents),
        };
        if let Some(other) = found.iter().find(|other| other.path == path) {
            return Err(
                fields.wrong(&format!("`{}` has the path {path} already: give it a path", other.name))
            );
        }
        found.push(Service {
            name,
            path,
            class: ClassId(class as u16),
            processor_s,
            disk_s,
            law: fields.get("law").map_or(Ok(ServiceTimeLaw::Constant), |value| value.read(law))?,
            bytes: whole(&fields, "bytes", 0, 0, 1 << 40)?,
            documents,
            zipf: match fields.get("zipf") {
                Some(value) => value.number(0.0, 10.0)?,
                None => 0.0,
            },
        });
    }
    match found.len() {
        0 => Err(layers.own.wrong("it has no service: add a [[service]] with a name")),
        _ => Ok(found),
    }
}

fn path(text: &str) -> Result<String, ClusterValueError> {
    let fits = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if fits { Ok(text.to_owned()) } else { Err(ClusterValueError::Path(text.to_owned())) }
}

fn class_of(value: &Value<'_>, classes: &[String]) -> Result<usize, Mistake> {
    index_of(value, value.text()?, classes.iter().map(String::as_str), "class")
}

/// Index of a name among the known ones.
fn index_of<'n>(
    value: &Value<'_>,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    what: &str,
) -> Result<usize, Mistake> {
    let unknown = || {
        let meant = nearest(name, known.clone());
        let all: Vec<&str> = known.clone().collect();
        let mend =
            meant.map_or(format!("there are: {}", all.join(", ")), |near| format!("did you mean `{near}`?"));
        value.wrong(&format!("there is no {what} `{name}`; {mend}"))
    };
    known.clone().position(|other| other == name).ok_or_else(unknown)
}

fn law(text: &str) -> Result<ServiceTimeLaw, ClusterValueError> {
    match text {
        "constant" => Ok(ServiceTimeLaw::Constant),
        "exponential" => Ok(ServiceTimeLaw::Exponential),
        other => Err(ClusterValueError::Law(other.to_owned())),
    }
}

fn mixes(layers: &Layers<'_, '_>, services: &[Service]) -> Result<Vec<ServiceMix>, Mistake> {
    let names = || services.iter().map(|service| service.name.as_str());
    let mut found = Vec::new();
    for fields in layers.tables("mix", "[[mix]]", &["label", "weights"])? {
        let label = fields.need("label", "what it is called in tables")?.text()?.to_owned();
        let mut weights = vec![0.0; services.len()];
        for value in fields.need("weights", "a weight for each service")?.fields("weights")?.all() {
            let service = index_of(&value, &value.key, names(), "service")?;
            weights[service] = value.number(0.0, 1e12)?;
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err(fields.wrong("it requests nothing: give a service a weight"));
        }
        found.push(ServiceMix { label, weights });
    }
    if found.is_empty() {
        found.push(ServiceMix { label: "all alike".into(), weights: vec![1.0; services.len()] });
    }
    Ok(found)
}

/// A group of nodes: its own fields, then those of the cluster, then `[node]`.
fn group(layers: &[&Fields<'_>]) -> Result<NodeGroup, Mistake> {
    let get = |key: &str| layers.iter().find_map(|fields| fields.get(key));
    let whole = |key: &str, usual: u64, most: u64| get(key).map_or(Ok(usual), |value| value.whole(1, most));
    let number =
        |key: &str, usual: f64, most: f64| get(key).map_or(Ok(usual), |value| value.number(0.0, most));
    let limit = |key: &str, least| get(key).map(|value| value.whole(least, 1 << 31)).transpose();
    let usual = NodeSpec::default();
    let node = NodeSpec {
        processors: whole("processors", 1, 4096)? as u32,
        speed: number("speed", 1.0, 1e6)?,
        shared_speed: number("shared-speed", 1.0, 1.0)?,
        crowded_speed: number("crowded-speed", 1.0, 1.0)?,
        disks: whole("disks", 1, 4096)? as u32,
        disk_seek_s: get("disk-seek").map_or(Ok(usual.disk_seek_s), |value| seconds(&value))?,
        disk_bytes_per_s: get("disk-rate")
            .map_or(Ok(usual.disk_bytes_per_s), |v| v.read(units::byte_rate))?,
        memory_bytes: get("memory").map_or(Ok(usual.memory_bytes), |value| value.read(units::size))?,
        workers: limit("workers", 1)?.map(|workers| workers as u32),
        queue: limit("queue", 0)?.map(|queue| queue as u32),
    };
    Ok(NodeGroup {
        count: 1,
        node,
        weight: number("weight", 1.0, 1e6)?,
        link_bits_per_s: get("link").map(|value| value.read(units::bit_rate)).transpose()?,
    })
}

fn clusters(layers: &Layers<'_, '_>, node: Option<&Fields<'_>>) -> Result<Vec<Cluster>, Mistake> {
    let known = |more: &[&'static str]| NODE.into_iter().chain(more.iter().copied()).collect::<Vec<_>>();
    let mut found = Vec::new();
    for fields in layers.tables("cluster", "[[cluster]]", &known(&["label", "nodes", "group"]))? {
        let mut groups = Vec::new();
        for own in fields.tables("group", "[[cluster.group]]", &known(&["nodes"]))? {
            let kinds: Vec<&Fields<'_>> = [&own, &fields].into_iter().chain(node).collect();
            let count = own.need("nodes", "how many nodes of this kind")?.whole(1, MOST_NODES)?;
            groups.push(NodeGroup { count: count as u32, ..group(&kinds)? });
        }
        if groups.is_empty() {
            let kinds: Vec<&Fields<'_>> = [&fields].into_iter().chain(node).collect();
            let count = fields.need("nodes", "how many nodes it has")?.whole(1, MOST_NODES)?;
            groups.push(NodeGroup { count: count as u32, ..group(&kinds)? });
        }
        let count: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
        if count > MOST_NODES {
            let what = format!("its groups have {count} nodes; a cluster has {MOST_NODES} at most");
            return Err(fields.wrong(&what));
        }
        let label = match fields.get("label") {
            Some(value) => value.text()?.to_owned(),
            None => format!("{count} nodes"),
        };
        found.push(Cluster { label, groups });
    }
    match found.len() {
        0 => Err(layers.own.wrong("it has no cluster: add a [[cluster]] with nodes = 4")),
        _ => Ok(found),
    }
}

fn loads(layers: &Layers<'_, '_>) -> Result<Vec<OfferedLoad>, Mistake> {
    let mut found = Vec::new();
    // Rates in a file replace the clients of the one that it extends, and the other way round.
    let own = |key: &str| layers.own.get(key);
    let both = match own("clients").is_some() || own("rates").is_some() {
        true => [own("clients"), own("rates")],
        false => [layers.get("clients"), layers.get("rates")],
    };
    let [clients, rates] = both;
    for value in clients.map_or(Ok(Vec::new()), |value| value.list())? {
        found.push(OfferedLoad::Clients(value.whole(1, 10_000_000)? as u32));
    }
    for value in rates.map_or(Ok(Vec::new()), |value| value.list())? {
        found.push(OfferedLoad::Rate(value.read(units::rate)?));
    }
    match found.len() {
        0 => Err(layers.own.wrong("nobody asks: say clients = [2, 4, 8], or rates = [\"100/s\"]")),
        _ => Ok(found),
    }
}

fn failures(layers: &Layers<'_, '_>, clusters: &[Cluster], end_s: f64) -> Result<Vec<NodeFailure>, Mistake> {
    let listed = layers.tables("failure", "[[failure]]", &failures::KNOWN)?;
    listed.iter().map(|fields| failures::read(fields, clusters, end_s)).collect()
}

fn policies(
    layers: &Layers<'_, '_>,
    classes: &[String],
    methods: &[ForwardingMethod],
) -> Result<Vec<NamedPolicy>, Mistake> {
    let own = |key: &str| layers.own.get(key).is_some();
    let from_own = own("policies") || own("policy");
    let holder = if from_own { layers.own } else { layers.holder("policies") };
    let mut found: Vec<NamedPolicy> = Vec::new();
    for value in holder.get("policies").map_or(Ok(Vec::new()), |value| value.list())? {
        let choice = named(&value)?;
        found.push(NamedPolicy { label: value.text()?.to_owned(), choice, forwarding: None });
    }
    let holder = if from_own { layers.own } else { layers.holder("policy") };
    for fields in holder.tables("policy", "[[policy]]", &POLICY)? {
        let value = fields.need("name", "a policy")?;
        let choice = with_settings(named(&value)?, &fields, classes)?;
        let label = fields.get("label").map_or(value.text(), |label| label.text())?.to_owned();
        let forwarding = forwarding::method_of_policy(fields.get("forwarding").as_ref(), &choice, methods)?;
        found.push(NamedPolicy { label, choice, forwarding });
    }
    if let Some(at) =
        (1..found.len()).find(|at| found[..*at].iter().any(|other| other.label == found[*at].label))
    {
        return Err(holder.wrong(&format!("policy `{}` is there twice; give each a label", found[at].label)));
    }
    match found.len() {
        0 => Err(layers.own.wrong("it has no policy: say policies = [\"rand\", \"rr\", \"cap\"]")),
        _ => Ok(found),
    }
}

/// Default cost of handing a request over in WARD's analysis, in seconds: that of TCP hand-off in its paper.
pub const HAND_OVER_S: f64 = 300e-6;

fn named(value: &Value<'_>) -> Result<PolicySpec, Mistake> {
    let name = value.text()?;
    match PolicyConfig::from_name(name) {
        Some(PolicyConfig::Ward(_)) => Ok(PolicySpec::Ward { hand_over_s: HAND_OVER_S }),
        Some(PolicyConfig::CapWithState(_)) => Ok(PolicySpec::CapWithState),
        Some(choice) => Ok(PolicySpec::Plain(choice)),
        None => {
            let all: Vec<&str> = PolicyConfig::all().iter().map(PolicyConfig::name).collect();
            index_of(value, name, all.into_iter(), "policy").map(|_| PolicySpec::Plain(PolicyConfig::Random))
        }
    }
}

fn with_settings(choice: PolicySpec, fields: &Fields<'_>, classes: &[String]) -> Result<PolicySpec, Mistake> {
    let number = |key: &str, usual: f64| fields.get(key).map_or(Ok(usual), |value| value.number(0.0, 1e9));
    let lard = |usual: LardSettings| -> Result<LardSettings, Mistake> {
        Ok(LardSettings {
            t_low: whole(fields, "t-low", u64::from(usual.t_low), 1, 1 << 30)? as u32,
            t_high: whole(fields, "t-high", u64::from(usual.t_high), 1, 1 << 30)? as u32,
            ..usual
        })
    };
    let (allowed, choice): (&[&str], PolicySpec) = match choice {
        PolicySpec::Ward { hand_over_s } => {
            (&["hand-over"], PolicySpec::Ward { hand_over_s: time(fields, "hand-over", hand_over_s)? })
        }
        PolicySpec::CapWithState => (&[], choice),
        PolicySpec::Plain(plain) => {
            let (allowed, plain): (&[&str], PolicyConfig) = match plain {
                PolicyConfig::PeakEwma(usual) => (
                    &["decay"],
                    PolicyConfig::PeakEwma(PeakEwmaSettings {
                        decay_s: time(fields, "decay", usual.decay_s)?,
                    }),
                ),
                PolicyConfig::BoundedHash(usual) => {
                    let bound = number("bound", usual.bound)?;
                    (&["bound"], PolicyConfig::BoundedHash(BoundedHashSettings { bound }))
                }
                PolicyConfig::Lard(usual) => (&["t-low", "t-high"], PolicyConfig::Lard(lard(usual)?)),
                PolicyConfig::LardReplicated(usual) => {
                    let shrink_after_s = time(fields, "shrink-after", usual.shrink_after_s)?;
                    let settings = LardReplicatedSettings { lard: lard(usual.lard)?, shrink_after_s };
                    (&["t-low", "t-high", "shrink-after"], PolicyConfig::LardReplicated(settings))
                }
                PolicyConfig::Prequal(usual) => {
                    let settings = PrequalSettings {
                        probes: number("probes", usual.probes)?,
                        pool: whole(fields, "pool", usual.pool as u64, 1, 100_000)? as usize,
                        age_s: time(fields, "age", usual.age_s)?,
                        ..usual
                    };
                    (&["probes", "pool", "age"], PolicyConfig::Prequal(settings))
                }
                PolicyConfig::Cap(_) => {
                    (&["lists"], PolicyConfig::Cap(CapSettings { lists: lists(fields, classes)? }))
                }
                other => (&[], other),
            };
            (allowed, PolicySpec::Plain(plain))
        }
    };
    let known: Vec<&str> = ["name", "label", "forwarding"].iter().chain(allowed).copied().collect();
    fields.only(&known)?;
    Ok(choice)
}

/// Lists of servers, by class.
fn lists(fields: &Fields<'_>, classes: &[String]) -> Result<Vec<Option<Vec<ServerId>>>, Mistake> {
    let mut lists = vec![None; classes.len()];
    let Some(value) = fields.get("lists") else { return Ok(lists) };
    for list in value.fields("lists")?.all() {
        let class = index_of(&list, &list.key, classes.iter().map(String::as_str), "class")?;
        let servers = list.list()?;
        let server = |value: &Value<'_>| Ok(ServerId(value.whole(0, MOST_NODES)? as u32));
        lists[class] = Some(servers.iter().map(server).collect::<Result<Vec<_>, Mistake>>()?);
    }
    Ok(lists)
}
