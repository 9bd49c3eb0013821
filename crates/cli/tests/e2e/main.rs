//! Whole runs through the real binary: targets that misbehave, targets that are slow, real proxies.
//!
//! | module | what must be true |
//! |---|---|
//! | `caught` | every kind of wrong response is counted under its own name, as often as it was given |
//! | `alone::slow` | a slow target changes what is late, never what is due |
//! | `browsing` | a browser and curl see through an evaluation what they see directly |
//! | `conformance` | cases go through real caches that work together as through one |
//! | `crowd` | many clients, six proxies, all kinds of faults: nothing is lost, the origin gets one request for each need |
//! | `evaluation` | several proxies at once cost clients and the origin nothing, and each is held against the origin |
//! | `alone::honest` | what Assay or the machine does to a run is found and named, and what the target does is not |
//! | `alone::hierarchy` | caches query each other, the built-in proxy and a real Squid too, and what each had is counted |
//! | `alone::links` | links do what they were told, and nothing of them is left behind |
//! | `intercepted` | tunnels that an evaluation opens: clients see what they see directly, the origin gets one request for each need, and proxies are compared |
//! | `real` | the published listings run through real proxies, and ratios are what they must be |
//! | `tls` | every real proxy serves the same requests over TLS, on each leg that it can, and verifies whom it is to trust |
//! | `tortured` | faults at random instants leave nothing behind, and records that can be read |
//! | `replaying` | a log goes through real proxies before simulated origins, and what was there before is a hit |

mod alone;
mod browsing;
mod caught;
mod conformance;
mod crowd;
mod evaluation;
mod faulty;
mod intercepted;
mod machine;
mod real;
mod replaying;
mod site;
mod support;
mod tls;
mod tortured;
