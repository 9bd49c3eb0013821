//! Parses the text of a switch file into a [`Config`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use assay_base::settings::suggest::nearest;
use assay_base::settings::{Fields, Mistake, Source, Value};
use assay_cluster::dispatch::policies::cap_with_state::ClassProfile;
use assay_cluster::dispatch::{PolicyConfig, ServerId};

use super::conditions::conditions;
use super::policy::{needs, policy};
use super::values::{address, name, network, size, statuses, target, texts, time, time_or, whole_or};
use super::{
    AccessLogSettings, ClassSpec, Config, GroupSpec, HealthCheck, LogFormat, ServerSpec, StateQuery,
    SwitchLimits, Timeouts,
};
use super::{layer4, tls};
use crate::health::{ActiveRules, PassiveRules};

const TOP: [&str; 25] = [
    "listen",
    "mode",
    "splice",
    "tls",
    "certificate",
    "http2",
    "workers",
    "pause-us",
    "name",
    "policy",
    "seed",
    "metrics",
    "access-log",
    "trusted-proxies",
    "upgrades",
    "retries",
    "state-path",
    "state-interval",
    "timeouts",
    "limits",
    "health",
    "passive",
    "server",
    "class",
    "title",
];
const TIMEOUTS: [&str; 8] =
    ["client-idle", "client-request", "connect", "response", "queue", "server-idle", "tunnel", "stop"];
const LIMITS: [&str; 8] = [
    "connections",
    "server-connections",
    "queue",
    "head-size",
    "head-fields",
    "target-size",
    "body-size",
    "client-rate",
];
const CHECK: [&str; 8] = ["path", "host", "interval", "timeout", "rise", "fall", "status", "connect"];
const PASSIVE: [&str; 3] = ["failures", "within", "out"];
const SERVER: [&str; 10] =
    ["name", "address", "weight", "slow-start", "connections", "backup", "drain", "health", "tls", "http"];
const CLASS: [&str; 11] =
    ["name", "path", "prefix", "suffix", "regex", "method", "header", "query", "servers", "policy", "needs"];
const ACCESS_LOG: [&str; 2] = ["file", "format"];

const SERVERS_MAX: usize = 10_000;
const CLASSES_MAX: usize = 1_000;
/// More than any machine has processors.
const WORKERS_MAX: u64 = 256;
/// Default and maximum pause of a busy worker, in microseconds.
const DEFAULT_PAUSE_US: u64 = 50;
const PAUSE_MAX_US: u64 = 1000;
/// Name of the class that takes what no other class does.
const CATCH_ALL_CLASS: &str = "other";

/// Parses a switch file; `file` names it in messages.
pub fn read(file: &str, text: &str) -> Result<Config, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let top = Fields::whole(source, "a switch file", &table);
    top.only(&TOP)?;
    let (mode, splice) = layer4::mode(&top)?;
    if top.get("tls").is_none() {
        top.need("listen", "where clients connect, like \"127.0.0.1:8080\"")?;
    }
    let listen = texts(&top, "listen")?.iter().map(address).collect::<Result<Vec<_>, Mistake>>()?;
    let metrics = top.get("metrics").map(|value| metrics_address(&value, &listen)).transpose()?;
    let workers = whole_or(&top, "workers", 1, 1..=WORKERS_MAX)? as usize;
    let section = |key: &'static str, what: &'static str, known: &[&str]| {
        top.get(key)
            .map(|value| {
                let fields = value.fields(what)?;
                fields.only(known).map(|()| fields)
            })
            .transpose()
    };
    let limit_fields = section("limits", "[limits]", &LIMITS)?;
    let (limits, server_connections) = limits(limit_fields.as_ref(), workers)?;
    let timeouts = section("timeouts", "[timeouts]", &TIMEOUTS)?
        .map_or(Ok(Timeouts::default()), |fields| timeouts(&fields))?;
    let common_check =
        section("health", "[health]", &CHECK)?.map(|fields| check(&fields, None)).transpose()?;
    let passive = section("passive", "[passive]", &PASSIVE)?.map(|fields| passive(&fields)).transpose()?;
    let defaults = Defaults { check: common_check, connections: server_connections, workers };
    let servers = servers(&top, &defaults)?;
    let (classes, groups) = classes(&top, &servers)?;
    layer4::check_policy(mode, &groups[0].policy, top.get("policy").as_ref())?;
    Ok(Config {
        mode,
        splice,
        tls: tls::to_clients(&top, &listen)?,
        http2: tls::http2(&top)?,
        listen,
        workers,
        max_pause: Duration::from_micros(whole_or(&top, "pause-us", DEFAULT_PAUSE_US, 0..=PAUSE_MAX_US)?),
        name: top.get("name").map_or(Ok("assay"), |value| name(&value))?.to_owned(),
        metrics,
        access_log: top.get("access-log").map(|value| access_log(&value)).transpose()?,
        trusted: texts(&top, "trusted-proxies")?.iter().map(network).collect::<Result<_, _>>()?,
        timeouts,
        limits,
        upgrades: upgrades(&top)?,
        retries: whole_or(&top, "retries", 2, 0..=100)? as u32,
        passive,
        state: StateQuery {
            path: top.get("state-path").map_or(Ok("/assay/state".to_owned()), |value| target(&value))?,
            interval: time(&top, "state-interval")?,
        },
        seed: whole_or(&top, "seed", 1, 0..=u64::MAX >> 1)?,
        servers,
        classes,
        groups,
    })
}

/// Address of the counters, which must not be one for clients.
fn metrics_address(value: &Value<'_>, listen: &[SocketAddr]) -> Result<SocketAddr, Mistake> {
    let metrics = address(value)?;
    match metrics.port() > 0 && listen.contains(&metrics) {
        true => Err(value.wrong("clients connect there (`listen`); counters need an address of their own")),
        false => Ok(metrics),
    }
}

/// Protocols that may be upgraded to; only WebSocket by default.
fn upgrades(top: &Fields<'_>) -> Result<Vec<String>, Mistake> {
    let Some(value) = top.get("upgrades") else { return Ok(vec!["websocket".to_owned()]) };
    if value.text().is_ok_and(|text| text == "none") {
        return Ok(Vec::new());
    }
    let all = value.list()?;
    all.iter()
        .map(|value| {
            let text = value.text()?;
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&byte);
            if text.is_empty() || !text.bytes().all(is_token) {
                return Err(value.wrong("a protocol is a word like \"websocket\", without spaces or commas"));
            }
            Ok(text.to_ascii_lowercase())
        })
        .collect()
}

fn limits(fields: Option<&Fields<'_>>, workers: usize) -> Result<(SwitchLimits, u32), Mistake> {
    let defaults = SwitchLimits::default();
    let usual_server: u32 = 1000;
    let Some(fields) = fields else { return Ok((defaults, usual_server)) };
    let per_worker = workers as u64..=1 << 30;
    let limits = SwitchLimits {
        connections: whole_or(fields, "connections", u64::from(defaults.connections), per_worker.clone())?
            as u32,
        queue: whole_or(fields, "queue", u64::from(defaults.queue), 0..=1 << 30)? as u32,
        head_bytes: size(fields, "head-size", 256..=64 << 10)?.unwrap_or(defaults.head_bytes),
        head_fields: whole_or(fields, "head-fields", u64::from(defaults.head_fields), 1..=100)? as u32,
        target_bytes: size(fields, "target-size", 16..=64 << 10)?.unwrap_or(defaults.target_bytes),
        body_bytes: size(fields, "body-size", 0..=u64::MAX >> 1)?,
        client_rate: size(fields, "client-rate", 0..=1 << 30)?.unwrap_or(defaults.client_rate),
    };
    let server = whole_or(fields, "server-connections", u64::from(usual_server), per_worker)? as u32;
    Ok((limits, server))
}

fn timeouts(fields: &Fields<'_>) -> Result<Timeouts, Mistake> {
    let defaults = Timeouts::default();
    Ok(Timeouts {
        client_idle: time_or(fields, "client-idle", defaults.client_idle)?,
        client_request: time_or(fields, "client-request", defaults.client_request)?,
        connect: time_or(fields, "connect", defaults.connect)?,
        response: time_or(fields, "response", defaults.response)?,
        queue: time_or(fields, "queue", defaults.queue)?,
        server_idle: time_or(fields, "server-idle", defaults.server_idle)?,
        tunnel: time_or(fields, "tunnel", defaults.tunnel)?,
        stop: time_or(fields, "stop", defaults.stop)?,
    })
}

/// Parses a health check; `common` has the defaults.
fn check(fields: &Fields<'_>, common: Option<&HealthCheck>) -> Result<HealthCheck, Mistake> {
    let defaults = HealthCheck {
        connects: false,
        path: "/".to_owned(),
        host: None,
        interval: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
        statuses: vec![(200, 399)],
        rules: ActiveRules { rise: 2, fall: 3 },
    };
    let defaults = common.unwrap_or(&defaults);
    let all = fields.get("status").map(|value| value.list()).transpose()?;
    let all = all.map(|all| all.iter().map(statuses).collect::<Result<Vec<_>, _>>()).transpose()?;
    Ok(HealthCheck {
        connects: fields.get("connect").map_or(Ok(defaults.connects), |value| value.flag())?,
        path: fields.get("path").map_or(Ok(defaults.path.clone()), |value| target(&value))?,
        host: match fields.get("host") {
            Some(value) => Some(name(&value)?.to_owned()),
            None => defaults.host.clone(),
        },
        interval: time_or(fields, "interval", defaults.interval)?,
        timeout: time_or(fields, "timeout", defaults.timeout)?,
        statuses: all.unwrap_or_else(|| defaults.statuses.clone()),
        rules: ActiveRules {
            rise: whole_or(fields, "rise", u64::from(defaults.rules.rise), 1..=1000)? as u32,
            fall: whole_or(fields, "fall", u64::from(defaults.rules.fall), 1..=1000)? as u32,
        },
    })
}

fn passive(fields: &Fields<'_>) -> Result<PassiveRules, Mistake> {
    Ok(PassiveRules {
        failures: whole_or(fields, "failures", 5, 1..=10_000)? as u32,
        within: time_or(fields, "within", Duration::from_secs(10))?,
        ejection: time_or(fields, "out", Duration::from_secs(10))?,
    })
}

fn access_log(value: &Value<'_>) -> Result<AccessLogSettings, Mistake> {
    if let Ok(file) = value.text() {
        return Ok(AccessLogSettings { file: PathBuf::from(file), format: LogFormat::Switch });
    }
    let fields = value.fields("access-log")?;
    fields.only(&ACCESS_LOG)?;
    let file = PathBuf::from(fields.need("file", "where the log is")?.text()?);
    let format = match fields.get("format") {
        None => LogFormat::Switch,
        Some(value) => match value.text()? {
            "switch" => LogFormat::Switch,
            "combined" => LogFormat::Combined,
            "common" => LogFormat::Common,
            other => {
                return Err(
                    value.wrong(&format!("there is no format `{other}`; there are switch, combined, common"))
                );
            }
        },
    };
    Ok(AccessLogSettings { file, format })
}

/// Defaults of servers.
struct Defaults {
    check: Option<HealthCheck>,
    connections: u32,
    workers: usize,
}

fn servers(top: &Fields<'_>, defaults: &Defaults) -> Result<Vec<ServerSpec>, Mistake> {
    let mut specs: Vec<ServerSpec> = Vec::new();
    for fields in top.tables("server", "[[server]]", &SERVER)? {
        if specs.len() == SERVERS_MAX {
            return Err(top.wrong(&format!("there can be {SERVERS_MAX} servers")));
        }
        let server = server(&fields, defaults)?;
        if specs.iter().any(|other| other.name == server.name) {
            return Err(fields.wrong(&format!("there are two servers `{}`", server.name)));
        }
        specs.push(server);
    }
    if specs.is_empty() {
        return Err(top.wrong("it has no [[server]]; each has an address, like address = \"127.0.0.1:9001\""));
    }
    Ok(specs)
}

fn server(fields: &Fields<'_>, defaults: &Defaults) -> Result<ServerSpec, Mistake> {
    let at = fields.need("address", "where it is, like \"127.0.0.1:9001\"")?;
    let address = address(&at)?;
    if address.port() == 0 {
        return Err(at.wrong("a server has a port other than 0"));
    }
    let flag = |key: &str| fields.get(key).map_or(Ok(false), |value| value.flag());
    let check = match fields.get("health") {
        None => defaults.check.clone(),
        Some(value) if value.flag() == Ok(false) => None,
        Some(value) => {
            let own = value.fields("health")?;
            own.only(&CHECK)?;
            Some(check(&own, defaults.check.as_ref())?)
        }
    };
    let per_worker = defaults.workers as u64..=1 << 30;
    Ok(ServerSpec {
        name: match fields.get("name") {
            Some(value) => name(&value)?.to_owned(),
            None => address.to_string().replace(['[', ']'], ""),
        },
        address,
        weight: fields.get("weight").map_or(Ok(1.0), |value| value.number(0.0, 1e6))?,
        slow_start: time(fields, "slow-start")?,
        connections: whole_or(fields, "connections", u64::from(defaults.connections), per_worker)? as u32,
        is_backup: flag("backup")?,
        drains: flag("drain")?,
        check,
        tls: fields.get("tls").map(|value| tls::to_server(&value)).transpose()?,
        speaks_http2: fields.get("http").map_or(Ok(false), |value| tls::is_http2(&value))?,
    })
}

/// A class as it stands in the file, before grouping.
struct ParsedClass {
    spec: ClassSpec,
    servers: Option<Vec<usize>>,
    policy: Option<PolicyConfig>,
    needs: Option<ClassProfile>,
}

fn classes(top: &Fields<'_>, servers: &[ServerSpec]) -> Result<(Vec<ClassSpec>, Vec<GroupSpec>), Mistake> {
    let mut parsed: Vec<ParsedClass> = Vec::new();
    for fields in top.tables("class", "[[class]]", &CLASS)? {
        if parsed.len() == CLASSES_MAX {
            return Err(top.wrong(&format!("there can be {CLASSES_MAX} classes")));
        }
        let class = class(&fields, servers)?;
        if parsed.iter().any(|other| other.spec.name == class.spec.name) {
            return Err(fields.wrong(&format!("there are two classes `{}`", class.spec.name)));
        }
        if let Some(all) = parsed.iter().find(|other| other.spec.conditions.is_empty()) {
            let message = format!(
                "no request ever gets here: class `{}` before it has no condition and takes all that is left",
                all.spec.name
            );
            return Err(fields.wrong(&message));
        }
        parsed.push(class);
    }
    if parsed.last().is_none_or(|last| !last.spec.conditions.is_empty()) {
        let spec = ClassSpec { name: CATCH_ALL_CLASS.to_owned(), conditions: Vec::new(), group: 0 };
        parsed.push(ParsedClass { spec, servers: None, policy: None, needs: None });
    }
    let common = top.get("policy").map_or(Ok(PolicyConfig::LeastConnections), |value| policy(&value))?;
    Ok(group(parsed, common, servers.len()))
}

fn class(fields: &Fields<'_>, servers: &[ServerSpec]) -> Result<ParsedClass, Mistake> {
    let conditions = conditions(fields)?;
    let own = texts(fields, "servers")?;
    let own: Result<Vec<usize>, Mistake> = own.iter().map(|value| server_index(value, servers)).collect();
    let own = own?;
    let spec = ClassSpec {
        name: name(&fields.need("name", "what the class is called")?)?.to_owned(),
        conditions,
        group: 0,
    };
    Ok(ParsedClass {
        spec,
        servers: (!own.is_empty()).then_some(own),
        policy: fields.get("policy").map(|value| policy(&value)).transpose()?,
        needs: fields.get("needs").map(|value| needs(&value)).transpose()?,
    })
}

/// Index of the server that `value` names.
fn server_index(value: &Value<'_>, servers: &[ServerSpec]) -> Result<usize, Mistake> {
    let named = value.text()?;
    servers.iter().position(|server| server.name == named).ok_or_else(|| {
        let all: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let meant = nearest(named, all.iter().copied()).map_or_else(
            || format!("there are {}", all.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        value.wrong(&format!("there is no server `{named}`; {meant}"))
    })
}

/// Puts classes into groups. The first group has all servers and the policy of the file: classes without servers or policy of
/// their own share it. So does, if that policy is CAP, a class that only has a list of servers: CAP itself restricts classes to
/// lists.
fn group(parsed: Vec<ParsedClass>, common: PolicyConfig, servers: usize) -> (Vec<ClassSpec>, Vec<GroupSpec>) {
    let all: Vec<usize> = (0..servers).collect();
    let mut groups = vec![GroupSpec { policy: common.clone(), servers: all.clone() }];
    let mut classes: Vec<ClassSpec> = Vec::new();
    let needs: Vec<ClassProfile> = parsed.iter().map(|class| class.needs.unwrap_or_default()).collect();
    for (number, mut class) in parsed.into_iter().enumerate() {
        match (class.policy, class.servers) {
            (None, None) => {}
            (None, Some(list)) if matches!(common, PolicyConfig::Cap(_)) => {
                set_list(&mut groups[0].policy, number, &list);
            }
            (policy, list) => {
                let mut policy = policy.unwrap_or_else(|| common.clone());
                let mut own = list.unwrap_or_else(|| all.clone());
                set_list(&mut policy, number, &own);
                own.sort_unstable();
                own.dedup();
                groups.push(GroupSpec { policy, servers: own });
                class.spec.group = groups.len() - 1;
            }
        }
        classes.push(class.spec);
    }
    for group in &mut groups {
        if let PolicyConfig::CapWithState(settings) = &mut group.policy {
            settings.profiles.clone_from(&needs);
        }
    }
    (classes, groups)
}

/// Gives a class its own list of servers, if the policy is CAP.
fn set_list(policy: &mut PolicyConfig, class: usize, servers: &[usize]) {
    if let PolicyConfig::Cap(settings) = policy {
        settings.lists.resize(settings.lists.len().max(class + 1), None);
        settings.lists[class] = Some(servers.iter().map(|index| ServerId(*index as u32)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "listen = \"127.0.0.1:0\"\n[[server]]\naddress = \"127.0.0.1:9001\"\n";

    fn message(text: &str) -> String {
        read("s.toml", text).expect_err("is wrong").message
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let config = read("s.toml", SMALL).expect("is right");
        assert_eq!((config.workers, config.retries, config.name.as_str()), (1, 2, "assay"));
        assert_eq!(config.max_pause, Duration::from_micros(DEFAULT_PAUSE_US));
        assert_eq!((config.timeouts, config.limits), (Timeouts::default(), SwitchLimits::default()));
        assert_eq!(config.servers[0].name, "127.0.0.1:9001");
        assert_eq!(config.classes.len(), 1);
        assert_eq!(config.groups, [GroupSpec { policy: PolicyConfig::LeastConnections, servers: vec![0] }]);
        assert_eq!(config.servers[0].check, None);
    }

    #[test]
    fn a_time_without_a_unit_and_counters_in_the_way_of_clients_are_told() {
        let said = message(&format!("{SMALL}[timeouts]\nconnect = 5\n"));
        assert!(said.contains("connect: `5` has no unit; write 5s for seconds"), "{said}");
        let there = SMALL.replace(":0\"", ":8080\"\nmetrics = \"127.0.0.1:8080\"");
        assert!(message(&there).contains("s.toml:2: metrics: clients connect there"));
    }

    #[test]
    fn everything_that_can_be_said_is_taken() {
        let text = r#"
listen = ["127.0.0.1:0", "[::1]:0"]
workers = 2
pause-us = 0
name = "front"
policy = "cap"
metrics = "127.0.0.1:0"
access-log = { file = "a.log", format = "combined" }
trusted-proxies = ["10.0.0.0/8", "::1"]
retries = 1
state-interval = "1s"
[timeouts]
queue = "250ms"
[limits]
server-connections = 40
body-size = "1MB"
[health]
path = "/up"
status = [200, "300-304"]
[passive]
failures = 2
[[server]]
name = "a"
address = "127.0.0.1:9001"
weight = 2
slow-start = "10s"
health = { path = "/a" }
[[server]]
name = "b"
address = "127.0.0.1:9002"
connections = 7
backup = true
drain = true
health = false
[[class]]
name = "disk"
suffix = ".cgi"
servers = ["b", "a"]
[[class]]
name = "api"
prefix = "/api/"
header = ["X-Kind: a", "Accept"]
query = "v=2"
method = ["GET", "POST"]
policy = { name = "bounded-hash", bound = 1.5 }
[[class]]
name = "rest"
"#;
        let config = read("s.toml", text).expect("is right");
        assert_eq!((config.listen.len(), config.max_pause), (2, Duration::ZERO));
        assert_eq!(config.trusted[0].to_string(), "10.0.0.0/8");
        assert_eq!(config.limits.body_bytes, Some(1 << 20));
        let [a, b] = &config.servers[..] else { panic!("two servers") };
        assert_eq!((a.weight, a.connections, b.connections), (2.0, 40, 7));
        assert_eq!(
            a.check.as_ref().map(|check| (check.path.as_str(), check.statuses.len())),
            Some(("/a", 2))
        );
        assert!(b.is_backup && b.drains && b.check.is_none());
        assert_eq!(config.classes.iter().map(|class| class.group).collect::<Vec<_>>(), [0, 1, 0]);
        let PolicyConfig::Cap(cap) = &config.groups[0].policy else { panic!("CAP") };
        assert_eq!(cap.lists, [Some(vec![ServerId(1), ServerId(0)])], "in the order of the file");
        assert_eq!(config.groups[1].policy.name(), "bounded-hash");
        assert_eq!(config.classes[1].conditions.len(), 4);
    }

    #[test]
    fn a_file_with_too_many_servers_or_classes_is_read_no_further() {
        let server = "[[server]]\naddress = \"127.0.0.1:9\"\n";
        let classes = |name: &str, count| {
            (0..count).map(|n| format!("[[{name}]]\nname = \"n{n}\"\n")).collect::<String>()
        };
        let (listen, again) = ("listen = \"127.0.0.1:0\"\n", "name = \"n0\"\n");
        let many = classes("class", 1001).replace("\"\n", "\"\nprefix = \"/a\"\n");
        let text = format!("{listen}{server}{many}[[class]]\n{again}");
        assert!(message(&text).contains("there can be 1000 classes"), "{}", message(&text));
        let many = classes("server", 10_001).replace("\"\n", "\"\naddress = \"127.0.0.1:9\"\n");
        let text = format!("{listen}{many}{server}{again}");
        assert!(message(&text).contains("there can be 10000 servers"), "{}", message(&text));
    }

    #[test]
    fn mistakes_name_their_line_and_what_was_meant() {
        for (text, parts) in [
            ("lisen = \"a\"\n", vec!["s.toml:1", "did you mean `listen`"]),
            ("workers = 1\n", vec!["needs `listen`"]),
            ("listen = \"127.0.0.1\"\n", vec!["s.toml:1", "no address and port"]),
            ("listen = \"127.0.0.1:0\"\n", vec!["no [[server]]"]),
        ] {
            let message = message(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        for (more, part) in [
            ("[[server]]\naddress = \"127.0.0.1:9001\"\n", "two servers"),
            ("weight = 0\n", "s.toml:4"),
            ("[[class]]\nname = \"a\"\n[[class]]\nname = \"b\"\npath = \"/\"\n", "no request ever gets here"),
            ("[[class]]\nname = \"a\"\nservers = [\"127.0.0.1:9002\"]\n", "did you mean `127.0.0.1:9001`"),
            ("[[class]]\nname = \"a\"\npolicy = \"lrad\"\n", "did you mean `lard`"),
            ("[[class]]\nname = \"a\"\npolicy = \"ward\"\n", "core"),
            ("[[class]]\nname = \"a\"\npolicy = { name = \"rr\", bound = 2 }\n", "unknown field `bound`"),
            ("[health]\nstatus = \"fine\"\n", "no status"),
            ("[limits]\nhead-size = \"1MB\"\n", "65536"),
            ("[timeouts]\nqueue = \"5\"\n", "no unit"),
        ] {
            let message = message(&format!("{SMALL}{more}"));
            assert!(message.contains(part), "{more}: {message}");
        }
    }

    #[test]
    fn a_policy_of_state_learns_what_classes_need() {
        let text = format!(
            "policy = \"cap-state\"\n{SMALL}[[class]]\nname = \"a\"\npath = \"/\"\nneeds = {{ disk = 1 }}\n"
        );
        let config = read("s.toml", &text).expect("is right");
        let PolicyConfig::CapWithState(settings) = &config.groups[0].policy else { panic!("CAP with state") };
        assert_eq!(settings.profiles.len(), 2);
        assert_eq!((settings.profiles[0].disk, settings.profiles[1].processor), (1.0, 1.0));
    }
}
