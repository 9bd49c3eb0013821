//! What a reader should know of an analysis, a sentence each.

use assay_base::settings::show::count;
use assay_measurement::ratios::ratio;

use super::Analyser;
use super::tally::GroupTally;
use crate::class::Class;
use crate::format::Fact;
use crate::sketch::durations;

/// From this share of lines on, the number of those that could not be read is among the notes.
const MANY: f64 = 0.01;

impl Analyser {
    pub(super) fn notes(&self, all: &GroupTally) -> Vec<String> {
        let mut notes = self.notes_on_outcomes(all);
        notes.extend(self.remarks.notes());
        notes.extend(self.notes_on_lines());
        notes.extend(self.notes_on_times());
        if self.default_ports > 0 {
            notes.push(format!(
                "{} requests name their host with the port that their scheme has anyway (http 80, https 443): they are \
                 counted under the host without it.",
                self.default_ports
            ));
        }
        if self.any_facts.contains(Fact::Agent) {
            notes.push(
                "Browsers, bots and tools are told apart by what their User-Agent says; nothing verifies that."
                    .into(),
            );
        }
        if self.any_facts.contains(Fact::Referrer) && self.hosts.count.count().0 == 0.0 {
            notes.push(
                "This log does not say which host was requested: referrers of the site's own pages are counted among \
                 referring sites."
                    .into(),
            );
        }
        notes
    }

    fn notes_on_outcomes(&self, all: &GroupTally) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.has_outcome {
            if self.lines.requests > 0 {
                let why = if self.any_facts.contains(Fact::Outcome) {
                    "None of the outcomes in this log is understood"
                } else {
                    "This format does not say what became of a request"
                };
                notes.push(format!(
                    "{why}: there are no hit ratios but those that other caches would have had."
                ));
            }
            return notes;
        }
        let unknown = all.class(Class::Unknown);
        if unknown > 0 {
            let share = ratio(unknown, all.requests()).unwrap_or_default() * 100.0;
            notes.push(format!(
                "The outcome of {} requests ({share:.1} %) is not known: hit ratios are those of the others.",
                count(unknown)
            ));
        }
        // HAProxy names a server for whatever its cache did not serve, with a cache or without.
        let is_haproxy = self.any_facts.contains(Fact::Server) && self.all_facts.contains(Fact::Server);
        if is_haproxy && all.local_hits() == 0 {
            notes.push(
                "No request was served by HAProxy's cache, which its log names <CACHE>. If it has no cache, hit ratios \
                 mean nothing here."
                    .into(),
            );
        }
        notes
    }

    fn notes_on_lines(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let lines = self.lines.read - self.lines.empty;
        let malformed = ratio(self.lines.malformed, lines).unwrap_or_default();
        if malformed >= MANY {
            notes.push(format!(
                "{:.1} % of the lines could not be read: all figures are those of the others.",
                malformed * 100.0
            ));
        }
        if self.lines.cut > 0 {
            notes.push(
                "The log is cut off in its last line, which is not counted: it was still being written, or is not \
                 complete."
                    .into(),
            );
        }
        if self.has_unended_line {
            notes.push("The last line of the log has no end: it is counted as it stands there.".into());
        }
        if self.max_backstep_us > 0 {
            notes.push(format!(
                "{} lines are earlier than the line before them, by up to {:.1} s: proxies write at the end of a \
                 request, or from several processes.",
                count(self.lines.backwards),
                self.max_backstep_us as f64 / 1e6
            ));
        }
        let apart = |fact| self.any_facts.contains(fact) && !self.all_facts.contains(fact);
        let parts = [
            (Fact::Outcome, "outcomes"),
            (Fact::Duration, "durations"),
            (Fact::Status, "statuses"),
            (Fact::Bytes, "sizes"),
            (Fact::Time, "times"),
            (Fact::Agent, "user agents"),
            (Fact::Referrer, "referrers"),
        ];
        let parts: Vec<&str> = parts.iter().filter(|(fact, _)| apart(*fact)).map(|(_, name)| *name).collect();
        if !parts.is_empty() {
            // A single log may have named other fields in the middle.
            let what = if self.inputs.len() > 1 { "logs" } else { "lines" };
            notes.push(format!(
                "Only some of the {what} have {}: figures of them are those of these {what} alone.",
                parts.join(", ")
            ));
        }
        notes
    }

    fn notes_on_times(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.any_facts.contains(Fact::Time) && !self.all_facts.contains(Fact::Zone) {
            notes.push("Times in this log have no zone and were taken as UTC.".into());
        }
        if self.series.widened {
            notes.push(
                "There were too many steps of the width that was requested: they were made wider.".into(),
            );
        }
        if self.phases.by_due > 0 {
            notes.push(
                "Requests are assigned to the phase in which they were due, as their X-Assay says.".into(),
            );
        }
        if self.phases.by_time > 0 {
            notes.push(format!(
                "{} requests have no X-Assay in their lines: they are assigned to the phase in which the proxy logged \
                 them.",
                count(self.phases.by_time)
            ));
        }
        if self.classes.iter().any(|(tally, _)| tally.times.is_some()) {
            notes.push(format!(
                "Means and maxima are exact; percentiles of groups are within {:.1} %, those of classes within 0.1 %.",
                durations::RELATIVE_ERROR * 100.0
            ));
        }
        notes
    }
}
