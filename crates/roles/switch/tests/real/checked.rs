//! The switch over HTTP/2 before a checker that shares no code with it.

use crate::harness::{Server, file, ok, switch};

#[test]
fn the_switch_passes_what_h2spec_requires_of_a_server() {
    let server = Server::responding("s", |_, stream| {
        ok(stream, b"a body that is long enough for windows of a few bytes");
        true
    });
    let switch = switch(&file("http2 = \"all\"", &[&server], ""));
    if let Some((passed, failed)) = assay_testbed::h2spec(switch.addresses()[0], "/") {
        assert!(failed.is_empty() && passed >= 142, "{passed} passed; failed: {failed:#?}");
    }
}
