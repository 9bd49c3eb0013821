//! Whole runs through the real binary, which the machine and its clock have a say in. They need, each some of it: real proxies, curl, a
//! browser, Prometheus, a NATS server, Python with pandas, shells, and root with namespaces of its own. `scripts/test-setup.sh` installs
//! the programs; a test whose program is missing says that it was skipped.
//!
//! | module | what must be true |
//! |---|---|
//! | `adapting` | load adapts until an origin can bear it |
//! | `alone::honest` | what Assay or the machine does to a run is found and named, and what the target does is not |
//! | `alone::links` | links do what they were told, and nothing of them is left behind |
//! | `alone::slow` | a slow target changes what is late, never what is due |
//! | `browsing` | a browser and curl see through an evaluation what they see directly |
//! | `by_hand` | parts of a run, started by hand, are one run together |
//! | `caught` | every kind of wrong response is counted under its own name, as often as it was given |
//! | `ci` | the steps for GitHub and GitLab find a change for the worse |
//! | `clusters` | a cluster is measured, calibrated and interrupted |
//! | `conform` | cases are tried on the built-in proxy, the switch, and targets that are wrong |
//! | `containers` | the image runs as a user of its own |
//! | `crowd` | many clients, six proxies, all kinds of faults: nothing is lost, the origin gets one request for each need |
//! | `documentation` | commands of the manual run, and print what it says |
//! | `evaluation` | several proxies at once cost clients and the origin nothing, and each is held against the origin |
//! | `experiments` | experiments run, are interrupted or killed, and go on |
//! | `first_minutes`, `newcomers`, `overriding`, `runs` | runs leave what they should, however they end |
//! | `fleet`, `fleet_descriptions`, `fleet_lost` | several machines make one run, whoever is killed |
//! | `full_disk` | a full disk costs only what it has no room for |
//! | `hierarchy` | caches query each other, the built-in proxy and a real Squid too, and what each had is counted |
//! | `hostile` | names that others chose do nothing in any output of a run |
//! | `intercepted` | tunnels that an evaluation opens: clients see what they see directly, the origin gets one request for each need, and proxies are compared |
//! | `irregular` | a run in which something is missing or no regular file is read without it |
//! | `listings` | the published listings run through real proxies, and ratios are what they must be |
//! | `machine`, `peak` | the machine is calibrated, and the limit of a target found |
//! | `matrix` | runs hit what an ideal cache does |
//! | `mutants` | caches that are wrong on purpose are found, and the right one is not accused |
//! | `opened_tunnels` | an evaluation that opens tunnels begins |
//! | `packages` | packages are complete, and removal leaves nothing |
//! | `proxies_conform` | cases go through real caches that work together as through one |
//! | `proxies_replay` | a log goes through real proxies before simulated origins, and what was there before is a hit |
//! | `proxies_tls` | every real proxy serves the same requests over TLS, on each leg that it can, and verifies whom it is to trust |
//! | `python` | the package for Python passes its own tests, and its wheel works |
//! | `recount`, `taking_along` | figures are recomputed from what was recorded |
//! | `replaying` | logs are sent again, with and without a proxy |
//! | `requirements`, `retrying` | what is required is judged, and an undecided run repeated |
//! | `schedulers` | agents start where Slurm gives machines |
//! | `shell` | real shells complete, and `man` shows pages |
//! | `size`, `size_proved` | predictions are measured |
//! | `switch` | a switch takes on another file |
//! | `tls` | what is wrong with a target is said, and no key stays behind |
//! | `tortured` | faults at random instants leave nothing behind, and records that can be read |
//! | `watching` | a real Prometheus and a real browser see the run |

mod adapting;
mod alone;
mod browsing;
mod by_hand;
mod caught;
#[path = "../commands/cells.rs"]
mod cells;
mod ci;
mod clusters;
mod conform;
mod containers;
mod crowd;
mod documentation;
mod evaluation;
mod experiments;
mod faulty;
mod first_minutes;
mod fleet;
mod fleet_descriptions;
mod fleet_lost;
mod full_disk;
mod helpers;
mod hierarchy;
mod hostile;
#[path = "../commands/hostile_text.rs"]
mod hostile_text;
mod intercepted;
mod irregular;
#[path = "../commands/irregular_file.rs"]
mod irregular_file;
mod listings;
mod machine;
mod matrix;
mod mutants;
mod newcomers;
mod opened_tunnels;
mod overriding;
mod packages;
#[path = "../commands/pages.rs"]
mod pages;
mod peak;
mod proxies_conform;
mod proxies_replay;
mod proxies_tls;
mod python;
mod recount;
#[path = "../../../../roles/conform/tests/real/relay.rs"]
mod relay;
mod replaying;
mod requirements;
mod retrying;
mod run_command;
mod runs;
#[path = "../commands/samples.rs"]
mod samples;
mod schedulers;
mod shell;
mod site;
mod size;
mod size_proved;
#[path = "../commands/support.rs"]
mod support;
mod switch;
mod taking_along;
mod tls;
mod tortured;
mod watching;
#[path = "../commands/workflows.rs"]
mod workflows;
