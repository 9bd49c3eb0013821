//! Who robots say they are.

use std::collections::HashSet;
use std::sync::Arc;

use assay_workload::credentials::made_user;
use assay_workload::model::{Credentials, UserRun, Workload};
use assay_workload::{Universe, UniverseOptions};
use proptest::prelude::*;

use crate::fixtures;
use crate::xacts::is_share;

fn universe(users: Vec<UserRun>, wrong_share: f64) -> Universe {
    let mut workload: Workload = fixtures::small();
    workload.robots.insert(0, fixtures::robots(7, 1.0, 0.5));
    workload.robots[1].credentials = Credentials { users, wrong_share };
    Universe::new(Arc::new(workload), 5, 1, UniverseOptions::default()).unwrap()
}

fn named(user: &str) -> UserRun {
    UserRun::One { user: user.into(), password: format!("{user}'s") }
}

fn made(count: u32) -> UserRun {
    UserRun::Made { count, realm: "site".into() }
}

#[test]
fn robots_take_users_in_turn() {
    let universe = universe(vec![named("ann"), made(30), named("bob")], 0.0);
    // 20 robots, numbered from 7; 32 users.
    let user = |robot, session| universe.login(robot, session).unwrap().user;
    assert_eq!(user(7, 0), "ann");
    assert_eq!(user(8, 0), made_user(5, "site", 0).0);
    assert_eq!(user(18, 1), "bob");
    assert_eq!(user(19, 1), "ann", "round again");
    let all: HashSet<_> = (0..8).flat_map(|session| (7..27).map(move |robot| (robot, session))).collect();
    let users: HashSet<_> = all.iter().map(|(robot, session)| user(*robot, *session)).collect();
    assert_eq!(users.len(), 32, "each is used");
    let at_once: HashSet<_> = (7..27).map(|robot| user(robot, 3)).collect();
    assert_eq!(at_once.len(), 20, "nobody is two robots at once while there are enough");
    assert!((0..7).all(|robot| universe.login(robot, 0).is_none()), "others are anonymous");
    assert_eq!(universe.login(1000, 0), None);
}

#[test]
fn a_share_shows_a_wrong_password() {
    let universe = universe(vec![made(100)], 0.25);
    let logins: Vec<_> = (7..27)
        .flat_map(|robot| (0..500).map(move |session| (robot, session)))
        .map(|(robot, session)| universe.login(robot, session).unwrap())
        .collect();
    assert!(is_share(logins.iter().filter(|login| login.wrong).count(), 10_000, 0.25));
    for login in &logins {
        let right = universe.password_of(&login.user).expect("is a user");
        assert_eq!(login.wrong, login.password != right);
    }
}

#[test]
fn only_users_have_passwords() {
    let universe = universe(vec![named("ann"), made(10)], 0.0);
    assert_eq!(universe.password_of("ann").as_deref(), Some("ann's"));
    let (user, password) = made_user(5, "site", 9);
    assert_eq!(universe.password_of(&user), Some(password));
    let (beyond, _) = made_user(5, "site", 10);
    let (elsewhere, _) = made_user(5, "other", 1);
    let (other_seed, _) = made_user(6, "site", 1);
    for nobody in
        [beyond.as_str(), &elsewhere, &other_seed, "user1@site", "user1_0@site", "@", "ann@site", ""]
    {
        assert_eq!(universe.password_of(nobody), None, "{nobody}");
    }
}

proptest! {
    #[test]
    fn any_text_may_be_taken_for_a_user(name: String) {
        prop_assert!(universe(vec![made(10)], 0.0).password_of(&name).is_none());
    }
}
