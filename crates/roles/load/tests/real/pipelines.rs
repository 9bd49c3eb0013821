//! Several requests at once on one connection, at a rate.

use assay_workload::model::*;

use crate::harness::{check_sums, lasts, pages, phase};
use crate::server::run;

#[test]
fn heads_and_confirmations_keep_their_place_in_a_pipeline() {
    let mut workload = pages(Some(3.0));
    workload.robots[0].request_types = Weighted::new([(RequestType::Basic, 0.5), (RequestType::Ims304, 0.5)]);
    workload.robots[0].methods = Weighted::new([(Method::Get, 0.6), (Method::Head, 0.4)]);
    workload.robots[0].pace = Pace::Rate { per_second: 100.0 };
    workload.schedule.phases = vec![phase("only", lasts(400))];
    let counts = run(&workload, |_| ()).total();
    check_sums(&counts);
    assert_eq!(counts.error_total(), 0, "{counts:#?}");
    assert!(counts.by_method["HEAD"] > 0 && counts.pages > 0, "{counts:#?}");
}
