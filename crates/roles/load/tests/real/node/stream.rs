//! What clients request is what the simulation requests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_cluster::dispatch::PolicyConfig;
use assay_cluster::simulate::{ClientId, Experiment, OfferedLoad, RequestStream, path_of};
use assay_load::node::ModelClock;
use assay_load::node::clients::{ClientShare, ClientsSpec, ClientsTarget, run};
use assay_load::node::nodes::NodeKind;
use tokio::net::TcpSocket;

use crate::node::support::{SMALL, cluster, start};

/// Clients as the file says, with this target.
fn clients(experiment: &Experiment, target: ClientsTarget, clock: ModelClock) -> ClientsSpec {
    ClientsSpec {
        services: experiment.services.clone(),
        weights: experiment.mixes[0].weights.clone(),
        seed: experiment.seed,
        load: experiment.loads[0],
        share: ClientShare::ALL,
        target,
        host: None,
        keep_alive: false,
        warm_up_s: experiment.warm_up_s,
        measure_s: experiment.measure_s,
        surroundings: None,
        check_sizes: true,
        timeout: Duration::from_secs(20),
        clock,
    }
}

#[test]
fn clients_request_the_simulations_stream_in_its_order() {
    let experiment = cluster(SMALL);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    let requested: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requested);
    // Ends with the test: it only listens.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut head = [0; 2048];
            let length = stream.read(&mut head).unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..length]).into_owned();
            if let Some(path) = text.split(' ').nth(1) {
                seen.lock().expect("no panic").push(path.to_owned());
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let clock = ModelClock::now_at(1.0);
    let spec = clients(&experiment, ClientsTarget::One(address), clock);
    let outcome =
        run(ClientsSpec { load: OfferedLoad::Clients(1), check_sizes: false, ..spec }).expect("clients");
    assert!(outcome.tally.count() > 10, "{:?}", outcome.failures);
    let stream = RequestStream::new(&experiment.services, &experiment.mixes[0].weights, experiment.seed);
    for (number, path) in requested.lock().expect("no panic").iter().enumerate() {
        let expected = stream.request(Some(ClientId(0)), number as u64);
        assert_eq!(
            *path,
            path_of(&experiment.services[expected.service as usize], expected.number),
            "{number}"
        );
    }
}

#[test]
fn every_service_is_served_with_its_bytes_by_all_nodes_in_turn() {
    let experiment = cluster(SMALL);
    let clock = ModelClock::now_at(1.0);
    let nodes = start(&experiment, NodeKind::Virtual, clock);
    let target = ClientsTarget::Nodes {
        servers: nodes.addresses().iter().map(|address| (*address, 1.0)).collect(),
        policy: PolicyConfig::RoundRobin,
        retries: 1,
        reports_every_s: None,
    };
    let outcome = run(clients(&experiment, target, clock)).expect("clients");
    assert_eq!((outcome.tally.failures(), outcome.failures.len()), (0, 0), "{:?}", outcome.failures);
    assert!(outcome.tally.count() > 8, "{}", outcome.tally.count());
    // Each of the four clients may have opened one before the measurement, whose request ended in it.
    let opened = outcome.connections + 4;
    assert!(
        opened >= outcome.tally.count(),
        "a connection for each request: {opened} {}",
        outcome.tally.count()
    );
}

#[test]
fn a_failed_server_is_not_the_end_when_another_can_be_tried() {
    let experiment = cluster(SMALL);
    let clock = ModelClock::now_at(1.0);
    let nodes = start(&experiment, NodeKind::Virtual, clock);
    // There is no listener, and no other program gets the port as long as this has it.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let gone = socket.local_addr().expect("is bound");
    let target = ClientsTarget::Nodes {
        servers: vec![(gone, 1.0), (nodes.addresses()[0], 1.0)],
        policy: PolicyConfig::RoundRobin,
        retries: 1,
        reports_every_s: Some(0.1),
    };
    let outcome =
        run(ClientsSpec { keep_alive: true, ..clients(&experiment, target, clock) }).expect("clients");
    assert_eq!(outcome.tally.failures(), 0, "{:?}", outcome.failures);
    assert!(
        outcome.failures.keys().all(|kind| kind.contains("could not be reached")),
        "{:?}",
        outcome.failures
    );
    // How many there were depends on how busy the machine is.
    assert!(!outcome.failures.is_empty() && outcome.tally.count() > 0);
}

#[test]
fn an_open_loop_offers_what_it_should_and_costs_go_with_the_request() {
    let text = SMALL
        .replace("clients = [4]", "rates = [\"200/s\"]")
        .replace("processor = \"20ms\"", "processor = \"1ms\"\nlaw = \"exponential\"");
    let experiment = cluster(&text);
    let clock = ModelClock::now_at(1.0);
    let nodes = start(&experiment, NodeKind::Virtual, clock);
    let outcome =
        run(clients(&experiment, ClientsTarget::One(nodes.addresses()[0]), clock)).expect("clients");
    assert_eq!(outcome.tally.failures(), 0, "{:?}", outcome.failures);
    // 100 are due in half a second; a machine that is busy serves some of them later.
    assert!((1..=200).contains(&outcome.tally.count()), "{}", outcome.tally.count());
}

#[test]
fn wrong_sizes_are_failures_and_are_named() {
    let experiment = cluster(SMALL);
    let clock = ModelClock::now_at(1.0);
    let nodes = start(&experiment, NodeKind::Virtual, clock);
    let mut spec = clients(&experiment, ClientsTarget::One(nodes.addresses()[0]), clock);
    spec.services.iter_mut().for_each(|service| service.bytes += 1);
    let outcome = run(spec).expect("clients");
    assert_eq!(outcome.tally.count(), 0);
    let kinds: BTreeMap<_, _> = outcome.failures.into_iter().collect();
    assert!(kinds.keys().any(|kind| kind.contains("5125 bytes instead of 5126")), "{kinds:?}");
}
