//! The flags that change a workload for a first look, the same for all commands that take a workload.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use assay_base::settings::show::plain;
use assay_workload::model::MOST_ROBOTS;
use assay_workload::model::{Goal, HttpVersion};
use assay_workload::overrides::Overrides;
use assay_workload::rehearse::Rehearsal;
use clap::Args;

use crate::exit::Failure;
use crate::units::{self, show_duration};

/// More requests per second than any machine can send.
const MOST_PER_S: f64 = 100_000_000.0;

/// Length and rate of a run, whatever the workload says.
#[derive(Debug, Clone, Default, Args)]
pub struct LoadArgs {
    /// Instead of the workload's schedule: one phase (dflt) of constant full load that takes DUR
    #[arg(long, value_name = "DUR", value_parser = length, conflicts_with = "rehearse")]
    pub duration: Option<Duration>,
    /// Requests per second of all robots together, where the schedule's load is highest; robots without a rate get one
    #[arg(long, value_name = "N", value_parser = rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,
}

/// How a workload is taken by a command that does not run it.
#[derive(Debug, Clone, Args)]
pub struct PlannedArgs {
    /// Compress the whole schedule into DUR, or to a SHARE of it, as `assay run --rehearse` does
    #[arg(long, value_name = "DUR|SHARE", value_parser = rehearsal)]
    pub rehearse: Option<Rehearsal>,
    /// The number of robots, as `assay run --robots` sets it
    #[arg(long, value_name = "N", value_parser = robots, allow_negative_numbers = true)]
    pub robots: Option<u32>,
    /// Length and rate.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Treat private interests as public ones
    #[arg(long)]
    pub private_as_public: bool,
    /// Look for included files in DIR too
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

impl LoadArgs {
    /// With the number of robots, which is another flag where a command runs some of them.
    pub fn with_robots(&self, robots: Option<u32>) -> Overrides {
        Overrides { duration: self.duration, rate: self.rate, robots, ..Overrides::default() }
    }
}

/// Reads a version of HTTP.
pub fn http_version(text: &str) -> Result<HttpVersion, String> {
    let all = [HttpVersion::Http10, HttpVersion::Http11, HttpVersion::Http2];
    let found = all.into_iter().find(|version| version.name() == text);
    found.ok_or_else(|| format!("`{text}` is not a version of HTTP that Assay speaks; write 1.0, 1.1 or 2"))
}

/// Reads the length of a rehearsal, or its share of the schedule: `60s`, `5%`.
pub fn rehearsal(text: &str) -> Result<Rehearsal, String> {
    let Some(number) = text.strip_suffix('%') else {
        return units::duration(text).map(Rehearsal::Length).map_err(|error| error.to_string());
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Rehearsal::Share(percent / 100.0)),
        _ => Err(format!("`{text}` is no share of a schedule; write more than 0% and at most 100%")),
    }
}

/// Time limit of a search or a calibration, which have no schedule to scale.
pub fn budget(rehearsal: Option<Rehearsal>, usual: Duration) -> Result<Duration, Failure> {
    match rehearsal {
        None => Ok(usual),
        Some(Rehearsal::Length(length)) => Ok(length),
        Some(Rehearsal::Share(_)) => Err(Failure::usage(anyhow!(
            "--rehearse with a share is for schedules, and this replaces the schedule"
        ))
        .hint(format!("say how long it may take; without --rehearse, that is {}", show_duration(usual)))),
    }
}

/// Reads a number of robots.
pub fn robots(text: &str) -> Result<u32, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("a run takes one robot at least".into()),
        Ok(number) => u32::try_from(number)
            .ok()
            .filter(|number| *number <= MOST_ROBOTS)
            .ok_or_else(|| format!("{text} robots are too many; {MOST_ROBOTS} are the most")),
        Err(_) => Err("write a whole number of robots, like 500".into()),
    }
}

/// Reads `500` or `500/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").or(text.strip_suffix("/sec")).unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= MOST_PER_S => Ok(rate),
        Ok(rate) if rate > MOST_PER_S => {
            Err(format!("{text} is too much; {} requests per second are the most", plain(MOST_PER_S)))
        }
        _ => Err("write requests per second of all robots together, more than 0, like 500".into()),
    }
}

/// Reads the length of a run.
fn length(text: &str) -> Result<Duration, String> {
    match units::duration(text).map_err(|error| error.to_string())? {
        length if length < Goal::ENDLESS => Ok(length),
        _ => Err(format!("a run takes less than {}", show_duration(Goal::ENDLESS))),
    }
}

/// Changes to the workload, as a reader of the result needs them.
pub fn in_words(overrides: &Overrides) -> Option<String> {
    let changes = [
        overrides.duration.map(|length| {
            format!(
                "its schedule is replaced by {} of constant full load (phase dflt)",
                show_duration(length)
            )
        }),
        overrides
            .rate
            .map(|rate| format!("all robots together send at most {} requests a second", plain(rate))),
        overrides
            .robots
            .map(|robots| format!("it has {robots} {}", if robots == 1 { "robot" } else { "robots" })),
        overrides.robot_http.map(|version| format!("robots speak HTTP/{}", version.name())),
        overrides.origin_http.map(|version| format!("origins speak HTTP/{}", version.name())),
        overrides.streams.map(|streams| {
            format!("best-effort robots have {streams} requests under way at a time over HTTP/2")
        }),
        overrides.priorities.then(|| "requests say how urgent they are".to_owned()),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    (!changes.is_empty()).then(|| format!("the command line changes the workload: {}", changes.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_rates_and_numbers_of_robots_that_make_no_sense_are_refused() {
        for wrong in ["0s", "-5s", "400d", "10", "x"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "nan", "inf", "1e12", "x", ""] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "1.5", "99999999999", "10000001", "x"] {
            assert!(robots(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0%", "-5%", "101%", "x%", "%", "5"] {
            assert!(rehearsal(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rehearsal("2.5 %"), Ok(Rehearsal::Share(0.025)));
        assert_eq!(rehearsal("1m"), Ok(Rehearsal::Length(Duration::from_secs(60))));
        assert_eq!(length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!((rate("500"), rate("0.5/s")), (Ok(500.0), Ok(0.5)));
        assert_eq!(robots("10000000"), Ok(10_000_000));
    }

    #[test]
    fn changes_are_told_in_one_sentence_and_none_in_none() {
        assert_eq!(in_words(&Overrides::default()), None);
        let all = Overrides {
            duration: Some(Duration::from_secs(30)),
            rate: Some(500.0),
            robots: Some(1),
            robot_http: Some(HttpVersion::Http2),
            origin_http: Some(HttpVersion::Http11),
            streams: Some(10),
            priorities: true,
        };
        let words = in_words(&all).unwrap();
        for part in [
            "30s",
            "at most 500 requests a second",
            "1 robot",
            "speak HTTP/2",
            "speak HTTP/1.1",
            "10 requests under way",
            "how urgent",
        ] {
            assert!(words.contains(part), "{words}");
        }
    }
}
