//! In what the runs of the subjects differ, and whether they can be compared at all.
//!
//! What is the same for all is left out. A difference is one of three: it makes a comparison meaningless (they did not
//! get the same requests), it could have shaped the numbers beside what is compared (another kernel), or it is what is compared
//! (another proxy).

use std::collections::{BTreeMap, BTreeSet};

use assay_record::run::{OverridesInfo, PhaseInfo, RunInfo, TlsInfo};

use super::document::{SettingDifference, Subject, Weight};
use crate::format;

/// Values that a cell of the table shows at most.
const SHOWN: usize = 3;
/// Characters of a digest that tell it apart.
const DIGEST_SHOWN: usize = 12;

/// The requests of a run. Runs with other requests are not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Version and digest.
    stream: (u32, String),
    files: String,
    schedule: String,
    private_as_public: bool,
}

impl RequestIdentity {
    pub fn from_run(head: &RunInfo) -> Self {
        Self {
            stream: (head.stream().0, head.stream_digest.clone()),
            files: files(head),
            schedule: schedule(head),
            private_as_public: head.workload.private_as_public,
        }
    }

    /// First difference between the requests of two runs; none: they are the same.
    pub fn difference_from(&self, other: &Self) -> Option<&'static str> {
        if self.stream.0 != other.stream.0 {
            Some("their streams are of different versions: one of them was made by another Assay")
        } else if self.stream != other.stream {
            Some("they were sent other streams of requests")
        } else if self.schedule != other.schedule {
            Some("their schedules differ")
        } else if self.files != other.files {
            Some("their workloads differ")
        } else if self.private_as_public != other.private_as_public {
            Some("private objects were public in one of them")
        } else {
            None
        }
    }
}

fn files(head: &RunInfo) -> String {
    let digests: Vec<&str> = head.workload.sources.iter().map(|(_, digest)| digest.as_str()).collect();
    digests.join(" ")
}

fn schedule(head: &RunInfo) -> String {
    let phase = |phase: &PhaseInfo| {
        let planned = (phase.planned_start_ms, phase.planned_end_ms);
        format!("{} {} {:?} {:?} {planned:?}", phase.name, phase.goal, phase.load, phase.recurrence)
    };
    head.phases.iter().map(phase).collect::<Vec<_>>().join("; ")
}

/// The head of a run, and whose it is.
pub struct RunHead {
    /// Place of its subject in the experiment's list.
    pub subject: usize,
    pub workload: String,
    pub info: RunInfo,
}

/// Reads the value of a run; none: not set.
type ReadSetting = Box<dyn Fn(&RunInfo) -> Option<String>>;

/// One thing in which runs can differ.
struct SettingRow {
    name: String,
    weight: Weight,
    read: ReadSetting,
    /// Belongs to a workload, and is compared only within it.
    by_workload: bool,
}

fn row(name: &str, weight: Weight, read: impl Fn(&RunInfo) -> Option<String> + 'static) -> SettingRow {
    SettingRow { name: name.to_owned(), weight, read: Box::new(read), by_workload: false }
}

fn workload_row(
    name: &str,
    weight: Weight,
    read: impl Fn(&RunInfo) -> Option<String> + 'static,
) -> SettingRow {
    SettingRow { by_workload: true, ..row(name, weight, read) }
}

/// Setting of the command line, else of the workload.
fn override_row(name: &str, read: impl Fn(&OverridesInfo) -> Option<String> + 'static) -> SettingRow {
    row(name, Weight::Matters, move |head| {
        let decided = head.workload.overrides.as_ref().and_then(&read);
        Some(decided.unwrap_or_else(|| "as the workload says".to_owned()))
    })
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The differences between subjects. What makes the comparison meaningless comes first, then what is compared.
pub fn differences(heads: &[RunHead], subjects: &[Subject]) -> Vec<SettingDifference> {
    let mut found: Vec<SettingDifference> = requested_rows()
        .iter()
        .filter_map(|row| differing(row, heads, subjects.len()))
        .chain(target_differences(heads, subjects))
        .chain(environment_rows(heads).iter().filter_map(|row| differing(row, heads, subjects.len())))
        .collect();
    found.sort_by_key(|difference| difference.weight != Weight::Meaningless);
    found
}

fn requested_rows() -> Vec<SettingRow> {
    use Weight::{Matters, Meaningless};
    vec![
        row("workload", Meaningless, |head| non_empty(&head.workload.name)),
        workload_row("workload files", Meaningless, |head| non_empty(&digests_shown(head))),
        workload_row("stream digest", Meaningless, |head| non_empty(shortened(&head.stream_digest))),
        workload_row("stream version", Meaningless, |head| Some(head.stream().0.to_string())),
        workload_row("phases", Meaningless, |head| Some(phases_shown(head))),
        workload_row("duration, planned", Meaningless, planned_duration),
        workload_row("rehearsed by", Meaningless, |head| {
            head.workload.scale.map(|scale| format!("× {}", format::number(scale)))
        }),
        workload_row("rate that was set", Meaningless, |head| {
            let rate = head.workload.overrides.as_ref()?.rate_per_s?;
            Some(format!("{}/s", format::number(rate)))
        }),
        workload_row("private objects", Meaningless, |head| {
            head.workload.private_as_public.then(|| "taken for public".to_owned())
        }),
        workload_row("seed", Matters, |head| Some(head.seed.to_string())),
        workload_row("robots", Matters, |head| Some(format::count(head.workload.robots.into()))),
        workload_row("origins", Matters, |head| Some(format::count(head.workload.origins.into()))),
    ]
}

fn digests_shown(head: &RunInfo) -> String {
    let file = |(path, digest): &(String, String)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        format!("{name} {}", shortened(digest))
    };
    head.workload.sources.iter().map(file).collect::<Vec<_>>().join(" ")
}

fn shortened(digest: &str) -> &str {
    digest.char_indices().nth(DIGEST_SHOWN).map_or(digest, |(end, _)| &digest[..end])
}

fn phases_shown(head: &RunInfo) -> String {
    let phase = |phase: &PhaseInfo| match phase.goal.as_str() {
        "" => phase.name.clone(),
        goal => format!("{} {goal}", phase.name),
    };
    head.phases.iter().map(phase).collect::<Vec<_>>().join(", ")
}

fn planned_duration(head: &RunInfo) -> Option<String> {
    let end_ms = head.phases.iter().filter_map(|phase| phase.planned_end_ms).max()?;
    Some(format::duration_s(end_ms as f64 / 1000.0))
}

/// Differences between the targets: the subjects' own settings first, since those of an experiment are what its
/// author wrote.
fn target_differences(heads: &[RunHead], subjects: &[Subject]) -> Vec<SettingDifference> {
    let by = |read: &dyn Fn(&Subject) -> Option<String>| subjects.iter().map(read).collect::<Vec<_>>();
    let mut rows = vec![
        ("proxy".to_owned(), by(&|subject| Some(subject.proxy.clone()))),
        ("version".to_owned(), by(&|subject| non_empty(&subject.versions.join(", ")))),
    ];
    let names: BTreeSet<&String> = subjects.iter().flat_map(|subject| subject.settings.keys()).collect();
    for name in &names {
        rows.push(((*name).clone(), by(&|subject| subject.settings.get(*name).cloned())));
    }
    let mut found: Vec<SettingDifference> = rows
        .into_iter()
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .map(|(name, values)| SettingDifference { name, values, weight: Weight::Compared })
        .collect();
    let mut given = vec![
        row("mode", Weight::Compared, |head| non_empty(&head.target.mode)),
        row("memory given", Weight::Compared, |head| head.target.memory_bytes.map(format::bytes)),
        row("disk given", Weight::Compared, |head| head.target.disk_bytes.map(format::bytes)),
    ];
    given.retain(|row| !names.iter().any(|name| row.name == format!("{name} given")));
    found.extend(given.iter().filter_map(|row| differing(row, heads, subjects.len())));
    found
}

/// Settings that could have shaped the numbers beside what is compared.
fn environment_rows(heads: &[RunHead]) -> Vec<SettingRow> {
    use Weight::Matters;
    let limit = |read: fn(&assay_record::run::LimitsInfo) -> Option<String>| {
        move |head: &RunInfo| head.limits.as_ref().and_then(read)
    };
    let mut rows = vec![
        row(
            "cpu quota",
            Matters,
            limit(|limits| limits.cpu_quota.map(|quota| format!("{quota} processors"))),
        ),
        row("memory limit", Matters, limit(|limits| limits.memory_bytes.map(format::bytes))),
        row("proxy’s processors", Matters, |head| cpus(head, "proxy")),
        row("robots’ processors", Matters, |head| cpus(head, "robots")),
        row("origins’ processors", Matters, |head| cpus(head, "origins")),
        row("congestion control", Matters, |head| {
            head.bed.as_ref().map(|bed| bed.congestion_control.clone())
        }),
        row("TLS", Matters, |head| {
            let spoken = |tls: &TlsInfo| format!("{} ({}, {})", tls.legs(), tls.versions, tls.key);
            Some(head.tls.as_ref().map_or_else(|| "none".to_owned(), spoken))
        }),
        row("TLS sessions resumed", Matters, |head| {
            head.tls.as_ref().map(|tls| format!("{} %", format::number(tls.resumption * 100.0)))
        }),
        row("cipher suites", Matters, |head| {
            let named =
                |tls: &TlsInfo| non_empty(&tls.ciphers.join(", ")).unwrap_or_else(|| "all".to_owned());
            head.tls.as_ref().map(named)
        }),
        override_row("HTTP of robots", |overrides| overrides.robot_http.clone()),
        override_row("HTTP of origins", |overrides| overrides.origin_http.clone()),
        override_row("streams of a best-effort robot", |overrides| {
            overrides.streams.map(|streams| streams.to_string())
        }),
        override_row("urgency", |overrides| overrides.priorities.then(|| "stated".to_owned())),
        row("machine", Matters, |head| non_empty(&head.host.cpu_model)),
        row("processors", Matters, |head| Some(head.host.cpus.to_string())),
        row("machine’s memory", Matters, |head| Some(format::bytes(head.host.memory_bytes))),
        row("kernel", Matters, |head| non_empty(&head.host.kernel)),
        row("descriptor limit", Matters, |head| Some(format::count(head.host.descriptor_limit))),
        row("Assay’s version", Matters, |head| non_empty(&head.assay_version)),
    ];
    let links: BTreeSet<&String> = heads
        .iter()
        .filter_map(|head| head.info.bed.as_ref())
        .flat_map(|bed| &bed.links)
        .map(|link| &link.name)
        .collect();
    for name in links {
        let wanted = name.clone();
        rows.push(row(&format!("link {name}"), Matters, move |head| {
            let link = head.bed.as_ref()?.links.iter().find(|link| link.name == wanted)?;
            Some(format!("{} ({})", link.settings, link.carried_by))
        }));
    }
    let names: BTreeSet<&String> = heads.iter().flat_map(|head| head.info.host.settings.keys()).collect();
    for name in names {
        let wanted = name.clone();
        rows.push(row(name, Matters, move |head| head.host.settings.get(&wanted).cloned()));
    }
    rows
}

fn cpus(head: &RunInfo, role: &str) -> Option<String> {
    let placed = head.placement.iter().find(|placed| placed.role == role)?;
    let cpus: Vec<String> = placed.cpus.iter().map(u32::to_string).collect();
    Some(if cpus.is_empty() { "any".to_owned() } else { cpus.join(", ") })
}

/// A row of the table; none: all subjects are alike in it.
fn differing(row: &SettingRow, heads: &[RunHead], subjects: usize) -> Option<SettingDifference> {
    let several = heads.iter().map(|head| &head.workload).collect::<BTreeSet<_>>().len() > 1;
    let of = |subject: usize| -> BTreeMap<&str, BTreeSet<String>> {
        let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for head in heads.iter().filter(|head| head.subject == subject) {
            let workload = if row.by_workload { head.workload.as_str() } else { "" };
            values.entry(workload).or_default().extend((row.read)(&head.info));
        }
        values
    };
    let found: Vec<_> = (0..subjects).map(of).collect();
    // A subject of which nothing is known differs in nothing.
    let mut known = found.iter().filter(|values| !values.is_empty());
    let first = known.next()?;
    // A workload that only some subjects ran is told by its name.
    let alike = |values: &BTreeMap<&str, BTreeSet<String>>| {
        values.iter().all(|(workload, said)| first.get(workload).is_none_or(|other| other == said))
    };
    if known.all(alike) {
        return None;
    }
    let words = |values: &BTreeMap<&str, BTreeSet<String>>| {
        let parts: Vec<String> = values
            .iter()
            .filter(|(_, said)| !said.is_empty())
            .map(|(workload, said)| match several && row.by_workload {
                true => format!("{workload}: {}", joined(said)),
                false => joined(said),
            })
            .collect();
        non_empty(&parts.join("; "))
    };
    Some(SettingDifference {
        name: row.name.clone(),
        values: found.iter().map(words).collect(),
        weight: row.weight,
    })
}

fn joined(values: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = values.iter().take(SHOWN).map(String::as_str).collect();
    let more = values.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use assay_record::run::WorkloadInfo;

    use super::*;

    fn head(subject: usize, change: impl Fn(&mut RunInfo)) -> RunHead {
        let mut info = RunInfo {
            stream_digest: "0123456789abcdef".into(),
            workload: WorkloadInfo {
                name: "image".into(),
                sources: vec![("image.pg".into(), "aa".into())],
                ..WorkloadInfo::default()
            },
            phases: vec![PhaseInfo {
                name: "top1".into(),
                goal: "60 s".into(),
                planned_end_ms: Some(60_000),
                ..PhaseInfo::default()
            }],
            ..RunInfo::default()
        };
        change(&mut info);
        RunHead { subject, workload: info.workload.name.clone(), info }
    }

    fn named(heads: &[RunHead]) -> Vec<(String, Weight)> {
        let subjects = vec![Subject::default(); 2];
        differences(heads, &subjects).into_iter().map(|row| (row.name, row.weight)).collect()
    }

    #[test]
    fn what_is_alike_is_left_out_and_what_makes_it_meaningless_comes_first() {
        assert!(named(&[head(0, |_| ()), head(1, |_| ())]).is_empty());
        let other = head(1, |info| {
            info.host.kernel = "6.9".into();
            info.stream_digest = "fedcba9876543210".into();
            info.phases[0].planned_end_ms = Some(30_000);
        });
        let found = named(&[head(0, |_| ()), other]);
        let expected = [
            ("stream digest", Weight::Meaningless),
            ("duration, planned", Weight::Meaningless),
            ("kernel", Weight::Matters),
        ];
        assert_eq!(found, expected.map(|(name, weight)| (name.to_owned(), weight)));
    }

    #[test]
    fn how_robots_and_origins_spoke_is_told_where_it_differs() {
        let decided = |decide: fn(&mut OverridesInfo)| {
            let decided = head(1, |info| decide(info.workload.overrides.get_or_insert_default()));
            named(&[head(0, |_| ()), decided]).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(decided(|overrides| overrides.robot_http = Some("2".into())), ["HTTP of robots"]);
        assert_eq!(decided(|overrides| overrides.origin_http = Some("1.0".into())), ["HTTP of origins"]);
        assert_eq!(decided(|overrides| overrides.streams = Some(4)), ["streams of a best-effort robot"]);
        assert_eq!(decided(|overrides| overrides.priorities = true), ["urgency"]);
        let tls = |resumption| TlsInfo { robots: true, resumption, ..TlsInfo::default() };
        let resumed = |subject, resumption| head(subject, move |info| info.tls = Some(tls(resumption)));
        let found = named(&[resumed(0, 1.0), resumed(1, 0.0)]);
        assert_eq!(found, [("TLS sessions resumed".to_owned(), Weight::Matters)]);
    }

    #[test]
    fn runs_with_different_requests_say_what_differs() {
        let one = RequestIdentity::from_run(&head(0, |_| ()).info);
        let differs =
            |change: fn(&mut RunInfo)| one.difference_from(&RequestIdentity::from_run(&head(1, change).info));
        assert_eq!(differs(|_| ()), None);
        assert!(differs(|info| info.stream_digest.clear()).unwrap().contains("streams"));
        assert!(differs(|info| info.stream_version = 2).unwrap().contains("versions"));
        assert!(differs(|info| info.workload.sources[0].1 = "bb".into()).unwrap().contains("workloads"));
        assert!(differs(|info| info.phases[0].goal = "30 s".into()).unwrap().contains("schedules"));
        assert_eq!(
            differs(|info| info.workload.sources[0].0 = "elsewhere.pg".into()),
            None,
            "a file that moved"
        );
    }

    #[test]
    fn subjects_that_ran_more_seeds_differ_in_that_and_a_subject_without_runs_in_nothing() {
        let seed = |subject, seed| head(subject, move |info| info.seed = seed);
        let heads = [seed(0, 1), seed(0, 2), seed(1, 1)];
        let found = differences(&heads, &vec![Subject::default(); 2]);
        assert_eq!(found[0].values, [Some("1, 2".to_owned()), Some("1".to_owned())]);
        assert!(named(&[head(0, |_| ())]).is_empty());
    }
}
