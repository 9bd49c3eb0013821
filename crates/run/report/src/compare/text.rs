//! The comparison in words: questions and their results.

use assay_base::settings::show::series;

use super::document::{Comparison, Conclusion, Scenario, Verdict};
use crate::document::Mood;
use crate::format;

/// Names of scenarios that a response lists at most.
const NAMED: usize = 4;

/// The responses, in the order in which they are read.
pub fn verdict(comparison: &Comparison) -> Vec<Conclusion> {
    let mut conclusions = vec![subject(comparison)];
    conclusions.extend(comparability(comparison));
    let questions: [(&str, &[(&str, &str)]); 4] = [
        ("Which is faster?", &[("throughput_per_s", "Throughput"), ("response_mean_ms", "Response time")]),
        ("Which carries more?", &[("saturation_per_s", "Saturation point")]),
        ("Which saves more?", &[("dhr", "Document hit ratio"), ("bhr", "Byte hit ratio")]),
        (
            "What does it cost?",
            &[
                ("cpu_us_per_request", "Processor time per request"),
                ("rss_peak_bytes", "Memory"),
                ("disk_bytes_per_s", "Disk"),
            ],
        ),
    ];
    if comparison.subjects.len() > 1 {
        for (question, metrics) in questions {
            conclusions.extend(winners(comparison, question, metrics));
        }
        conclusions.extend(too_few(comparison));
    }
    conclusions.extend(errors(comparison));
    conclusions.push(trust(comparison));
    conclusions
}

fn conclusion(question: &str, mood: Mood, text: String) -> Conclusion {
    Conclusion { question: question.to_owned(), mood, text }
}

pub(super) fn plural(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {many}", format::count(count as u64)) }
}

fn subject(comparison: &Comparison) -> Conclusion {
    let named: Vec<String> = comparison
        .subjects
        .iter()
        .map(|subject| match subject.versions.as_slice() {
            [version] if !subject.label.contains(version.as_str()) => {
                format!("{} ({version})", subject.label)
            }
            _ => subject.label.clone(),
        })
        .collect();
    let runs: u32 = comparison.subjects.iter().map(|subject| subject.runs).sum();
    let all = runs as usize + comparison.left_out.len();
    let squeezed = comparison
        .rehearse_s
        .map_or_else(String::new, |s| format!(", each squeezed into {}", format::duration_s(s)));
    let conditions = match comparison.conditions.len() {
        0 | 1 => String::new(),
        n => format!(" under {}", plural(n, "condition", "conditions")),
    };
    let same = match comparison.incomparable.is_empty() {
        true => "; every repetition sends all of them the very same requests",
        false => "",
    };
    let text = format!(
        "{} on {}{conditions}, {}{squeezed}{same}. {} of {} {}.",
        series(&named),
        plural(comparison.workloads.len(), "workload", "workloads"),
        plural(comparison.repetitions as usize, "repetition", "repetitions"),
        format::count(u64::from(runs)),
        plural(all, "run", "runs"),
        if all == 1 { "counts" } else { "count" },
    );
    conclusion("What was compared?", Mood::Plain, text)
}

/// Whether they can be compared at all; only where they cannot.
fn comparability(comparison: &Comparison) -> Option<Conclusion> {
    let why = &comparison.incomparable;
    let shown: Vec<String> = why.iter().take(NAMED).cloned().collect();
    let more = why.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" {more} more are in the document.") } else { String::new() };
    let text = format!(
        "No, not all of it: there are no verdicts where there is no sense in them. {}{more}",
        shown.join(" ")
    );
    (!why.is_empty()).then(|| conclusion("Can they be compared?", Mood::Bad, text))
}

/// Winners by scenario, a sentence for each metric.
fn winners(comparison: &Comparison, question: &str, metrics: &[(&str, &str)]) -> Option<Conclusion> {
    let found: Vec<(String, Mood)> =
        metrics.iter().filter_map(|(key, name)| sentence(&comparison.scenarios, key, name)).collect();
    if found.is_empty() {
        return None;
    }
    let moods = [Mood::Good, Mood::Plain, Mood::Doubtful];
    let mood = moods.into_iter().find(|mood| found.iter().any(|(_, of)| of == mood)).unwrap_or(Mood::Plain);
    let text: Vec<String> = found.into_iter().map(|(text, _)| text).collect();
    Some(conclusion(question, mood, text.join(" ")))
}

/// Reason for "not enough runs", with their number and the number that is needed.
fn too_few(comparison: &Comparison) -> Option<Conclusion> {
    let cells = comparison.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let contrasts =
        cells.filter(|cell| cell.text == Verdict::NotEnoughRuns.label()).flat_map(|cell| &cell.contrasts);
    let mut reasons: Vec<&str> = Vec::new();
    for contrast in contrasts.filter(|contrast| contrast.verdict == Verdict::NotEnoughRuns) {
        reasons.extend(contrast.why.as_deref().filter(|why| !reasons.contains(why)));
    }
    let (first, others) = reasons.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        n => format!(
            " Elsewhere there {} other {}, which the tables give.",
            if n == 1 { "is one" } else { "are" },
            if n == 1 { "reason" } else { "reasons" }
        ),
    };
    let text = format!(
        "{}. A repetition is a run of each with the same seed: repeat with other seeds (`--repetitions` of an experiment; `--seed` of \
         single runs).{more}",
        capital(first)
    );
    Some(conclusion("Why are there not enough runs?", Mood::Doubtful, text))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn sentence(scenarios: &[Scenario], key: &str, name: &str) -> Option<(String, Mood)> {
    // Outcomes in the order in which they first occur, each with its scenarios.
    let mut outcomes: Vec<(String, bool, Vec<String>)> = Vec::new();
    for scenario in scenarios {
        let Some(cell) = scenario.cells.iter().find(|cell| cell.metric == key) else { continue };
        let (outcome, won) = match cell.winners.is_empty() {
            true => (cell.text.clone(), false),
            false => (series(&cell.winners), true),
        };
        let margin =
            if won && !cell.margin.is_empty() { format!(" ({})", cell.margin) } else { String::new() };
        let named = format!("{}{margin}", scenario.name);
        match outcomes.iter_mut().find(|known| known.0 == outcome) {
            Some(known) => known.2.push(named),
            None => outcomes.push((outcome, won, vec![named])),
        }
    }
    outcomes.sort_by_key(|outcome| !outcome.1);
    let mood = match outcomes.as_slice() {
        [] => return None,
        all if all.iter().any(|outcome| outcome.1) => Mood::Good,
        all if all.iter().all(|outcome| outcome.0 == "not enough runs") => Mood::Doubtful,
        _ => Mood::Plain,
    };
    let alone = scenarios.len() == 1;
    let total = outcomes.iter().map(|outcome| outcome.2.len()).sum::<usize>();
    let parts: Vec<String> = outcomes
        .iter()
        .map(|(outcome, won, places)| {
            let is = if *won { format!("{outcome} is better") } else { outcome.clone() };
            match places.len() {
                n if alone || (n == total && n > 1 && !won) => match alone && *won {
                    // The margin stands behind the only scenario's name.
                    true => places[0].find(" (").map_or(is.clone(), |at| format!("{is}{}", &places[0][at..])),
                    false if alone => is,
                    false => format!("{is} in any scenario"),
                },
                n if n > NAMED && n == total => format!("{is} in all {n} scenarios"),
                n if n > NAMED => format!("{is} in {n} scenarios"),
                _ => format!("{is} in {}", series(places)),
            }
        })
        .collect();
    Some((format!("{name}: {}.", parts.join("; ")), mood))
}

/// Whether responses were wrong, by subject, over all runs that count.
fn errors(comparison: &Comparison) -> Option<Conclusion> {
    if comparison.tables.is_empty() {
        return None;
    }
    if comparison.tables.iter().all(|table| table.rows.is_empty()) {
        let text = "Nothing was measured in these runs: no request came to its end, so no response could be checked.";
        return Some(conclusion("Was anything wrong?", Mood::Bad, text.to_owned()));
    }
    let mut wrong: Vec<String> = Vec::new();
    for (index, subject) in comparison.subjects.iter().enumerate() {
        let share = |key: &str| {
            comparison
                .tables
                .iter()
                .flat_map(|table| table.rows.iter().filter(|row| row.metric == key))
                .filter_map(|row| row.values.get(index)?.mean)
                .fold(0.0, f64::max)
        };
        let (any, content, caching) =
            (share("errors_share"), share("content_errors_share"), share("caching_errors_share"));
        if any > 0.0 {
            let mut what = Vec::new();
            if content > 0.0 {
                what.push(format!("wrong contents in up to {} %", percent(content)));
            }
            if caching > 0.0 {
                what.push(format!("served what may not be served in up to {} %", percent(caching)));
            }
            if what.is_empty() {
                what.push("none of them in contents or caching".to_owned());
            }
            wrong.push(format!(
                "{}: errors in up to {} % of a phase’s requests ({})",
                subject.label,
                percent(any),
                what.join(", ")
            ));
        }
    }
    for run in comparison.left_out.iter().filter(|run| run.errors > 0) {
        let errors = plural(run.errors as usize, "error", "errors");
        wrong.push(format!("{}: {errors} in {}, which is left out", run.subject, run.cell));
    }
    let unknown = comparison.left_out.iter().filter(|run| !run.are_errors_known).count();
    let (mood, mut text) = match (wrong.is_empty(), unknown) {
        (true, 0) => (Mood::Good, "No: every response was right, byte for byte.".to_owned()),
        (true, _) => (Mood::Doubtful, "Not in the runs that count.".to_owned()),
        (false, _) => (Mood::Bad, format!("{}.", wrong.join("; "))),
    };
    if unknown > 0 {
        text.push_str(&format!(" Of {} left out it is not known.", plural(unknown, "run", "runs")));
    }
    Some(conclusion("Was anything wrong?", mood, text))
}

fn percent(share: f64) -> String {
    format::number(share * 100.0)
}

fn trust(comparison: &Comparison) -> Conclusion {
    let question = "Can it be trusted?";
    let certain = format!(
        "The chance that the table below has even one false verdict in it is at most {} %.",
        comparison.error_probability * 100.0
    );
    let short = comparison.subjects.iter().any(|subject| subject.runs == 0)
        || comparison
            .scenarios
            .iter()
            .flat_map(|scenario| &scenario.cells)
            .flat_map(|cell| &cell.contrasts)
            .any(|contrast| contrast.pairs < comparison.fewest_runs);
    let mut text = Vec::new();
    if short {
        text.push(format!(
            "Where fewer than {} repetitions have a run of both that counts there is no verdict: how much runs differ \
             by themselves is not known. More repetitions help.",
            comparison.fewest_runs
        ));
    }
    text.push(certain);
    if !comparison.left_out.is_empty() {
        let one = comparison.left_out.len() == 1;
        text.push(format!(
            "{} {} left out, for reasons below.",
            plural(comparison.left_out.len(), "run", "runs"),
            if one { "is" } else { "are" }
        ));
    }
    if !comparison.finished {
        text.push("The experiment has not ended.".to_owned());
    }
    let has_none = comparison.tables.iter().all(|table| table.rows.is_empty());
    let doubtful = has_none || short || !comparison.left_out.is_empty() || !comparison.finished;
    conclusion(question, if doubtful { Mood::Doubtful } else { Mood::Good }, text.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::document::ScenarioCell;
    use super::*;

    fn scenario(name: &str, winner: &str, margin: &str, text: &str) -> Scenario {
        let cell = ScenarioCell {
            metric: "dhr".into(),
            heading: "DHR".into(),
            winners: if winner.is_empty() { vec![] } else { vec![winner.into()] },
            text: text.into(),
            margin: margin.into(),
            contrasts: Vec::new(),
        };
        Scenario {
            name: name.into(),
            workload: name.into(),
            condition: "plain".into(),
            scope: "top".into(),
            cells: vec![cell],
        }
    }

    fn words(scenarios: &[Scenario]) -> String {
        sentence(scenarios, "dhr", "DHR").unwrap().0
    }

    #[test]
    fn scenarios_with_one_outcome_are_said_together_winners_first() {
        let all = [
            scenario("image", "", "", "no difference seen"),
            scenario("html", "ats", "7 points more", ""),
            scenario("mixed", "ats", "9 points more", ""),
        ];
        assert_eq!(
            words(&all),
            "DHR: ats is better in html (7 points more) and mixed (9 points more); no difference seen in image."
        );
        assert_eq!(words(&all[1..2]), "DHR: ats is better (7 points more).");
        assert_eq!(words(&all[..1]), "DHR: no difference seen.");
        let none = [scenario("a", "", "", "not enough runs"), scenario("b", "", "", "not enough runs")];
        assert_eq!(sentence(&none, "dhr", "DHR").unwrap().1, Mood::Doubtful);
        assert_eq!(words(&none), "DHR: not enough runs in any scenario.");
        assert_eq!(sentence(&none, "bhr", "BHR"), None);
    }

    #[test]
    fn lists_read_as_people_say_them() {
        let words = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (series(&words(1)), series(&words(2)), series(&words(3))),
            ("0".into(), "0 and 1".into(), "0, 1 and 2".into())
        );
    }
}
