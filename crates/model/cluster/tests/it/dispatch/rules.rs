//! Never a server that is gone, nothing lost, and the same names for the same seed.

use std::collections::BTreeSet;

use assay_cluster::dispatch::{
    ClassId, Completion, Moment, Policy, PolicyConfig, Request, RequestOutcome, ServerId, ServerState,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Up(u32, f64),
    Gone(u32),
    Choose(u16, u64),
    RequestAgain(u16, u64),
    Completion(usize, RequestOutcome),
    Report(u32, f64),
}

fn end() -> impl Strategy<Value = RequestOutcome> {
    prop_oneof![Just(RequestOutcome::Responded), Just(RequestOutcome::Failed), Just(RequestOutcome::Left)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0u32..8, 0.1f64..5.0).prop_map(|(server, weight)| Step::Up(server, weight)),
        1 => (0u32..8).prop_map(Step::Gone),
        8 => (0u16..4, 0u64..40).prop_map(|(class, document)| Step::Choose(class, document)),
        2 => (0u16..4, 0u64..40).prop_map(|(class, document)| Step::RequestAgain(class, document)),
        5 => (0usize..20, end()).prop_map(|(which, end)| Step::Completion(which, end)),
        2 => (0u32..8, 0.0f64..1.0).prop_map(|(server, busy)| Step::Report(server, busy)),
    ]
}

/// Does all of it; gives the names, and complains about one that is gone.
fn drive(policy: &mut dyn Policy, steps: &[Step]) -> Result<Vec<Option<ServerId>>, TestCaseError> {
    let mut up = BTreeSet::new();
    let mut under_way: Vec<(ServerId, Request)> = Vec::new();
    let mut names = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let now = Moment::from_nanos(number as u64 * 50_000_000);
        match step {
            Step::Up(server, weight) => {
                up.insert(ServerId(*server));
                policy.server_up(ServerId(*server), *weight, now);
            }
            Step::Gone(server) => {
                up.remove(&ServerId(*server));
                policy.server_gone(ServerId(*server), now);
            }
            Step::Choose(class, document) => {
                let request = Request { class: ClassId(*class), document: *document };
                let mut wanted = Vec::new();
                policy.probes(now, &mut wanted);
                prop_assert!(wanted.iter().all(|server| up.contains(server)), "asks one that is gone");
                let named = policy.choose(&request, now);
                prop_assert_eq!(named.is_some(), !up.is_empty(), "someone, if there is someone");
                if let Some(server) = named {
                    prop_assert!(up.contains(&server), "{:?} is gone", server);
                    policy.started(server, &request, now);
                    under_way.push((server, request));
                }
                names.push(named);
            }
            Step::RequestAgain(class, document) => {
                let request = Request { class: ClassId(*class), document: *document };
                let tried: Vec<_> = up.iter().take(up.len() / 2).copied().collect();
                let named = policy.choose_again(&request, &tried, now);
                prop_assert_eq!(
                    named.is_some(),
                    up.len() > tried.len(),
                    "one that was not tried, if there is one"
                );
                prop_assert!(named.is_none_or(|server| up.contains(&server) && !tried.contains(&server)));
                names.push(named);
            }
            Step::Completion(which, end) => {
                if *which < under_way.len() {
                    let (server, request) = under_way.swap_remove(*which);
                    policy.first_byte(server, &request, 1_000, now);
                    let completion =
                        Completion { took_nanos: 1_000_000 * (1 + *which as u64), outcome: *end };
                    policy.finished(server, &request, &completion, now);
                }
            }
            Step::Report(server, busy) => {
                let state = ServerState {
                    processor: *busy,
                    in_flight: *server,
                    latency_nanos: Some(1_000_000),
                    ..ServerState::default()
                };
                policy.reported(ServerId(*server), &state, now);
            }
        }
        let servers: Vec<_> = up.iter().copied().collect();
        prop_assert_eq!(policy.servers(), &servers[..]);
    }
    Ok(names)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_policy_names_a_server_that_is_gone_and_a_seed_decides_all(
        seed in any::<u64>(), steps in proptest::collection::vec(step(), 1..120),
    ) {
        for choice in PolicyConfig::all() {
            let once = drive(choice.build(seed).as_mut(), &steps)?;
            let again = drive(choice.build(seed).as_mut(), &steps)?;
            prop_assert_eq!(once, again, "{} is not the same twice", choice.name());
        }
    }

    #[test]
    fn whoever_balances_by_count_forgets_nothing_and_invents_nothing(
        servers in 2u32..8, rounds in 1usize..30,
    ) {
        // After everything has ended, policies that count must take all servers for equally idle: so many requests as
        // servers, started and not finished, go to all of them.
        for name in ["lc", "wlc"] {
            let mut policy = PolicyConfig::from_name(name).expect("it exists").build(1);
            (0..servers).for_each(|server| policy.server_up(ServerId(server), 1.0, Moment::START));
            let request = Request { class: ClassId(0), document: 1 };
            let mut under_way = Vec::new();
            for _ in 0..rounds {
                let server = policy.choose(&request, Moment::START).expect("a server");
                policy.started(server, &request, Moment::START);
                under_way.push(server);
            }
            let well = Completion { took_nanos: 1, outcome: RequestOutcome::Responded };
            under_way.iter().for_each(|server| policy.finished(*server, &request, &well, Moment::START));
            let mut named = BTreeSet::new();
            for _ in 0..servers {
                let server = policy.choose(&request, Moment::START).expect("a server");
                policy.started(server, &request, Moment::START);
                named.insert(server);
            }
            prop_assert_eq!(named.len(), servers as usize);
        }
    }
}
