//! An evaluation that opens tunnels begins.

use crate::support::Assay;

/// An evaluation that would end at once.
const EVALUATION: [&str; 7] = ["spe", "--listen", "127.0.0.1:0", "--proxy", "builtin", "--duration", "100ms"];

#[test]
fn an_evaluation_says_what_it_does_with_tunnels_and_begins() {
    let assay = Assay::new();
    assay.run(&["spe", "authority", "own"]).exits(0);
    let ca = ["--origin-ca", "own/authority.pem"];
    let said = assay.run(&[&EVALUATION[..], &["--intercept", "own"], &ca].concat());
    // No client came.
    said.exits(1).complains("tunnels are opened (--intercept)").complains("no client sent a request");
    assay.run(&[&EVALUATION[..], &ca].concat()).exits(2).complains("--intercept");
}
