//! Paths and back.

use std::sync::{Arc, OnceLock};

use assay_workload::model::Weighted;
use assay_workload::object::{ObjectId, Space};
use assay_workload::{PathError, Universe, UniverseOptions};
use proptest::prelude::*;

use crate::fixtures;

fn universe() -> &'static Universe {
    static UNIVERSE: OnceLock<Universe> = OnceLock::new();
    UNIVERSE.get_or_init(|| {
        let mut workload = fixtures::mixed_listing();
        workload.contents[4].prefixes = Weighted::new([("/w00000007/t".into(), 1.0), ("/a/b".into(), 1.0)]);
        Universe::new(Arc::new(workload), 3, 7, UniverseOptions::default()).unwrap()
    })
}

fn any_id() -> impl Strategy<Value = ObjectId> {
    let robot = 0u32..1600;
    let space = prop_oneof![
        Just(Space::Public),
        robot.clone().prop_map(Space::Private),
        robot.clone().prop_map(Space::RequestBody),
        robot.clone().prop_map(Space::BestEffort),
        Just(Space::InPublicPage { page: 1 }),
        (robot, 1u8..=3).prop_map(|(robot, kind)| Space::InRobotPage { page: 1, robot, kind }),
    ];
    (0u16..5, space, any::<u64>()).prop_map(|(content, space, serial)| ObjectId {
        origin: 0,
        content,
        space,
        serial,
    })
}

proptest! {
    #[test]
    fn every_path_leads_back_to_its_object(id in any_id()) {
        let path = universe().path(&universe().object(id));
        prop_assert_eq!(universe().parse_path(0, path.as_bytes()), Ok(id), "{}", path);
    }

    #[test]
    fn a_path_with_one_byte_changed_is_another_object_or_none(id in any_id(), at: prop::sample::Index, byte: u8) {
        let mut path = universe().path(&universe().object(id)).into_bytes();
        let at = at.index(path.len());
        prop_assume!(path[at] != byte);
        path[at] = byte;
        if let Ok(other) = universe().parse_path(0, &path) {
            prop_assert_ne!(other, id);
            prop_assert_eq!(universe().path(&universe().object(other)).into_bytes(), path);
        }
    }

    #[test]
    fn no_bytes_break_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..80), origin: u16) {
        prop_assert!(universe().parse_path(origin, &bytes).is_err());
    }

    #[test]
    fn nothing_like_a_path_breaks_the_parser(text in "(/[a-z]{0,3})?/w0000000[0-9]/t[0-9a-f]{1,5}/[psoui][0-9a-f]{0,9}[sou]?[0-9a-f]{0,9}_[0-9a-f]{14,18}(\\.[a-z]{0,4})?") {
        if let Ok(id) = universe().parse_path(0, text.as_bytes()) {
            prop_assert_eq!(universe().path(&universe().object(id)), text);
        }
    }
}

#[test]
fn paths_have_the_documented_form() {
    let id = ObjectId { origin: 0, content: 2, space: Space::Public, serial: 0x1f };
    assert_eq!(universe().path(&universe().object(id)), "/w00000007/t02/p_000000000000001f");
    let private = ObjectId { space: Space::Private(255), ..id };
    assert_eq!(universe().path(&universe().object(private)), "/w00000007/t02/sff_000000000000001f");
    let embedded = ObjectId { space: Space::InRobotPage { page: 1, robot: 16, kind: 2 }, ..id };
    assert_eq!(universe().path(&universe().object(embedded)), "/w00000007/t02/i1o10_000000000000001f");
}

#[test]
fn a_path_of_another_run_is_told_from_nonsense() {
    let parse = |path: &str| universe().parse_path(0, path.as_bytes());
    assert_eq!(parse("/w00000008/t02/p_000000000000001f"), Err(PathError::OtherWorld { seen: 8, ours: 7 }));
    assert_eq!(parse("/assay/health"), Err(PathError::Unknown));
    assert_eq!(parse("/w00000007/t02/p_000000000000001f?x"), Err(PathError::Unknown));
    assert_eq!(parse("/w00000007/t02/s640_000000000000001f"), Err(PathError::Unknown), "no such robot");
    assert_eq!(parse("/w00000007/t05/p_000000000000001f"), Err(PathError::Unknown), "no such type");
    assert_eq!(parse("/w00000007/t02/i0_000000000000001f"), Err(PathError::Unknown), "no page");
}
