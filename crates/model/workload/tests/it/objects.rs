//! Objects and what they contain.

use std::sync::Arc;

use assay_workload::model::{Method, RequestType, Weighted};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Launch, Universe, UniverseError, UniverseOptions};

use crate::fixtures;

fn universe() -> Universe {
    Universe::new(Arc::new(fixtures::mixed_listing()), 3, 7, UniverseOptions::default()).unwrap()
}

fn page(serial: u64) -> ObjectId {
    ObjectId { origin: 0, content: 1, space: Space::Public, serial }
}

fn launch(serial: u64, number: u64) -> Launch {
    Launch {
        due: std::time::Duration::ZERO,
        robot: 5,
        number,
        phase: 0,
        session: 0,
        object: page(serial),
        revisit: true,
        request_type: RequestType::Basic,
        method: Method::Get,
        post_body: None,
        special: 1.0,
    }
}

#[test]
fn sizes_and_cachability_have_their_shares() {
    let universe = universe();
    let n = 50_000;
    let objects: Vec<_> =
        (0..n).map(|serial| universe.object(ObjectId { content: 0, ..page(serial) })).collect();
    let mean = objects.iter().map(|o| o.size_bytes as f64).sum::<f64>() / n as f64;
    assert!((mean - 9216.5).abs() < 4.0 * 9216.0 / (n as f64).sqrt(), "{mean}");
    let cachable = objects.iter().filter(|o| o.cachable).count() as f64;
    assert!((cachable - 0.8 * n as f64).abs() < 4.0 * (n as f64 * 0.16).sqrt());
    let checked = objects.iter().filter(|o| o.checksum).count() as f64;
    assert!((checked - 0.01 * n as f64).abs() < 4.0 * (n as f64 * 0.01).sqrt());
}

#[test]
fn every_part_of_an_id_makes_another_object() {
    let universe = universe();
    let ids = [
        page(1),
        page(2),
        ObjectId { content: 0, ..page(1) },
        ObjectId { space: Space::Private(0), ..page(1) },
        ObjectId { space: Space::Private(1), ..page(1) },
        ObjectId { space: Space::RequestBody(0), ..page(1) },
        ObjectId { space: Space::BestEffort(0), ..page(1) },
        ObjectId { space: Space::InPublicPage { page: 0 }, ..page(1) },
        ObjectId { space: Space::InPublicPage { page: 1 }, ..page(1) },
        ObjectId { space: Space::InRobotPage { page: 1, robot: 0, kind: 1 }, ..page(1) },
        ObjectId { space: Space::InRobotPage { page: 1, robot: 0, kind: 2 }, ..page(1) },
    ];
    let mut keys: Vec<u64> = ids.iter().map(|id| universe.object(*id).key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), ids.len());
    let other = Universe::new(Arc::new(fixtures::mixed_listing()), 4, 7, UniverseOptions::default()).unwrap();
    assert_ne!(other.object(page(1)).key, universe.object(page(1)).key);
}

#[test]
fn the_world_tag_does_not_change_objects() {
    let other = Universe::new(Arc::new(fixtures::mixed_listing()), 3, 8, UniverseOptions::default()).unwrap();
    assert_eq!(other.object(page(1)), universe().object(page(1)));
}

#[test]
fn children_are_parts_of_their_page_in_order() {
    let universe = universe();
    for serial in 0..500 {
        let object = universe.object(page(serial));
        let count = universe.embedded_count(&object);
        assert!((1..=13).contains(&count));
        let children: Vec<_> = universe.children(&launch(serial, 9)).collect();
        assert_eq!(children.len(), usize::from(count), "all are fetched");
        for (index, child) in children.iter().enumerate() {
            assert_eq!(usize::from(child.place), index + 1);
            assert_eq!(Some(child.object), universe.embedded(&object, child.place));
            assert_eq!(child.object.serial, serial * 256 + u64::from(child.place));
            let end = object.size_bytes * u64::from(child.place) / (u64::from(count) + 1);
            assert_eq!(child.link_end, end);
            assert!(child.revisit);
        }
        assert_eq!(universe.embedded(&object, 0), None);
        assert_eq!(universe.embedded(&object, count + 1), None);
    }
}

#[test]
fn only_responses_with_a_body_bring_children() {
    let universe = universe();
    let brings = |request_type, method| {
        universe.children(&Launch { request_type, method, ..launch(1, 1) }).next().is_some()
    };
    for request_type in [RequestType::Basic, RequestType::Reload, RequestType::Ims200] {
        assert!(brings(request_type, Method::Get));
        assert!(!brings(request_type, Method::Head) && !brings(request_type, Method::Post));
    }
    assert!(!brings(RequestType::Ims304, Method::Get));
    let image = Launch { object: ObjectId { content: 0, ..page(1) }, ..launch(1, 1) };
    assert_eq!(universe.children(&image).count(), 0);
}

#[test]
fn robots_fetch_their_share_of_embedded_objects() {
    let mut workload = fixtures::mixed_listing();
    workload.robots[0].embedded_recurrence = 0.3;
    let universe = Universe::new(Arc::new(workload), 3, 7, UniverseOptions::default()).unwrap();
    let all: usize = (0..5000).map(|n| usize::from(universe.embedded_count(&universe.object(page(n))))).sum();
    let fetched: Vec<_> =
        (0..5000).flat_map(|n| universe.children(&launch(n, n)).collect::<Vec<_>>()).collect();
    let expected = 0.3 * all as f64;
    assert!((fetched.len() as f64 - expected).abs() < 4.0 * expected.sqrt());
    let basic = fetched.iter().filter(|child| child.request_type == RequestType::Basic).count() as f64;
    assert!((basic - 0.7 * fetched.len() as f64).abs() < 4.0 * basic.sqrt());
}

#[test]
fn workloads_that_cannot_be_run_say_what_is_missing() {
    let error = |change: &dyn Fn(&mut assay_workload::model::Workload)| {
        let mut workload = fixtures::small();
        change(&mut workload);
        Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default()).unwrap_err()
    };
    assert_eq!(error(&|w| w.robots.clear()), UniverseError::NoRobots);
    assert!(matches!(error(&|w| w.robots[0].origins = Weighted::none()), UniverseError::NoOrigins { .. }));
    assert!(matches!(
        error(&|w| w.robots[0].origins = Weighted::one(9)),
        UniverseError::Missing { index: 9, .. }
    ));
    let no_access = error(&|w| w.servers[0].direct_access = Weighted::none());
    assert!(matches!(no_access, UniverseError::NothingToRequest { .. }));
    assert!(matches!(error(&|w| w.robots[0].recurrence = 1.5), UniverseError::Number { .. }));
    assert!(matches!(error(&|w| w.contents[0].cachable = f64::NAN), UniverseError::Number { .. }));
}

#[test]
fn robots_belong_to_their_groups_and_some_live() {
    let mut workload = fixtures::small();
    workload.robots.push(fixtures::robots(0, 1.0, 0.5));
    workload.robots.push(fixtures::robots(7, 1.0, 0.5));
    let universe = Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default()).unwrap();
    assert_eq!((universe.group_of(0), universe.group_of(19)), (Some(0), Some(0)));
    assert_eq!(
        (universe.group_of(20), universe.group_of(26), universe.group_of(27)),
        (Some(2), Some(2), None)
    );
    let alive = |population| (0..20).filter(|robot| universe.is_alive(*robot, population)).count();
    assert_eq!((alive(0.0), alive(0.26), alive(1.0)), (1, 5, 20));
    let grown = (0..20).all(|robot| !universe.is_alive(robot, 0.3) || universe.is_alive(robot, 0.6));
    assert!(grown, "who lives in a small population lives in a larger one");
}
