//! Descriptions of functions and procedures, for editors.

/// Description of a function or procedure.
pub(crate) fn call_doc(name: &str) -> Option<&'static str> {
    CALLS.iter().find(|(call, _)| *call == name).map(|(_, meaning)| *meaning)
}

const CALLS: &[(&str, &str)] = &[
    ("int", "the integer of a number or string; cuts off"),
    ("float", "the real number of a number or string"),
    ("undef", "no value: what is assigned is no longer set"),
    ("count", "number of items, those of inner lists and ranges included"),
    ("min", "the smallest of its arguments"),
    ("max", "the largest of its arguments"),
    ("select", "n random items of a list, the same in every run"),
    ("setAddrPort", "the addresses with another port; -1 takes ports away"),
    ("robotAddrs", "addresses of robots, dealt by a scheme over the machines of a bench"),
    ("serverAddrs", "addresses of servers, dealt by a scheme over the machines of a bench"),
    ("proxyAddrs", "addresses of proxies, dealt by a scheme over the machines of a bench"),
    ("clientHostCount", "machines of the client side that the peak rate of a bench needs"),
    ("ipsToNames", "host names made of addresses, in a zone or by a template with `${dashed_ip}`"),
    ("zoneDomains", "names that a zone file gives to addresses"),
    ("tracedHosts", "hosts of a list of URLs"),
    ("dynamicName", "a name; it stays as it is, with a warning"),
    ("dynamize", "names; they stay as they are, with a warning"),
    ("credentials", "n made-up users with passwords"),
    ("anyOf", "a regular expression that any of a list fulfils"),
    ("uniqId", "a new identity"),
    ("system", "refused: commands are not run"),
    ("Worker", "the number of the worker; always 1"),
    ("const", "a distribution: always x"),
    ("unif", "a distribution: evenly from low up to, not including, high"),
    ("exp", "a distribution: exponential with this mean"),
    (
        "norm",
        "a distribution: normal, as a sum of twelve uniform numbers; it ends six deviations from the mean",
    ),
    ("logn", "a distribution: log-normal; mean and deviation are of the result"),
    ("zipf", "a distribution: 1 to n, k about as often as 1/k"),
    ("seq", "a distribution: first, first + 1, …"),
    ("table", "a distribution: read from a histogram in a file"),
    ("popUnif", "for `pop_distr`: all objects alike"),
    ("popZipf", "for `pop_distr`: the newest is the most popular; a skew below 1 flattens it"),
    ("popTable", "for `pop_distr`: by ages from 0 (the newest) to 1, from a file or distribution"),
    ("currentLoadFactor", "in a script: the load factor now"),
    ("currentPopulusFactor", "in a script: the share of robots that are active now"),
    ("currentSample", "in a script: statistics of the sample that is complete"),
    ("currentPhase", "in a script: statistics since the phase began"),
    ("use", "makes robots, servers, address maps and links part of the workload"),
    ("schedule", "adds phases to the schedule, in order"),
    ("working_set_length", "freezes the working set that long after the start"),
    ("working_set_cap", "freezes the working set after so many fill objects"),
    ("note_substitutes", "addresses of each list stand for one another where `minimize_new_conn` wants it"),
    ("require", "what a run must show, like \"errors == 0\" or \"top1.p99(hit) < 5ms\""),
    ("print", "says something when the workload is compiled; in a script, while the phase runs"),
    ("printV", "the same, if the level is 0 or less"),
    ("changeLoadFactorBy", "in a script: changes the load factor by a share of what it is"),
    ("setLoadFactorTo", "in a script: sets the load factor"),
    ("changePopulusFactorBy", "in a script: changes the share of active robots by a share of what it is"),
    ("setPopulusFactorTo", "in a script: sets the share of active robots"),
    ("setSamplingGoalTo", "in a script: changes the goal of the block of `every` it is in"),
    ("reachedPositiveGoal", "in a script: ends the phase as if its goal was reached"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{FUNCTIONS, PROCEDURES};

    #[test]
    fn every_function_and_procedure_has_a_meaning_and_no_other_name_has_one() {
        let names: Vec<&str> =
            FUNCTIONS.iter().map(|f| f.name).chain(PROCEDURES.iter().map(|p| p.name)).collect();
        assert!(names.iter().all(|name| call_doc(name).is_some()));
        assert_eq!(names.len(), CALLS.len());
    }
}
