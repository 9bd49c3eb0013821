//! Origins over HTTP/2 before a checker that shares no code with them.

use std::sync::Arc;

use assay_workload::model::{HttpVersion, Weighted};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

use crate::harness::simple;
use crate::origins::Origins;

#[test]
fn origins_pass_what_h2spec_requires_of_a_server() {
    let mut workload = simple();
    workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
    let origins = Origins::start(&workload);
    let universe = Universe::new(Arc::new(workload), 7, 1, UniverseOptions::default()).expect("a universe");
    let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 0 };
    let path = universe.path(&universe.object(id));
    if let Some((passed, failed)) = assay_testbed::h2spec(origins.listening[0], &path) {
        assert!(failed.is_empty() && passed >= 142, "{passed} passed; failed: {failed:#?}");
    }
    origins.stop();
}
