//! The proxy over HTTP/2 before a checker that shares no code with it.

use crate::harness::{Bed, Origin, ok, run};

#[test]
fn the_proxy_passes_what_h2spec_requires_of_a_server() {
    run(async {
        let origin =
            Origin::start(|_, _| ok("", "a body that is long enough for windows of a few bytes")).await;
        let bed = Bed::start(&[("a", origin.address)]);
        let address = bed.proxy.address();
        let checked = tokio::task::spawn_blocking(move || assay_testbed::h2spec(address, "/"));
        if let Some((passed, failed)) = checked.await.unwrap() {
            assert!(failed.is_empty() && passed >= 142, "{passed} passed; failed: {failed:#?}");
        }
    });
}
