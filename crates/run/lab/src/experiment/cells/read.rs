//! From the text of an experiment to an [`Experiment`]: what its fields mean, and what a list in place of a value makes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{topology, units};
use assay_base::settings::{Fields, Source, Value};

use assay_workload::model::HttpVersion;
use assay_workload::overrides::MOST_STREAMS;

use super::{Condition, Experiment, ExperimentError, Subject, WorkloadChoice};

/// Memory and disk of a subject that names none: those of `assay run`.
const USUAL_BYTES: u64 = 1 << 30;
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections rest for a minute; a little more, and all are gone.
const USUAL_COOL_DOWN: Duration = Duration::from_secs(70);
/// The most cells that one experiment may have.
const MOST_CELLS: usize = 100_000;
/// The only condition of an experiment that names none.
const PLAIN: &str = "plain";

const TOP: [&str; 16] = [
    "title",
    "workloads",
    "workload",
    "proxy",
    "condition",
    "repetitions",
    "seed",
    "rehearse",
    "scale-capacity",
    "timeout",
    "cool-down",
    "retries",
    "page-cache",
    "private-as-public",
    "require",
    "xact-log",
];
const WORKLOAD: [&str; 3] = ["name", "label", "rate"];
const PROXY: [&str; 7] = ["name", "label", "mode", "memory", "disk", "set", "cache"];
const CONDITION: [&str; 12] = [
    "label",
    "cpu-quota",
    "memory-limit",
    "proxy-cpus",
    "robot-link",
    "origin-link",
    "congestion",
    "tls",
    "robot-http",
    "origin-http",
    "streams",
    "priorities",
];

/// A value of an experiment that cannot be read.
#[derive(Debug, thiserror::Error)]
enum ValueError {
    #[error("`{0}` is neither \"drop\" nor \"keep\"")]
    PageCache(String),
    #[error("`{0}` is no leg that can speak TLS; write none, robots, origins or both")]
    Leg(String),
    #[error("HTTP/{0} is not spoken; write \"1.0\", \"1.1\" or \"2\"")]
    Http(String),
    #[error("`{0}` is no congestion control; write its name, like cubic, reno or bbr")]
    Congestion(String),
}

pub fn read(file: &str, name: &str, text: &str) -> Result<Experiment, ExperimentError> {
    let source = Source { file, text };
    let table = source.parse()?;
    let fields = Fields::whole(source, "an experiment", &table);
    fields.only(&TOP)?;
    let or = |key: &str, usual: u64, least, most| fields.get(key).map_or(Ok(usual), |v| v.whole(least, most));
    let flag = |key: &str| fields.get(key).map_or(Ok(false), |value| value.flag());
    let time = |key: &str| fields.get(key).map(|value| value.read(units::duration)).transpose();
    let experiment = Experiment {
        name: name.to_owned(),
        source: text.to_owned(),
        title: fields.get("title").map_or(Ok(""), |value| value.text())?.to_owned(),
        workloads: workloads(&fields)?,
        subjects: subjects(&fields)?,
        conditions: conditions(&fields)?,
        repetitions: or("repetitions", 1, 1, 1000)? as u32,
        seed: or("seed", 1, 0, u64::MAX)?,
        rehearse: time("rehearse")?,
        scale_capacity: flag("scale-capacity")?,
        timeout: time("timeout")?.unwrap_or(USUAL_TIMEOUT),
        cool_down: time("cool-down")?.unwrap_or(USUAL_COOL_DOWN),
        retries: or("retries", 1, 0, 100)? as u32,
        private_as_public: flag("private-as-public")?,
        drop_page_cache: fields.get("page-cache").map_or(Ok(true), |value| value.read(drops))?,
        requirements: texts(&fields, "require")?,
        xact_log: flag("xact-log")?,
    };
    let counts = [experiment.workloads.len(), experiment.subjects.len(), experiment.conditions.len()];
    let cells = counts.iter().product::<usize>().saturating_mul(experiment.repetitions as usize);
    if cells > MOST_CELLS {
        return Err(fields.wrong(&format!("it has {cells} cells, and {MOST_CELLS} are the most")));
    }
    Ok(experiment)
}

/// A list of texts; a field that is not there is an empty one.
fn texts(fields: &Fields<'_>, key: &str) -> Result<Vec<String>, ExperimentError> {
    let list = fields.get(key).map_or(Ok(Vec::new()), |value| value.list())?;
    list.into_iter().map(|value| value.text().map(str::to_owned)).collect()
}

fn drops(text: &str) -> Result<bool, ValueError> {
    match text {
        "drop" => Ok(true),
        "keep" => Ok(false),
        other => Err(ValueError::PageCache(other.to_owned())),
    }
}

fn workloads(fields: &Fields<'_>) -> Result<Vec<WorkloadChoice>, ExperimentError> {
    let mut labels = UniqueLabels::default();
    let mut found = Vec::new();
    for value in fields.get("workloads").map_or(Ok(Vec::new()), |value| value.list())? {
        let name = value.text()?.to_owned();
        labels.take(&name, |why| value.wrong(why))?;
        found.push(WorkloadChoice { label: name.clone(), workload: name, rate: 1.0 });
    }
    for table in fields.tables("workload", "[[workload]]", &WORKLOAD)? {
        let name = table.need("name", "a bundled workload, or a PGL file beside this one")?.text()?;
        let label = table.get("label").map_or(Ok(name), |value| value.text())?;
        for combination in product(&table, &["rate"])? {
            let rate = combination.values.first().map_or(Ok(1.0), |value| value.number(0.0, 1e6))?;
            let label = combination.label(label);
            labels.take(&label, |why| table.wrong(why))?;
            found.push(WorkloadChoice { label, workload: name.to_owned(), rate });
        }
    }
    if found.is_empty() {
        return Err(fields.wrong("it has no workload: name some, like workloads = [\"demo\"]"));
    }
    Ok(found)
}

fn subjects(fields: &Fields<'_>) -> Result<Vec<Subject>, ExperimentError> {
    let mut labels = UniqueLabels::default();
    let mut found = Vec::new();
    for table in fields.tables("proxy", "[[proxy]]", &PROXY)? {
        let proxy = table.need("name", "`builtin`, `direct` or a name from `assay proxies`")?.text()?;
        let label = table.get("label").map_or(Ok(proxy), |value| value.text())?;
        let caches =
            table.get("cache").map(|tables| topology::caches(&tables)).transpose()?.unwrap_or_default();
        for combination in product(&table, &["mode", "memory", "disk", "set"])? {
            let label = combination.label(label);
            labels.take(&label, |why| table.wrong(why))?;
            let mut subject = subject(label, proxy, &combination)?;
            if !caches.is_empty() {
                subject.written.insert("caches".into(), topology::in_words(&caches));
            }
            found.push(Subject { caches: caches.clone(), ..subject });
        }
    }
    match found.len() {
        0 => Err(fields.wrong("it has no proxy: add a [[proxy]] with a name")),
        _ => Ok(found),
    }
}

fn subject(label: String, proxy: &str, chosen: &Combination<'_>) -> Result<Subject, ExperimentError> {
    let mut subject = Subject {
        label,
        proxy: proxy.to_owned(),
        mode: None,
        memory_bytes: USUAL_BYTES,
        disk_bytes: USUAL_BYTES,
        set: BTreeMap::new(),
        caches: Vec::new(),
        written: chosen.written()?,
    };
    for value in &chosen.values {
        match value.key.as_str() {
            "memory" => subject.memory_bytes = value.read(units::size)?,
            "disk" => subject.disk_bytes = value.read(units::size)?,
            "mode" => subject.mode = Some(value.read(units::mode)?),
            _ => drop(subject.set.insert(value.key.clone(), value.plain()?)),
        }
    }
    Ok(subject)
}

fn conditions(fields: &Fields<'_>) -> Result<Vec<Condition>, ExperimentError> {
    let mut labels = UniqueLabels::default();
    let mut found = Vec::new();
    for table in fields.tables("condition", "[[condition]]", &CONDITION)? {
        let named = table.get("label").map(|value| value.text()).transpose()?;
        for combination in product(&table, &CONDITION[1..])? {
            let label = match named {
                Some(named) => combination.label(named),
                None => combination.all_in_words().unwrap_or_else(|| PLAIN.to_owned()),
            };
            labels.take(&label, |why| table.wrong(why))?;
            found.push(condition(label, &combination)?);
        }
    }
    if found.is_empty() {
        found.push(Condition { label: PLAIN.into(), ..Condition::default() });
    }
    Ok(found)
}

fn condition(label: String, chosen: &Combination<'_>) -> Result<Condition, ExperimentError> {
    let mut condition = Condition { label, written: chosen.written()?, ..Condition::default() };
    for value in &chosen.values {
        match value.key.as_str() {
            "cpu-quota" => condition.limits.cpus = Some(value.number(0.0, 4096.0)?),
            "memory-limit" => condition.limits.memory_bytes = Some(value.read(units::memory_limit)?),
            "proxy-cpus" => condition.proxy_cpus = value.read(units::cpus)?.0,
            "robot-link" => condition.robot_link = Some(value.read(units::link_choice)?),
            "origin-link" => condition.origin_link = Some(value.read(units::link_choice)?),
            "tls" => {
                let (robots, origins) = value.read(tls)?;
                (condition.robot_tls, condition.origin_tls) = (Some(robots), Some(origins));
            }
            "robot-http" => condition.robot_http = Some(value.read(http)?),
            "origin-http" => condition.origin_http = Some(value.read(http)?),
            "streams" => condition.streams = Some(value.whole(1, u64::from(MOST_STREAMS))? as u32),
            "priorities" => condition.priorities = value.flag()?,
            _ => condition.congestion = Some(value.read(algorithm)?),
        }
    }
    Ok(condition)
}

/// On which legs TLS is spoken: that of robots, and that of origins.
fn tls(text: &str) -> Result<(bool, bool), ValueError> {
    Ok(match text {
        "none" => (false, false),
        "robots" => (true, false),
        "origins" => (false, true),
        "both" => (true, true),
        _ => return Err(ValueError::Leg(text.to_owned())),
    })
}

/// A version of HTTP.
fn http(text: &str) -> Result<HttpVersion, ValueError> {
    let versions = [HttpVersion::Http10, HttpVersion::Http11, HttpVersion::Http2];
    let found = versions.into_iter().find(|version| version.name() == text);
    found.ok_or_else(|| ValueError::Http(text.to_owned()))
}

/// The name of a congestion control; whether the kernel has it is found out where the experiment is run.
fn algorithm(text: &str) -> Result<String, ValueError> {
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    is_name.then(|| text.to_owned()).ok_or_else(|| ValueError::Congestion(text.to_owned()))
}

/// Labels that are taken: each must mean one thing.
#[derive(Default)]
struct UniqueLabels(Vec<String>);

impl UniqueLabels {
    fn take(&mut self, label: &str, wrong: impl Fn(&str) -> ExperimentError) -> Result<(), ExperimentError> {
        if label.trim().is_empty() || label.contains(char::is_control) {
            return Err(wrong("a label is a few words on one line"));
        }
        if self.0.iter().any(|taken| taken == label) {
            return Err(wrong(&format!("`{label}` is there twice; give each a `label` of its own")));
        }
        self.0.push(label.to_owned());
        Ok(())
    }
}

/// One choice of each field that may be a list.
struct Combination<'a> {
    values: Vec<Value<'a>>,
    /// Whether each of them was a list.
    swept: Vec<bool>,
}

impl Combination<'_> {
    /// A label that says what was chosen from lists.
    fn label(&self, label: &str) -> String {
        let swept = self.values.iter().zip(&self.swept).filter(|(_, swept)| **swept);
        match self.words(swept.map(|(value, _)| value)) {
            Some(words) => format!("{label}, {words}"),
            None => label.to_owned(),
        }
    }

    fn all_in_words(&self) -> Option<String> {
        self.words(self.values.iter())
    }

    fn words<'v>(&'v self, values: impl Iterator<Item = &'v Value<'v>>) -> Option<String> {
        let words: Vec<String> =
            values.map(|value| format!("{} {}", value.key, value.plain().unwrap_or_default())).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Choices by name, as written.
    fn written(&self) -> Result<BTreeMap<String, String>, ExperimentError> {
        self.values.iter().map(|value| Ok((value.key.clone(), value.plain()?))).collect()
    }
}

/// Every combination of a table's fields, of which each may be a list; those of `set` count as fields. The last varies
/// first.
fn product<'a>(table: &Fields<'a>, names: &[&str]) -> Result<Vec<Combination<'a>>, ExperimentError> {
    let mut axes: Vec<(bool, Vec<Value<'a>>)> = Vec::new();
    for value in table.all().into_iter().filter(|value| names.contains(&value.key.as_str())) {
        let inner = if value.key == "set" { value.fields("set")?.all() } else { vec![value] };
        for value in inner {
            if names.contains(&value.key.as_str()) && value.key != "set" && axes_have(&axes, &value.key) {
                return Err(value.wrong("it is set beside `set` already"));
            }
            let values = value.list()?;
            axes.push((values.len() > 1, values));
        }
    }
    let mut all = vec![Combination { values: Vec::new(), swept: Vec::new() }];
    for (swept, values) in &axes {
        if all.len().saturating_mul(values.len()) > MOST_CELLS {
            return Err(table.wrong("its lists make too many combinations"));
        }
        let extend = |before: &Combination<'a>| {
            let with = |value: &Value<'a>| Combination {
                values: before.values.iter().chain([value]).cloned().collect(),
                swept: before.swept.iter().chain([swept]).copied().collect(),
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    Ok(all)
}

fn axes_have(axes: &[(bool, Vec<Value<'_>>)], key: &str) -> bool {
    axes.iter().any(|(_, values)| values.iter().any(|value| value.key == key))
}

#[cfg(test)]
mod tests {
    use crate::cgroup::Limits;
    use crate::mode::Mode;

    use super::*;

    const GOOD: &str = r#"title = "Which one?"
workloads = ["demo", "mine.pg"]
repetitions = 3
rehearse = "30s"

[[workload]]
name = "image"
rate = [0.5, 2]

[[proxy]]
name = "varnish"
memory = ["64MB", "128MB"]
disk = "0"
set = { ttl = [0, 60], policy = "lru" }

[[proxy]]
name = "squid"
label = "Squid, forward"
mode = "forward"

[[condition]]
cpu-quota = [0.5, 1]
memory-limit = "512MB"

[[condition]]
label = "free"
tls = "robots"
robot-http = "2"
robot-link = "delay=40ms,loss=0.05%"
proxy-cpus = "0,2-3"
streams = 10
priorities = true
"#;

    fn good() -> Experiment {
        read("x.toml", "x", GOOD).unwrap()
    }

    fn error(text: &str) -> String {
        read("x.toml", "x", text).unwrap_err().to_string()
    }

    #[test]
    fn a_list_makes_one_of_each() {
        let labels: Vec<_> = good().subjects.into_iter().map(|subject| subject.label).collect();
        let expected = [
            "varnish, memory 64MB, ttl 0",
            "varnish, memory 64MB, ttl 60",
            "varnish, memory 128MB, ttl 0",
            "varnish, memory 128MB, ttl 60",
            "Squid, forward",
        ];
        assert_eq!(labels, expected);
        let labels: Vec<_> = good().workloads.into_iter().map(|w| (w.label, w.rate)).collect();
        let expected = [("demo", 1.0), ("mine.pg", 1.0), ("image, rate 0.5", 0.5), ("image, rate 2", 2.0)];
        assert_eq!(labels, expected.map(|(label, rate)| (label.to_owned(), rate)));
        let labels: Vec<_> = good().conditions.into_iter().map(|condition| condition.label).collect();
        let expected = ["cpu-quota 0.5, memory-limit 512MB", "cpu-quota 1, memory-limit 512MB", "free"];
        assert_eq!(labels, expected);
    }

    #[test]
    fn values_are_read_and_kept_as_written() {
        let experiment = good();
        let subject = experiment.subject("varnish, memory 128MB, ttl 60").unwrap();
        assert_eq!((subject.memory_bytes, subject.disk_bytes, subject.mode), (128 << 20, 0, None));
        assert_eq!((subject.set["ttl"].as_str(), subject.set["policy"].as_str()), ("60", "lru"));
        assert_eq!(subject.written["memory"], "128MB");
        assert_eq!(experiment.subject("Squid, forward").unwrap().mode, Some(Mode::Forward));
        let condition = experiment.condition("cpu-quota 0.5, memory-limit 512MB").unwrap();
        assert_eq!(condition.limits, Limits { cpus: Some(0.5), memory_bytes: Some(512 << 20) });
        assert_eq!(experiment.condition("free").unwrap().proxy_cpus, [0, 2, 3]);
        let free = experiment.condition("free").unwrap();
        assert_eq!((free.robot_tls, free.origin_tls), (Some(true), Some(false)));
        assert_eq!((free.robot_http, free.origin_http), (Some(HttpVersion::Http2), None));
        assert_eq!((free.streams, free.priorities), (Some(10), true));
        assert_eq!(
            experiment.condition("free").unwrap().robot_link,
            units::link_choice("delay=40ms,loss=0.05%").ok()
        );
        assert_eq!((experiment.repetitions, experiment.rehearse), (3, Some(Duration::from_secs(30))));
        assert!(experiment.drop_page_cache && experiment.retries == 1 && experiment.seed == 1);
    }

    #[test]
    fn a_subject_may_be_several_caches_and_what_is_swept_is_swept_for_all_of_them() {
        let text = "workloads = [\"demo\"]\n[[proxy]]\nname = \"squid\"\nlabel = \"2SY\"\ndisk = [\"16MB\", \"32MB\"]\n\
                    [[proxy.cache]]\nname = \"y\"\ncount = 2\nsiblings = [\"y\"]\n";
        let experiment = read("x.toml", "x", text).unwrap();
        let labels: Vec<&str> = experiment.subjects.iter().map(|subject| subject.label.as_str()).collect();
        assert_eq!(labels, ["2SY, disk 16MB", "2SY, disk 32MB"]);
        let topology = experiment.subjects[1].topology().unwrap();
        assert_eq!((topology.usual.disk_bytes, topology.caches[0].count), (32 << 20, 2));
        let error = error(&text.replace("siblings", "sibling"));
        assert!(error.contains("x.toml:9: unknown field `sibling`; did you mean `siblings`?"), "{error}");
    }

    #[test]
    fn an_experiment_that_names_no_condition_has_the_plain_one() {
        let experiment =
            read("x.toml", "x", "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n").unwrap();
        assert_eq!(experiment.conditions.len(), 1);
        assert_eq!(experiment.conditions[0].label, "plain");
    }

    #[test]
    fn a_mistake_names_its_line_what_was_read_and_what_is_expected() {
        for (from, to, words) in [
            (
                "memory = [",
                "memroy = [",
                "x.toml:12: unknown field `memroy`; did you mean `memory`?\n   12 | memroy",
            ),
            ("\"64MB\"", "\"64\"", "x.toml:12: memory: `64` has no unit; write 64MB"),
            (
                "\"64MB\"",
                "64",
                "memory: `64` has no unit; write 64MB for megabytes or 64B for bytes, in quotes",
            ),
            ("= 3\n", "= 0\n", "x.toml:3: repetitions: `0` is not an integer from 1 to 1000"),
            ("\"30s\"", "\"30\"", "x.toml:4: rehearse: `30` has no unit"),
            ("\"forward\"", "\"foward\"", "did you mean \"forward\"?"),
            ("cpu-quota = [0.5, 1]", "cpu-quota = -1", "cpu-quota: `-1` is not a number above 0"),
            ("\"512MB\"", "\"1MB\"", "no proxy starts in `1MB`; give it at least 16MB"),
            ("name = \"squid\"\n", "", "x.toml:16: [[proxy]] needs `name`"),
            ("[0, 60]", "[0, 0]", "`varnish, memory 64MB, ttl 0` is there twice"),
            ("\"demo\"", "\"mine.pg\"", "`mine.pg` is there twice"),
            ("[0, 60]", "[]", "ttl: the list is empty"),
            ("delay=40ms", "dealy=40ms", "x.toml:29: robot-link: "),
            ("proxy-cpus = \"0,2-3\"", "congestion = \"a b\"", "x.toml:30: congestion: `a b` is no"),
            ("title =", "title", "x.toml:1: "),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = error(&GOOD.replacen(from, to, 1));
            assert!(error.contains(words), "{words} is not in: {error}");
        }
        assert!(error("workloads = [\"demo\"]").contains("it has no proxy"));
        assert!(error("[[proxy]]\nname = \"builtin\"").contains("it has no workload"));
    }

    proptest::proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0usize..GOOD.len(), with in "[ -~]{0,3}") {
            let mut text = GOOD.to_owned();
            text.replace_range(at..at + 1, &with);
            let _ = read("x.toml", "x", &text);
        }
    }
}
