//! Another configuration under load, and an end that is waited for no longer than it may take: nothing that
//! runs is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{Client, Server, config, eventually, file, on_command, switch};

#[test]
fn reloading_under_load_loses_nothing() {
    let servers = [Server::named("a"), Server::named("b"), Server::named("c")];
    let [a, b, c] = &servers;
    let class = "[[class]]\nname = \"x\"\nprefix = \"/x\"\npolicy = \"rand\"\n";
    let files = [
        file("policy = \"lc\"", &[a, b, c], ""),
        file("policy = \"lc\"", &[c], class),
        file("policy = \"rr\"", &[b, a], "[limits]\nserver-connections = 3\n"),
        file("policy = \"cap\"", &[a, c], class),
    ];
    let mut switch = switch(&files[0]);
    let address = switch.addresses()[0];
    let (is_over, responded) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (is_over, responded) = (&is_over, &responded);
            scope.spawn(move || {
                let mut client = Client::to(address);
                while !is_over.load(Ordering::SeqCst) {
                    // Half of them use a new connection for each request.
                    if number % 2 == 0 {
                        client = Client::to(address);
                    }
                    assert_eq!(client.get("/x").0, 200);
                    responded.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 1..20 {
            let then = responded.load(Ordering::SeqCst);
            switch.reload(config(&files[round % files.len()])).expect("is taken on");
            eventually("it goes on", || responded.load(Ordering::SeqCst) > then + 30);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(switch.addresses()[0], address);
    let total = switch.snapshot().expect("runs").total();
    assert_eq!(total.responses, [0, responded.load(Ordering::SeqCst) as u64, 0, 0, 0]);
}

#[test]
fn the_end_waits_for_running_requests_no_longer_than_it_may() {
    let (slow, _go) = on_command("slow");
    let mut hasty = switch(&file("[timeouts]\nstop = \"50ms\"\n", &[&slow], ""));
    let mut running = Client::new(&hasty);
    running.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || slow.count() == 1);
    hasty.stop();
    assert!(running.is_closed());
    hasty.wait().expect("ends well");
}
