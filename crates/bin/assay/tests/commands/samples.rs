//! Workloads and settings that several modules use, those of `tests/real` too.

use crate::support::Assay;

/// Everything that a response can be besides a plain object.
pub const SPECIAL: &str = include_str!("special.pg");

/// A workload of two seconds that requests `rate` (`100/sec`, or nothing for best effort).
pub fn small(rate: &str) -> String {
    let rate = if rate.is_empty() { String::new() } else { format!("req_rate = {rate};") };
    format!(
        r#"
Content C = {{ kind = "c"; size = const(1KB); cachable = 100%; }};
Server S = {{ kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80'];
    pconn_use_lmt = const(1000000); }};
Robot R = {{ kind = "r"; origins = S.addresses; {rate} recurrence = 50%; pconn_use_lmt = const(1000000);
    open_conn_lmt = 4; pop_model = {{ pop_distr = popUnif(); }}; addresses = ['10.0.1.1-4']; }};
Phase P = {{ name = "p"; goal.duration = 2sec; }};
schedule(P);
use(S, R);
"#
    )
}

/// A cluster: two nodes, a file and a program.
pub const CLUSTER: &str = "title = \"Small\"\npolicies = [\"rand\", \"cap\"]\nclients = [2, 4]\nrepetitions = 1\n\
    warm-up = \"100ms\"\nmeasure = \"400ms\"\nclasses = [\"static\", \"dynamic\"]\n[[cluster]]\nlabel = \"two\"\nnodes = 2\n\
    [[service]]\nname = \"file5k\"\nprocessor = \"1ms\"\nbytes = 5125\ndocuments = 20\n\
    [[service]]\nname = \"cpu-light\"\nclass = \"dynamic\"\nprocessor = \"10ms\"\nbytes = 10\n\
    [[mix]]\nlabel = \"80/20\"\nweights = { file5k = 8, cpu-light = 2 }\n";

/// A workload of ten robots whose phase is called `only`.
pub const ONE_PHASE: &str = r#"
Content C = { kind = "c"; size = const(1KB); cachable = 50%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80'];
    pconn_use_lmt = const(1000000); };
Robot R = { kind = "r"; origins = S.addresses; req_inter_arrival = const(0.2sec); recurrence = 50%;
    pconn_use_lmt = const(1000000); pop_model = { pop_distr = popUnif(); }; addresses = ['10.0.1.1' ** 10]; };
Phase only = { name = "only"; goal.duration = 5sec; };
schedule(only);
use(S, R);
"#;

/// A small workload that requires something.
pub fn requiring(required: &str) -> String {
    format!(
        r#"
Content C = {{ kind = "c"; size = const(1KB); cachable = 100%; }};
Server S = {{ kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; }};
Robot R = {{ kind = "r"; origins = S.addresses; req_rate = 50/sec; recurrence = 50%;
    pop_model = {{ pop_distr = popUnif(); }}; addresses = ['10.0.1.1-4']; }};
Phase P = {{ name = "steady"; goal.duration = 2min; }};
schedule(P);
require({required});
use(S, R);
"#
    )
}

/// A workload that schedules nothing.
pub const UNSCHEDULED: &str = r#"
Content C = { kind = "c"; size = const(1KB); cachable = 100%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; };
Robot R = { kind = "r"; origins = S.addresses; req_rate = 10/sec; recurrence = 50%;
    pop_model = { pop_distr = popUnif(); }; addresses = ['10.0.1.1-4']; };
use(S, R);
"#;

/// One robot, one origin that is called `www.example`, a second.
/// Each robot makes one connection after the other, so that it has a session to resume from the second on.
pub const RECONNECTING: &str = r#"
Content C = { kind = "c"; size = const(1KB); cachable = 100%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; };
Robot R = { kind = "r"; origins = S.addresses; req_rate = 20/sec; recurrence = 50%; pconn_use_lmt = const(2); open_conn_lmt = 1;
    pop_model = { pop_distr = popUnif(); }; addresses = ['10.0.1.1-2']; };
Phase P = { name = "p"; goal.duration = 1sec; };
schedule(P);
use(S, R);
"#;

/// A workload of two seconds, for an experiment.
pub const TINY: &str = "
Content cnt = { kind = \"page\"; size = const(1KB); cachable = 100%; };
Server S = { kind = \"S\"; contents = [ cnt ]; direct_access = [ cnt ]; };
Robot R = { kind = \"R\"; req_rate = 10/sec; recurrence = 50%; pop_model = { pop_distr = popUnif(); }; };
S.addresses = '192.168.0.2:9000';
R.addresses = [ '192.168.0.3' ** 2 ];
R.origins = S.addresses;
Phase p = { name = \"only\"; goal.duration = 2sec; };
schedule(p);
use(S, R);
";

/// An experiment of four cells.
pub const EXPERIMENT: &str = "
title = \"Is a cache faster than none?\"
workloads = [\"tiny.pg\"]
repetitions = 2
page-cache = \"keep\"
cool-down = \"1s\"
retries = 0
timeout = \"10s\"

[[proxy]]
name = \"builtin\"
memory = [\"8MB\", \"16MB\"]
";

/// A directory with a workload and an experiment in it.
pub fn with_experiment() -> Assay {
    let assay = Assay::new();
    assay.file("tiny.pg", TINY);
    assay.file("which.toml", EXPERIMENT);
    assay
}
