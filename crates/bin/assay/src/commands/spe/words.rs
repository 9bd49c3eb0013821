//! Output while an evaluation goes on, and at its end.

use std::fmt::Write;

use assay_lab::evaluation::{SpeEvent, SpeOutcome, SpeProgress};
use assay_measurement::own_error::MOST_WAITING;
use assay_protocol::evaluation::{CollectorCounters, MultiplierCounters, OpenedCounters, TargetCounters};

/// Counters at the last line.
pub struct ProgressView {
    is_reverse: bool,
    /// Requests and responses of the last line.
    last: (u64, u64),
}

impl ProgressView {
    /// Before anything was said.
    pub fn new(is_reverse: bool) -> Self {
        Self { is_reverse, last: (0, 0) }
    }

    /// An event in words; empty when there is nothing new.
    pub fn say(&mut self, event: &SpeEvent) -> String {
        match event {
            SpeEvent::Directory(path) => format!("results: {}\n", path.display()),
            SpeEvent::Listener { label, listener } => {
                let part = if self.is_reverse { "origin" } else { "parent, and nothing else," };
                format!("{label} runs already: it must have {listener} as its {part} for this\n")
            }
            SpeEvent::Starting(what) => format!("starting {what}\n"),
            SpeEvent::Listening(address) => format!("ready: clients may come to {address}; Ctrl-C ends it\n"),
            SpeEvent::Died(words) | SpeEvent::Fault(words) => format!("warning: {words}\n"),
            SpeEvent::Draining => {
                "ending: the last responses are waited for, some seconds at most; Ctrl-C again: not at all\n"
                    .into()
            }
            SpeEvent::Second(progress) => self.second(progress),
        }
    }

    fn second(&mut self, progress: &SpeProgress) -> String {
        let multiplier = &progress.multiplier;
        let responses =
            multiplier.targets.iter().map(|target| target.responses + target.no_response + target.dropped);
        let now = (multiplier.requests, responses.sum());
        if std::mem::replace(&mut self.last, now) == now {
            return String::new();
        }
        let mut line = format!("{:>6} s  {} requests", multiplier.at_ms / 1000, multiplier.requests);
        for (count, what) in [
            (multiplier.no_room, "without room (503)"),
            (multiplier.dismissed_clients, "connections ended for others"),
        ] {
            if count > 0 {
                // Writing to a string cannot fail.
                let _ = write!(line, ", {count} {what}");
            }
        }
        for (label, target) in progress.labels.iter().zip(&multiplier.targets).skip(1) {
            // Writing to a string cannot fail.
            let _ = write!(line, " · {label} {} ok", target.matching);
            for (count, what) in [
                (target.mismatches, "differ"),
                (target.no_response, "failed"),
                (target.dropped, "dropped"),
                (target.not_kept, "not compared"),
            ] {
                if count > 0 {
                    let _ = write!(line, ", {count} {what}");
                }
            }
        }
        if multiplier.responses_lost > 0 {
            let _ = write!(line, " · {} not written down", multiplier.responses_lost);
        }
        line.push('\n');
        line
    }
}

/// Summary of the evaluation.
pub fn summary(outcome: &SpeOutcome) -> String {
    let SpeProgress { labels, multiplier, collector, waits } = &outcome.progress;
    let mut text = String::new();
    if waits.share() > MOST_WAITING {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "response times are not known: threads of Assay and of a proxy waited for a processor for {:.0} % of the time",
            waits.share() * 100.0
        );
    }
    for (label, target) in labels.iter().zip(&multiplier.targets).filter(|(_, target)| target.not_kept > 0) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{label}: {} responses are not compared: the Collector had no room for what the client got (Assay's bound, not the \
             proxy's doing); give it more --collector-memory or --collector-disk",
            target.not_kept
        );
    }
    let _ = writeln!(
        text,
        "{} requests of {} connections; {} requests to origins; {} tunnels, {} refused, {} whose client left",
        multiplier.requests,
        multiplier.clients,
        collector.origin_requests,
        multiplier.connects,
        multiplier.refused,
        multiplier.client_gone
    );
    text += &tunnels(&multiplier.opened);
    text += &bounds(multiplier, collector);
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        text,
        "{:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "", "responses", "matching", "differ", "failed", "dropped", "mean"
    );
    for (label, target) in labels.iter().zip(&multiplier.targets) {
        let TargetCounters { responses, matching, mismatches, not_kept, no_response, dropped, .. } = *target;
        let mean = target
            .response_sum_us
            .checked_div(responses - not_kept.min(responses))
            .map_or("–".into(), milliseconds);
        let _ = writeln!(
            text,
            "{label:<width$} {responses:>9} {matching:>9} {mismatches:>9} {no_response:>9} {dropped:>9} {mean:>12}"
        );
    }
    for (label, target) in labels.iter().zip(&multiplier.targets).filter(|(_, target)| target.waiting > 0) {
        let _ = writeln!(text, "{label}: {} requests had no response at the end", target.waiting);
    }
    if collector.origin_errors > 0 {
        let _ = writeln!(
            text,
            "{} fetches from origins failed: clients got an error then, and proxies were held against that",
            collector.origin_errors
        );
    }
    if collector.not_allowed > 0 {
        let _ = writeln!(
            text,
            "{} fetches and tunnels were not made, because nothing may be requested at their addresses (not public, and not \
             named with --may-request): clients and proxies got 403",
            collector.not_allowed
        );
    }
    if collector.given_up > 0 {
        let _ = writeln!(
            text,
            "{} responses were broken off by the Collector itself, so that no client waits for them: they were too large to \
             keep, and what proxies lack of them is not their fault; give it more --collector-memory or --collector-disk",
            collector.given_up
        );
    }
    if multiplier.responses_lost > 0 {
        let _ = writeln!(
            text,
            "{} responses could not be written down and are missing: the disk was too slow, or full",
            multiplier.responses_lost
        );
    }
    let directory = outcome.directory.display();
    let _ = writeln!(text, "results: {directory}\nmore: assay spe report {directory}");
    text
}

/// Connections and requests that were ended or refused because of a limit; empty: there were none.
fn bounds(multiplier: &MultiplierCounters, collector: &CollectorCounters) -> String {
    let all = [
        (
            multiplier.no_room,
            "requests got 503: as many were under way as the descriptors allow, or as many tunnels (ulimit -n)",
        ),
        (
            multiplier.dismissed_clients,
            "connections of clients were ended to make room for others: there were as many as the descriptors allow (ulimit -n)",
        ),
        (multiplier.slow_clients, "clients took too long with a request or a response, and were cut off"),
        (
            collector.dismissed_connections,
            "connections of proxies to the Collector were ended to make room for others: a proxy had as many as the descriptors \
             allow (ulimit -n)",
        ),
    ];
    all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}\n")).collect()
}

/// Results of opened tunnels; empty: there was none.
fn tunnels(counted: &OpenedCounters) -> String {
    let all = [
        (counted.opened, "opened"),
        (
            counted.certificate_refused,
            "whose client did not accept the certificate (it does not trust the authority, or no other than the server's own)",
        ),
        (counted.name_refused, "whose client named another server than that of the tunnel, or none"),
        (counted.not_tls, "whose client did not speak TLS"),
        (
            counted.no_common_parameters,
            "without a version of TLS, a cipher suite or an application protocol in common",
        ),
        (counted.failed, "whose client left during the handshake, or did not complete it in time"),
    ];
    let said: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if said.is_empty() { String::new() } else { format!("tunnels: {}\n", said.join("; ")) }
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

#[cfg(test)]
mod tests {
    use assay_record::spe::{How, Waits};

    use super::*;

    fn progress() -> SpeProgress {
        let target = |matching, mismatches, dropped| TargetCounters {
            responses: matching + mismatches,
            matching,
            mismatches,
            dropped,
            response_sum_us: 1500 * (matching + mismatches),
            ..TargetCounters::default()
        };
        SpeProgress {
            labels: vec!["direct".into(), "squid".into()],
            multiplier: MultiplierCounters {
                at_ms: 5000,
                requests: 9,
                targets: vec![target(0, 0, 0), target(6, 2, 1)],
                ..MultiplierCounters::default()
            },
            collector: CollectorCounters { origin_requests: 4, ..CollectorCounters::default() },
            waits: Waits::default(),
        }
    }

    #[test]
    fn a_second_in_which_nothing_came_is_passed_over() {
        let mut view = ProgressView::new(true);
        let second = SpeEvent::Second(Box::new(progress()));
        assert_eq!(view.say(&second), "     5 s  9 requests · squid 6 ok, 2 differ, 1 dropped\n");
        assert_eq!(view.say(&second), "");
    }

    #[test]
    fn what_met_a_bound_is_told_while_it_goes_on_and_at_the_end() {
        let mut progress = progress();
        let said = |progress: &SpeProgress| {
            summary(&SpeOutcome { directory: "/d".into(), how: How::Finished, progress: progress.clone() })
        };
        assert!(!said(&progress).contains("503") && !said(&progress).contains("make room"));
        let waits = Waits { passed_us: 1_000_000, own_us: 200_000, targets_us: vec![0, 60_000] };
        assert!(said(&SpeProgress { waits, ..progress.clone() }).contains("for 26 % of the time"));
        let multiplier = &mut progress.multiplier;
        (multiplier.no_room, multiplier.dismissed_clients, multiplier.slow_clients) = (4, 3, 2);
        progress.collector.dismissed_connections = 1;
        let text = said(&progress);
        for line in [
            "4 requests got 503: ",
            "3 connections of clients were ended to make room ",
            "2 clients took too long ",
            "1 connections of proxies to the Collector were ended to make room ",
        ] {
            assert!(text.contains(&format!("\n{line}")), "{text}");
        }
        let second = ProgressView::new(true).say(&SpeEvent::Second(Box::new(progress)));
        assert!(
            second.contains(" 9 requests, 4 without room (503), 3 connections ended for others · squid"),
            "{second}"
        );
    }

    #[test]
    fn requests_without_a_response_at_the_end_are_told() {
        let mut progress = progress();
        progress.multiplier.targets[1].waiting = 3;
        let outcome = SpeOutcome { directory: "/d".into(), how: How::Finished, progress };
        assert!(summary(&outcome).contains("\nsquid: 3 requests had no response at the end\n"));
    }

    #[test]
    fn tunnels_that_were_not_opened_are_told_with_the_reason() {
        let mut progress = progress();
        let said = |progress: &SpeProgress| {
            summary(&SpeOutcome { directory: "/d".into(), how: How::Finished, progress: progress.clone() })
        };
        assert!(!said(&progress).contains("tunnels: "));
        progress.multiplier.opened = OpenedCounters { opened: 5, not_tls: 1, ..OpenedCounters::default() };
        assert!(said(&progress).contains("\ntunnels: 5 opened; 1 whose client did not speak TLS\n"));
    }

    #[test]
    fn an_origin_that_is_not_there_is_told() {
        let mut progress = progress();
        progress.collector.origin_errors = 2;
        let outcome = SpeOutcome { directory: "/d".into(), how: How::Finished, progress };
        assert!(summary(&outcome).contains("\n2 fetches from origins failed"));
    }

    #[test]
    fn what_the_collector_broke_off_is_not_left_to_look_like_the_fault_of_a_proxy() {
        let summary_of = |given_up| {
            let mut progress = progress();
            progress.collector.given_up = given_up;
            summary(&SpeOutcome { directory: "/d".into(), how: How::Finished, progress })
        };
        assert!(summary_of(3).contains("\n3 responses were broken off by the Collector itself"));
        assert!(!summary_of(0).contains("broken off"));
    }

    #[test]
    fn what_assay_could_not_compare_is_said_first_and_under_its_own_name() {
        let mut progress = progress();
        let not_said = SpeOutcome { directory: "/d".into(), how: How::Finished, progress: progress.clone() };
        assert!(!summary(&not_said).contains("not compared"));
        let target = &mut progress.multiplier.targets[1];
        (target.responses, target.not_kept) = (target.responses + 5, 5);
        let mean = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("squid  ")).unwrap();
            line.split_whitespace().rev().take(2).collect::<Vec<_>>().join(" ")
        };
        let before = mean(&summary(&not_said));
        assert!(
            ProgressView::new(false)
                .say(&SpeEvent::Second(Box::new(progress.clone())))
                .contains(", 5 not compared")
        );
        let text = summary(&SpeOutcome { directory: "/d".into(), how: How::Finished, progress });
        assert!(text.starts_with("squid: 5 responses are not compared: the Collector had no room"), "{text}");
        assert_eq!(mean(&text), before, "their times are in no mean");
    }

    #[test]
    fn the_summary_has_a_line_for_each_target() {
        let outcome = SpeOutcome { directory: "/d".into(), how: How::Finished, progress: progress() };
        let text = summary(&outcome);
        let words: Vec<&str> =
            text.lines().find(|line| line.starts_with("squid")).unwrap().split_whitespace().collect();
        assert_eq!(words, ["squid", "8", "6", "2", "0", "1", "1.500", "ms"]);
        assert!(
            text.contains("4 requests to origins")
                && text.contains("direct")
                && text.ends_with("results: /d\nmore: assay spe report /d\n")
        );
    }
}
