//! The listings of the 2012 study compile as printed, and say what they said.

use std::time::Duration;

use assay_pgl::Compiled;
use assay_workload::model::{
    Distribution, Method, Pace, PopularityLaw, Ramp, RequestType, RobotAddress, Weighted, WorkingSet,
};

use crate::{compile_text, data, rendered};

fn listing(name: &str) -> Compiled {
    let text = std::fs::read_to_string(data("listings").join(name)).unwrap();
    let result = compile_text(&text, &[]);
    result.unwrap_or_else(|failure| panic!("{}", rendered(&Err(failure))))
}

/// Weights per mille, by a label.
fn weights<T: Clone>(weighted: &Weighted<T>, label: impl Fn(&T) -> String) -> Vec<(String, f64)> {
    weighted.items().iter().map(|(item, p)| (label(item), (p * 1e6).round() / 1e3)).collect()
}

fn pairs(expected: &[(&str, f64)]) -> Vec<(String, f64)> {
    expected.iter().map(|(label, p)| ((*label).to_owned(), *p)).collect()
}

#[test]
fn image_has_a_thousand_robots_at_their_rate() {
    let w = listing("image.pg").workload;
    assert_eq!(w.robot_count(), 1000);
    let robot = &w.robots[0];
    assert_eq!(robot.addresses, [RobotAddress { host: "192.168.0.3".into(), count: 1000 }]);
    assert_eq!(robot.pace, Pace::Rate { per_second: 0.4 });
    assert_eq!(robot.kind, "WebAxe-1-rbt");
    assert_eq!(robot.proxies, ["192.168.0.1:80"]);
    assert_eq!((robot.recurrence, robot.embedded_recurrence), (0.95, 1.0));
    assert_eq!(robot.popularity.as_ref().unwrap().law, PopularityLaw::Uniform);
    assert_eq!(robot.connection_use_limit, Some(Distribution::Zipf { n: 64.0 }));
    assert_eq!((robot.open_connection_limit, robot.waiting_limit), (Some(4), None));
    assert_eq!(robot.request_types, Weighted::one(RequestType::Basic));
    assert_eq!(robot.methods, Weighted::one(Method::Get));
}

#[test]
fn image_has_one_origin_with_one_content_type() {
    let w = listing("image.pg").workload;
    assert_eq!(w.name, "main");
    assert_eq!((w.origins.len(), w.origins[0].authority.as_str()), (1, "192.168.0.2:9000"));
    let server = &w.servers[0];
    assert_eq!(server.think_s, Some(Distribution::Normal { mean: 0.3, deviation: 0.1 }));
    assert_eq!(server.idle_timeout, Some(Duration::from_secs(15)));
    assert_eq!(server.contents, Weighted::one(0));
    let [image] = w.contents.as_slice() else { panic!("one content type") };
    assert_eq!((image.kind.as_str(), image.cachable, image.checksum), ("image", 0.8, 0.01));
    assert_eq!(image.size_bytes, Distribution::Exponential { mean: 4.5 * 1024.0 });
    assert_eq!(image.mime_type, None);
    let third = 333.333;
    assert_eq!(
        weights(&image.extensions, Clone::clone),
        pairs(&[(".gif", third), (".jpeg", third), (".png", third)])
    );
    let life = image.life_cycle.as_ref().unwrap();
    let day = 86_400.0;
    assert_eq!(life.length_s, Distribution::LogNormal { mean: 30.0 * day, deviation: 7.0 * day });
    assert_eq!((life.variance, life.with_last_modified), (0.5, 1.0));
}

#[test]
fn image_has_nine_phases_and_freezes_its_working_set_after_640_seconds() {
    let w = listing("image.pg").workload;
    assert_eq!(w.schedule.working_set, WorkingSet::FrozenAfter(Duration::from_secs(640)));
    let names: Vec<&str> = w.schedule.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["warm", "fill", "link", "top1", "dec", "idle", "inc", "top2", "cool"]);
    let [warm, fill, link, top1, dec, idle, inc, top2, cool] = w.schedule.phases.as_slice() else { panic!() };
    let ramp = |begin, end| Ramp { begin, end };
    assert_eq!((warm.load, warm.recurrence, warm.log_stats), (ramp(0.1, 1.0), ramp(1.0, 1.0), false));
    assert_eq!(fill.goal.fill_bytes, Some(2 << 30));
    let low = 0.05 / 0.95;
    assert_eq!((fill.load, fill.recurrence), (ramp(1.0, 1.0), ramp(low, low)));
    assert_eq!((link.load, link.recurrence), (ramp(1.0, 1.0), ramp(low, 1.0)));
    assert_eq!((top1.load, top1.goal.duration), (ramp(1.0, 1.0), Some(Duration::from_secs(3600))));
    assert_eq!((dec.load, idle.load, inc.load), (ramp(1.0, 0.1), ramp(0.1, 0.1), ramp(0.1, 1.0)));
    assert_eq!((top2.load, cool.load, cool.log_stats), (ramp(1.0, 1.0), ramp(1.0, 0.0), false));
}

#[test]
fn mixed_has_1600_robots_with_many_kinds_of_requests() {
    let w = listing("mixed.pg").workload;
    assert_eq!(w.robot_count(), 1600);
    let robot = &w.robots[0];
    assert_eq!(robot.pace, Pace::Rate { per_second: 1.0 });
    assert!(robot.proxies.is_empty());
    assert!((robot.private_share - 0.1).abs() < 1e-12);
    assert_eq!(robot.pipeline_depth, None);
    let label = |t: &RequestType| format!("{t:?}");
    let types = [("Basic", 700.0), ("Ims200", 100.0), ("Ims304", 100.0), ("Reload", 100.0)];
    assert_eq!(weights(&robot.request_types, label), pairs(&types));
    let methods = [("Post", 150.0), ("Get", 700.0), ("Head", 150.0)];
    assert_eq!(weights(&robot.methods, |m| format!("{m:?}")), pairs(&methods));
    let ims = robot.post_contents.items()[0].0;
    assert_eq!(w.contents[usize::from(ims)].kind, "some-content");
}

#[test]
fn mixed_requests_pages_downloads_and_others_directly() {
    let w = listing("mixed.pg").workload;
    let kind = |index: &u16| w.contents[usize::from(*index)].kind.clone();
    let planned =
        [("image", 650.0), ("HTML", 150.0), ("some-content", 100.0), ("download", 5.0), ("other", 95.0)];
    assert_eq!(weights(&w.servers[0].contents, kind), pairs(&planned));
    let direct = [("HTML", 600.0), ("download", 20.0), ("other", 380.0)];
    assert_eq!(weights(&w.servers[0].direct_access, kind), pairs(&direct));
    let page = &w.contents[1];
    let embedded = page.embedded.as_ref().unwrap();
    assert_eq!(embedded.count, Distribution::Zipf { n: 13.0 });
    assert_eq!(embedded.contents, Weighted::one(0));
    let behaviour = &w.contents[2].behaviour;
    assert_eq!(behaviour.methods, Some(Weighted::one(Method::Post)));
    let types = [("Ims200", 500.0), ("Ims304", 500.0)];
    assert_eq!(weights(behaviour.request_types.as_ref().unwrap(), |t| format!("{t:?}")), pairs(&types));
}

#[test]
fn mixed_fills_at_a_tenth_of_its_rate_and_climbs() {
    let w = listing("mixed.pg").workload;
    assert_eq!(w.schedule.working_set, WorkingSet::FrozenAfter(Duration::from_secs(1600)));
    let [warm, fill, link, top1, inc, top2, cool] = w.schedule.phases.as_slice() else { panic!() };
    let ramp = |begin, end| Ramp { begin, end };
    assert_eq!((warm.load, fill.load, link.load), (ramp(0.1, 0.1), ramp(0.1, 0.1), ramp(0.1, 0.2)));
    assert_eq!(fill.goal.fill_bytes, Some(2200 << 20));
    assert_eq!((top1.load, inc.load), (ramp(0.2, 0.2), ramp(0.2, 1.0)));
    assert_eq!((top2.load, cool.load), (ramp(1.0, 1.0), ramp(1.0, 0.0)));
}

#[test]
fn what_the_listings_set_in_vain_is_said_once_each() {
    let messages = |name: &str| -> Vec<String> {
        let warnings = listing(name).warnings;
        warnings.iter().map(|warning| warning.message.clone()).collect()
    };
    assert_eq!(messages("image.pg"), ["the Content `cntSimple` is never used"]);
    let mixed = [
        "this pipeline depth is always 1",
        "the Phase `phDec` is never scheduled",
        "the Phase `phIdle` is never scheduled",
    ];
    assert_eq!(messages("mixed.pg"), mixed);
}
