//! Workloads whose robots have an identity.

use assay_workload::model::*;

use crate::harness::{content, simple};

pub const ROBOTS: u64 = 4;

/// A use limit that no connection of these short runs reaches, on however quick a machine.
pub fn never() -> Option<Distribution> {
    Some(Distribution::Constant(1e9))
}

/// Two hundred xacts of four robots, half of them for protected objects.
pub fn protected(schemes: &[AuthScheme]) -> Workload {
    let mut workload = simple();
    workload.schedule.phases[0].goal.transactions = Some(200);
    workload.servers[0].connection_use_limit = never();
    workload.servers[0].authentication =
        Some(AuthDemand { schemes: schemes.to_vec(), realm: "the \"realm\"".into(), share: 0.5 });
    workload.robots[0].credentials.users = vec![UserRun::Made { count: 3, realm: "users".into() }];
    workload
}

/// Two hundred xacts of four robots, half of them uploads, of which a share wait for a word before they are sent.
pub fn uploading(share: f64) -> Workload {
    let mut workload = simple();
    workload.contents.push(content("form", 100_000.0));
    workload.servers[0].connection_use_limit = never();
    let robots = &mut workload.robots[0];
    robots.methods = Weighted::new([(Method::Get, 0.5), (Method::Post, 0.3), (Method::Put, 0.2)]);
    robots.post_contents = Weighted::one(1);
    robots.put_contents = Weighted::one(1);
    robots.expectation = Expectation::Sometimes(share);
    workload.schedule.phases[0].goal.transactions = Some(200);
    workload
}
