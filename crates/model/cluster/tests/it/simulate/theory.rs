//! Queues that have closed forms, and the same from the simulation.

use crate::simulate::support::only;

/// A cluster of single-processor nodes of one worker each (first come, first served), with Poisson arrivals.
fn queues(policy: &str, nodes: u32, load: f64, law: &str, measure_s: u32) -> String {
    // A request takes 10 ms on average, so a node serves 100 a second.
    let rate = load * 100.0 * f64::from(nodes);
    format!(
        "policies = [\"{policy}\"]\nrates = [\"{rate}/s\"]\nrepetitions = 1\nwarm-up = \"50s\"\nmeasure = \"{measure_s}s\"\n\
         [node]\nworkers = 1\n[[cluster]]\nnodes = {nodes}\n\
         [[service]]\nname = \"work\"\nprocessor = \"10ms\"\nlaw = \"{law}\"\n"
    )
}

fn assert_close(what: &str, seen: f64, expected: f64, part: f64) {
    assert!((seen / expected - 1.0).abs() < part, "{what}: {seen:.5} instead of {expected:.5}");
}

#[test]
fn rand_makes_a_row_of_m_m_1_queues() {
    for load in [0.5, 0.8] {
        let seen = only(&queues("rand", 4, load, "exponential", 1500));
        assert_close(&format!("M/M/1 at {load}"), seen.mean_s(), 0.010 / (1.0 - load), 0.05);
        assert_close("its utilisation", seen.processor / seen.looks as f64, load, 0.02);
        // A queue has i or more with probability load^i.
        assert_close("three or more", seen.tail(3), load.powi(3), 0.08);
    }
}

#[test]
fn rand_with_requests_that_are_all_alike_makes_m_d_1_queues() {
    let load = 0.8;
    let seen = only(&queues("rand", 4, load, "constant", 1500));
    let expected = 0.010 * (1.0 + load / (2.0 * (1.0 - load)));
    assert_close("M/D/1", seen.mean_s(), expected, 0.05);
}

#[test]
fn rr_makes_a_row_of_queues_with_erlang_arrivals() {
    let (nodes, load) = (4_u32, 0.8);
    let seen = only(&queues("rr", nodes, load, "exponential", 1500));
    // E_k/M/1: the root of σ = (kλ / (kλ + μ (1 − σ)))^k in (0, 1); the time in the queue is 1 / (μ (1 − σ)).
    let (k, mu) = (f64::from(nodes), 100.0);
    let lambda = load * mu;
    let mut sigma = 0.5_f64;
    for _ in 0..1000 {
        sigma = (k * lambda / (k * lambda + mu * (1.0 - sigma))).powf(k);
    }
    assert_close("E_4/M/1", seen.mean_s(), 1.0 / (mu * (1.0 - sigma)), 0.05);
}

#[test]
fn processors_that_share_their_time_do_not_mind_how_long_requests_are() {
    // M/G/1 with processor sharing has the mean of M/M/1 for every law.
    let text = queues("rand", 4, 0.7, "constant", 1500).replace("workers = 1\n", "");
    assert_close("M/D/1-PS", only(&text).mean_s(), 0.010 / 0.3, 0.05);
}

#[test]
fn the_power_of_two_has_its_double_exponential_tail() {
    let load = 0.9;
    let seen = only(&queues("p2c", 300, load, "exponential", 60));
    for least in 1..=4_u32 {
        let expected = load.powi(2_i32.pow(least) - 1);
        assert_close(&format!("{least} or more"), seen.tail(least as usize), expected, 0.08);
    }
    let chance = only(&queues("rand", 50, load, "exponential", 30));
    assert!(chance.tail(4) > 2.0 * seen.tail(4), "{} is not much more than {}", chance.tail(4), seen.tail(4));
}

#[test]
fn one_node_with_several_workers_is_an_m_m_c_queue() {
    let (servers, load) = (4_u32, 0.8);
    let text = queues("rand", 1, load * f64::from(servers), "exponential", 4000)
        .replace("workers = 1\n", "workers = 4\nprocessors = 4\n");
    // Erlang's C: the probability to wait.
    let offered = load * f64::from(servers);
    let term = |n: u32| (1..=n).fold(1.0, |term, k| term * offered / f64::from(k));
    let last = term(servers) / (1.0 - load);
    let waits = last / ((0..servers).map(term).sum::<f64>() + last);
    let expected = 0.010 * (1.0 + waits / (f64::from(servers) * (1.0 - load)));
    assert_close("M/M/4", only(&text).mean_s(), expected, 0.05);
}

#[test]
fn rand_with_clients_without_think_time_is_a_closed_network() {
    // n queues alike, N customers, each of which goes to any queue: N / (N + n - 1) of what n servers can do.
    for clients in [1_u32, 4, 8, 24] {
        let text = queues("rand", 4, 0.5, "exponential", 1500);
        let rates = text.lines().nth(1).expect("the load").to_owned();
        let seen = only(&text.replace(&rates, &format!("clients = [{clients}]")));
        let expected = 400.0 * f64::from(clients) / f64::from(clients + 3);
        assert_close(&format!("{clients} clients"), seen.responded as f64 / 1500.0, expected, 0.03);
    }
}

#[test]
fn bounded_hashing_lets_no_node_have_more_than_its_part_of_all_clients() {
    // At most 40 requests are under way, so no node of 8 may ever have more than 1.25 times a fair share: 6.25, so 7.
    let text = "clients = [40]\nrepetitions = 1\nwarm-up = \"5s\"\nmeasure = \"300s\"\n[[cluster]]\nnodes = 8\n\
                [[service]]\nname = \"page\"\nprocessor = \"10ms\"\nlaw = \"exponential\"\ndocuments = 200\nzipf = 1.2\n\
                [[policy]]\nname = \"bounded-hash\"\nbound = 1.25\n";
    let seen = only(text);
    let most = seen.in_flight.iter().rposition(|count| *count > 0).expect("nodes were looked at");
    assert_eq!(most, 7, "the popular document's node is full, and never more than that");
}
