//! `assay size --prove` with policies that a proxy cannot be given.

use crate::support::Assay;

#[test]
fn policies_that_a_proxy_cannot_be_given_are_refused_before_anything_runs() {
    let assay = Assay::new();
    let refused = |more: &[&str]| {
        let arguments = [&["size", "demo", "--at", "16MB", "--prove"], more].concat();
        assay.run(&arguments).exits(2).stderr.clone()
    };
    let said = refused(&["nginx", "--policy", "sieve"]);
    assert!(
        said.contains("nginx cannot be given these policies") && said.contains("--prove builtin"),
        "{said}"
    );
    let said = refused(&["nginx", "--admission", "second"]);
    assert!(said.contains("nginx cannot be given"), "{said}");
    let said = refused(&["builtin", "--policy", "belady"]);
    assert!(said.contains("no cache can have a policy that knows the future"), "{said}");
    let said = refused(&["builtin", "--policy", "seive"]);
    assert!(said.contains("did you mean `sieve`?"), "{said}");
}
