//! Demands of a run on this machine, and how much more the machine could carry. A part of `assay check`.

use std::fmt::Write;

use assay_lab::{Need, Resource};
use assay_workload::Timeline;

use super::check::CheckArgs;
use super::run;
use super::run_args::RunArgs;
use crate::exit::Failure;
use crate::prepared::PreparedWorkload;
use crate::target;

/// The share of its processors that a role can use before it shows.
const COMFORTABLE: f64 = 0.7;

/// The arithmetic of what `assay run WORKLOAD` would do.
pub fn needs(args: &CheckArgs, prepared: &PreparedWorkload) -> Result<Vec<Need>, Failure> {
    let run_args = RunArgs {
        seed: args.planned.seed,
        private_as_public: args.planned.private_as_public,
        ..RunArgs::plain(&args.workload).map_err(Failure::usage)?
    };
    let plan = run::plan(&run_args, target::choose(&run_args)?, prepared)?;
    assay_lab::resource_needs(&plan).map_err(Failure::usage)
}

/// The same for people.
pub fn text(needs: &[Need], prepared: &PreparedWorkload) -> String {
    let mut text =
        "\nthis machine, through the built-in proxy (as `assay run` alone would do it):\n".to_owned();
    for need in needs {
        let verdict = match (need.exceeds(), need.is_tight()) {
            (true, _) => "TOO LITTLE ",
            (_, true) => "perhaps too little ",
            _ => "",
        };
        let (name, how) = (&need.name, &need.how);
        let (needed, there_is) = (need.needed_words(), need.available_words());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<42} {needed:>9} of {there_is:<9} {verdict}{}", share(need));
        let _ = writeln!(text, "      {how}");
    }
    text + &room(needs, &prepared.timeline)
}

fn share(need: &Need) -> String {
    let share = if need.exceeds() { need.at_least } else { need.needed } / need.available.max(1e-9) * 100.0;
    if share < 1.0 { format!("{share:.1} %") } else { format!("{share:.0} %") }
}

/// Factor by which the load could grow.
fn room(needs: &[Need], timeline: &Timeline) -> String {
    let rates = timeline.phases().iter().filter_map(|span| span.expected.map(|e| e.peak_request_rate));
    let peak = rates.fold(0.0, f64::max);
    let processors = needs.iter().filter(|need| need.resource == Resource::Processors && need.needed > 0.0);
    let times =
        processors.map(|need| need.available * COMFORTABLE / need.needed).fold(f64::INFINITY, f64::min);
    if peak <= 0.0 || !times.is_finite() {
        return "  robots send each request when the last response is complete: `assay run --calibrate` measures how fast that \
                can be\n"
            .into();
    }
    format!(
        "  by processor time it can carry about {} requests/s of this mix, and the peak is {}; `assay run --calibrate` \
         measures it\n",
        rounded(peak * times),
        rounded(peak)
    )
}

/// Two digits are all that is known.
fn rounded(rate: f64) -> String {
    if rate < 10.0 {
        return format!("{rate:.1}");
    }
    let unit = 10f64.powf(rate.log10().floor() - 1.0);
    format!("{:.0}", (rate / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_digits() {
        assert_eq!(
            [0.12, 9.96, 12.3, 4_567.0, 98_765.0].map(rounded),
            ["0.1", "10.0", "12", "4600", "99000"]
        );
    }

    #[test]
    fn a_run_without_flags_is_what_the_defaults_say() {
        let args = RunArgs::plain("-").unwrap();
        assert_eq!((args.workload.as_str(), args.proxy.as_str(), args.seed), ("-", "builtin", 1));
    }
}
