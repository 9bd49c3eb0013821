//! Warnings about workloads that compile, but can hardly be meant.

use std::time::Duration;

use assay_workload::model::{Goal, Pace, Phase, Ramp, RobotGroup, Schedule, WorkingSet};

use super::Builder;
use super::robots::positive;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::{Registrations, UnusedObject};
use crate::schema::{RecordKind, Support};
use crate::source::Span;

/// A phase that needs longer than this to fill a cache is taken for a mistake.
const LONGEST_FILL_S: f64 = 30.0 * 86_400.0;

/// Use of a content type by robots.
#[derive(Clone, Copy, Default)]
struct ContentUse {
    requested: bool,
    /// Embedded in a page that is requested.
    embedded: bool,
}

impl Builder<'_> {
    /// Runs all lints, on a workload without errors.
    pub(super) fn lint(&mut self, schedule: &Schedule, registrations: &Registrations) {
        self.lint_contents();
        self.lint_rates(schedule);
        for (phase, (_, span)) in schedule.phases.iter().zip(&registrations.scheduled) {
            self.lint_phase(phase, schedule, *span);
        }
        self.lint_working_set(schedule, registrations);
        self.lint_unused(registrations);
    }

    /// Servers that no robot uses, and content types that no robot requests.
    fn lint_contents(&mut self) {
        let mut requested = vec![ContentUse::default(); self.contents.len()];
        let mut servers = vec![false; self.servers.len()];
        for group in &self.robots {
            let traced = self.foreign.iter().map(|url| url.origin).filter(|_| group.foreign_share > 0.0);
            for origin in positive(&group.origins).chain(traced) {
                let Some(origin) = self.origins.get(usize::from(origin)) else { continue };
                if let Some(seen) = servers.get_mut(usize::from(origin.server)) {
                    *seen = true;
                }
            }
            self.mark_requested(group, &mut requested);
        }
        for (index, _) in servers.iter().enumerate().filter(|(_, seen)| !**seen) {
            let (Some(server), Some(place)) = (self.servers.get(index), self.server_spans.get(index)) else {
                continue;
            };
            let message = format!("no robot sends requests to the servers `{}`", server.kind);
            self.diagnostics.add(
                Diagnostic::warning(Code::Unused, *place, message)
                    .label("they are not among anybody's `origins`"),
            );
            // The warning about the server covers its content types.
            for content in positive(&server.contents) {
                if let Some(requested) = requested.get_mut(usize::from(content)) {
                    requested.requested = true;
                }
            }
        }
        for (index, requested) in requested.iter().enumerate().filter(|(_, requested)| !requested.requested) {
            let (Some(content), Some(place)) = (self.contents.get(index), self.content_spans.get(index))
            else {
                continue;
            };
            let (label, help) = if requested.embedded {
                (
                    "it is in pages only, and no robot fetches what is in pages",
                    "set `embed_recur` of the robots",
                )
            } else {
                (
                    "it is neither among the types for direct access, nor in a page",
                    "list it in `direct_access`, or in `may_contain` of a page that is requested",
                )
            };
            self.diagnostics.add(
                Diagnostic::warning(
                    Code::NeverRequested,
                    *place,
                    format!("the content type `{}` can never be requested", content.kind),
                )
                .label(label)
                .help(help),
            );
        }
    }

    /// Marks the content types that a group of robots requests.
    fn mark_requested(&self, group: &RobotGroup, requested: &mut [ContentUse]) {
        let mut servers: Vec<u16> = positive(&group.origins)
            .filter_map(|origin| self.origins.get(usize::from(origin)))
            .map(|origin| origin.server)
            .collect();
        servers.sort_unstable();
        servers.dedup();
        let direct = servers.into_iter().filter_map(|server| self.servers.get(usize::from(server)));
        let bodies = positive(&group.post_contents).chain(positive(&group.put_contents));
        let mut open: Vec<u16> =
            direct.flat_map(|server| positive(&server.direct_access)).chain(bodies).collect();
        let follows = group.embedded_recurrence > 0.0;
        while let Some(content) = open.pop() {
            let index = usize::from(content);
            if requested
                .get_mut(index)
                .is_none_or(|requested| std::mem::replace(&mut requested.requested, true))
            {
                continue;
            }
            let embedded = self.contents.get(index).and_then(|content| content.embedded.as_ref());
            for inner in embedded.into_iter().flat_map(|embedded| positive(&embedded.contents)) {
                if let Some(requested) = requested.get_mut(usize::from(inner)) {
                    requested.embedded = true;
                }
                if follows {
                    open.push(inner);
                }
            }
        }
    }

    /// Rates that the connections of a robot cannot carry: by Little's law, requests under way are rate times time.
    fn lint_rates(&mut self, schedule: &Schedule) {
        let highest = |factor: fn(&Phase) -> Ramp| {
            schedule.phases.iter().map(factor).map(|ramp| ramp.begin.max(ramp.end)).fold(0.0, f64::max)
        };
        let load = if schedule.phases.is_empty() { 1.0 } else { highest(|phase| phase.load) };
        let mut warnings = Vec::new();
        for (group, spans) in self.robots.iter().zip(&self.robot_spans) {
            let (Some(rate), Some(limit)) = (group.pace.per_second(), group.open_connection_limit) else {
                continue;
            };
            // Assumes that every revisit is a hit that takes no time, so as to warn only about certain cases.
            let misses = 1.0 - group.recurrence;
            let needed = rate * load * misses * self.mean_think_s(group);
            if needed > f64::from(limit) {
                warnings.push(
                    Diagnostic::warning(
                        Code::RateTooHigh,
                        spans.group,
                        format!("the robots `{}` cannot keep up their rate", group.kind),
                    )
                    .label(format!(
                        "each needs {needed:.1} connections while servers think, and `open_conn_lmt` is {limit}"
                    ))
                    .help("raise `open_conn_lmt`, or use more robots with a lower `req_rate`"),
                );
            }
        }
        warnings.into_iter().for_each(|warning| self.diagnostics.add(warning));
    }

    /// Mean think time, in seconds, of the servers that a group uses.
    fn mean_think_s(&self, group: &RobotGroup) -> f64 {
        let think = |origin: u16| {
            let origin = self.origins.get(usize::from(origin))?;
            let server = self.servers.get(usize::from(origin.server))?;
            let late = server.faults.slow_start_share * server.faults.slow_start_s.mean();
            Some(server.think_s.as_ref().map_or(0.0, assay_workload::model::Distribution::mean) + late)
        };
        group.origins.items().iter().filter_map(|(origin, weight)| Some(think(*origin)? * weight)).sum()
    }

    /// Phases that cannot end, and fills that take too long.
    fn lint_phase(&mut self, phase: &Phase, schedule: &Schedule, span: Span) {
        let name = &phase.name;
        if let Some((why, help)) = self.endless_reason(phase, schedule) {
            self.diagnostics.add(
                Diagnostic::warning(Code::Endless, span, format!("the phase `{name}` never ends"))
                    .label(why)
                    .help(help),
            );
            return;
        }
        if phase.log_stats && !is_scripted(phase) && self.is_silent(phase) {
            self.diagnostics.add(
                Diagnostic::warning(Code::Schedule, span, format!("the phase `{name}` sends nothing"))
                    .label("its load is 0 from beginning to end, and its numbers are among the results")
                    .help(
                        "raise `load_factor_beg`, or leave a pause out of the results with `log_stats = no`",
                    ),
            );
        }
        let alone = phase.goal.duration.is_none() && phase.goal.transactions.is_none();
        let fill = phase.goal.fill_bytes.filter(|_| alone).zip(self.fill_bytes_per_s(phase));
        if let Some((bytes, rate)) = fill
            && rate > 0.0
            && bytes as f64 / rate > LONGEST_FILL_S
        {
            let days = bytes as f64 / rate / 86_400.0;
            self.warn(
                Code::Endless,
                span,
                format!("the phase `{name}` takes {days:.0} days"),
                format!("about {rate:.0} bytes a second are new, and its goal is {bytes}"),
            );
        }
    }

    /// True for a phase in which no robot sends anything.
    fn is_silent(&self, phase: &Phase) -> bool {
        let is_0 = |ramp: &Ramp| ramp.begin <= 0.0 && ramp.end <= 0.0;
        [phase.load, phase.population].iter().any(is_0)
            && self.robots.iter().all(|group| !group.pace.is_closed())
    }

    /// The reason why a phase never ends, with advice.
    fn endless_reason(&self, phase: &Phase, schedule: &Schedule) -> Option<(&'static str, &'static str)> {
        if phase.wait_for_freeze && schedule.working_set == WorkingSet::Grows {
            let help = "`working_set_cap()` or `working_set_length()` freezes the working set";
            return Some(("it waits until the working set is frozen, which never happens", help));
        }
        let Goal { duration, transactions, fill_bytes, .. } = phase.goal;
        if duration.is_some() || is_scripted(phase) || (transactions.is_none() && fill_bytes.is_none()) {
            return None;
        }
        if self.is_silent(phase) {
            return Some((
                "no robot sends anything in it, so its goal is never reached",
                "set `goal.duration`",
            ));
        }
        if transactions.is_none() && self.fill_bytes_per_s(phase).is_some_and(|rate| rate <= 0.0) {
            return Some((
                "nothing in it fills a cache: no new object that may be cached is requested",
                "lower `recur_factor_beg`, or make contents cachable",
            ));
        }
        None
    }

    /// Rate at which a phase fills a cache, in bytes per second; none if it depends on the response time of the target.
    fn fill_bytes_per_s(&self, phase: &Phase) -> Option<f64> {
        let mean = |ramp: Ramp| (ramp.begin + ramp.end) / 2.0;
        let least = phase.recurrence.begin.min(phase.recurrence.end);
        let mut total = 0.0;
        let mut closed = false;
        for group in &self.robots {
            let new = (1.0 - group.recurrence * least).max(0.0);
            let bytes = self.cachable_bytes(group) * new;
            if bytes <= 0.0 {
                continue;
            }
            match group.pace.per_second() {
                Some(rate) => {
                    total +=
                        rate * f64::from(group.count()) * mean(phase.load) * mean(phase.population) * bytes;
                }
                None => closed = true,
            }
        }
        (!closed).then_some(total)
    }

    /// Mean of the cachable bytes of a direct request, over the servers that a group uses. With embedded objects, of those if
    /// they have more.
    fn cachable_bytes(&self, group: &RobotGroup) -> f64 {
        let server_of = |origin: u16| {
            let origin = self.origins.get(usize::from(origin))?;
            self.servers.get(usize::from(origin.server))
        };
        let bytes = |content: u16| {
            let content = self.contents.get(usize::from(content));
            content.map_or(0.0, |content| content.cachable * content.size_bytes.mean())
        };
        let with_embedded = |content: u16| {
            let embedded = self.contents.get(usize::from(content)).and_then(|c| c.embedded.as_ref());
            let inner = embedded.filter(|_| group.embedded_recurrence > 0.0);
            let inner = inner.map_or(0.0, |e| e.contents.items().iter().map(|(c, w)| bytes(*c) * w).sum());
            bytes(content).max(inner)
        };
        let server_bytes = |origin: u16| {
            let direct = server_of(origin).map(|server| server.direct_access.items()).unwrap_or_default();
            direct.iter().map(|(content, weight)| with_embedded(*content) * weight).sum::<f64>()
        };
        group.origins.items().iter().map(|(origin, weight)| server_bytes(*origin) * weight).sum()
    }

    /// A working set that is frozen while it is still empty.
    fn lint_working_set(&mut self, schedule: &Schedule, registrations: &Registrations) {
        let (WorkingSet::FrozenAfter(length), Some((_, span))) =
            (schedule.working_set, registrations.working_set_length)
        else {
            return;
        };
        let Some(expected) = self.new_objects_until(schedule, length) else { return };
        if expected < 1.0 {
            self.diagnostics.add(
                Diagnostic::warning(
                    Code::FrozenEmpty,
                    span,
                    "the working set is frozen before anything is in it",
                )
                .label(format!("by then robots have requested about {expected:.2} objects"))
                .help("what is requested after that is new once and never again; freeze it later"),
            );
        }
    }

    /// Expected number of new objects that are requested in a time; none if it depends on the target.
    fn new_objects_until(&self, schedule: &Schedule, until: Duration) -> Option<f64> {
        if self.robots.iter().any(|group| group.pace.is_closed()) {
            return None;
        }
        let mean = |ramp: Ramp| (ramp.begin + ramp.end) / 2.0;
        let mut left = until.as_secs_f64();
        let mut expected = 0.0;
        for phase in &schedule.phases {
            if left <= 0.0 {
                break;
            }
            let duration = phase.goal.duration?.as_secs_f64().min(left);
            left -= duration;
            for group in &self.robots {
                let rate = match group.pace {
                    Pace::BestEffort | Pace::Think(_) => return None,
                    _ => group.pace.per_second()?,
                };
                let new = (1.0 - group.recurrence * mean(phase.recurrence)).max(0.0);
                let robots = f64::from(group.count()) * mean(phase.population);
                expected += rate * robots * mean(phase.load) * new * duration;
            }
        }
        Some(expected)
    }

    /// Objects of the main source that nothing reads.
    fn lint_unused(&mut self, registrations: &Registrations) {
        for UnusedObject { kind, name, span } in &registrations.unused {
            let has_effect = matches!(kind.definition().support, Support::Full | Support::Partial(_));
            let (done, help) = match kind {
                RecordKind::Robot | RecordKind::Server | RecordKind::AddrMap => {
                    ("used", format!("`use({name});` makes it part of the workload"))
                }
                RecordKind::Phase => {
                    ("scheduled", format!("`schedule({name});` makes it part of the schedule"))
                }
                RecordKind::Bench => continue,
                _ => ("used", "leave it out, or put it where it belongs".to_owned()),
            };
            if has_effect {
                let kind = kind.name();
                self.diagnostics.add(
                    Diagnostic::warning(Code::Unused, *span, format!("the {kind} `{name}` is never {done}"))
                        .label("nothing after this reads it")
                        .help(help),
                );
            }
        }
    }
}

/// True for a phase whose script may end it, or change its load.
fn is_scripted(phase: &Phase) -> bool {
    phase.script.is_some() || phase.thermostat.is_some()
}
