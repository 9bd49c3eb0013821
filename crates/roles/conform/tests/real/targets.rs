//! Targets that store nothing, end connections, or send what is not HTTP.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_conform::case::Case;
use assay_conform::document::{Document, TargetInfo};
use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Outcome, Target, run};
use assay_conform::suite::Suite;
use assay_conform::verdict::Verdict;
use assay_testbed::violations;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use crate::mutants::{TextEdit, on_text, without};
use crate::relay::{message, relay};

/// Runs a test's future as the command does.
pub fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(future))
}

/// A cache that listens there: a reverse proxy that speaks HTTP/1.1 in clear.
pub fn cache_at(address: SocketAddr) -> Target {
    Target {
        address,
        host: "a.example".into(),
        stores: true,
        is_forward: false,
        several: false,
        tls: None,
        http2: Http2::No,
    }
}

fn cases(names: &[&str]) -> Vec<Rc<Case>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Suite::bundled().unwrap().chosen(&names).unwrap()
}

fn verdict(outcomes: &[Outcome], name: &str) -> Verdict {
    outcomes.iter().find(|outcome| outcome.case.name == name).unwrap().judgement.verdict
}

async fn tried(names: &[&str], stores: bool, target: impl FnOnce(SocketAddr) -> SocketAddr) -> Vec<Outcome> {
    let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
    let target = Target { stores, ..cache_at(target(origin.address)) };
    run(&cases(names), &target, &origin, |_, _| ()).await
}

#[test]
fn without_a_cache_nothing_is_stored_and_nothing_wrong_is_served() {
    on_one_thread(async {
        let names = ["stores", "no-store-response/plain", "vary-differs/accept", "vary-both-missing"];
        let outcomes = tried(&names, true, |origin| origin).await;
        assert_eq!(verdict(&outcomes, "stores"), Verdict::No);
        assert_eq!(verdict(&outcomes, "no-store-response/plain"), Verdict::Pass);
        assert_eq!(verdict(&outcomes, "vary-differs/accept"), Verdict::Pass);
        assert_eq!(verdict(&outcomes, "vary-both-missing"), Verdict::DependencyMissing);
    });
}

#[test]
fn what_is_seen_of_a_target_is_a_document_as_its_schema_says() {
    on_one_thread(async {
        let names = ["stores", "no-store-response/plain", "authorization-forwarded"];
        let mut document = Document::new("0", 1);
        document.add(TargetInfo::default(), &tried(&names, true, |origin| origin).await);
        let json = document.to_json().unwrap();
        let found = violations(&Document::json_schema(), &serde_json::from_str(&json).unwrap());
        assert!(found.is_empty() && json.contains("\"exchanges\""), "{found:?} {json}");
        assert_eq!(Document::from_json(&json).unwrap(), document);
    });
}

#[test]
fn cases_for_caches_do_not_apply_to_what_is_none() {
    on_one_thread(async {
        let outcomes = tried(&["stores", "authorization-forwarded"], false, |origin| origin).await;
        assert_eq!(verdict(&outcomes, "stores"), Verdict::NotApplicable);
        assert_eq!(verdict(&outcomes, "authorization-forwarded"), Verdict::Pass);
    });
}

#[test]
fn a_target_that_contradicts_itself_meets_a_requirement_sometimes() {
    on_one_thread(async {
        let text = "topic = \"own\"\n[[case]]\nname = \"ok\"\nlevel = \"MUST\"\nsection = \"x\"\nrule = \"r\"\n\
            steps = [{ expect = { status = 200 } }]\n";
        let cases: Vec<Rc<Case>> =
            assay_conform::read::read("own.toml", text).unwrap().cases.into_iter().map(Rc::new).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        spawn_local(async move {
            // Every third request is refused, the first among them.
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await.unwrap();
                let status = if number % 3 == 0 { "404 Not Found" } else { "200 OK" };
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
        let target = cache_at(address);
        let outcomes = run(&cases, &target, &origin, |_, _| ()).await;
        let outcome = &outcomes[0];
        assert_eq!(outcome.judgement.verdict, Verdict::Sometimes, "{:?}", outcome.judgement);
        assert_eq!((outcome.times.held, outcome.times.unheld, outcome.tries), (8, 4, 12));
        let reason = "it held in 8 of 12 tries; otherwise step 1: the response has status 404, not 200";
        assert_eq!(outcome.judgement.reason, reason);
        assert!(!outcome.observations.is_empty(), "the exchanges of a try that did not hold are evidence");
    });
}

#[test]
fn a_target_that_is_gone_says_nothing() {
    on_one_thread(async {
        // No test listens on this host: no other can be given the port.
        let gone = |_| std::net::TcpListener::bind("127.83.0.1:0").unwrap().local_addr().unwrap();
        let outcomes = tried(&["no-store-response/plain"], true, gone).await;
        assert_eq!(verdict(&outcomes, "no-store-response/plain"), Verdict::Inconclusive);
    });
}

#[test]
fn a_target_that_sends_no_http_says_nothing() {
    on_one_thread(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        spawn_local(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(b"\x00\xffgarbage\r\n\r\n").await.unwrap();
            }
        });
        let outcomes = tried(&["no-store-response/plain"], true, |_| address).await;
        let outcome = outcomes.iter().find(|outcome| outcome.case.name == "no-store-response/plain").unwrap();
        assert_eq!(outcome.judgement.verdict, Verdict::Inconclusive);
        assert!(outcome.judgement.reason.contains("not HTTP"), "{}", outcome.judgement.reason);
    });
}

/// What a case says of a gateway of which all is right but this edit of responses.
async fn verdict_with(edit: TextEdit, case: &str) -> Verdict {
    let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
    let target =
        Target { stores: false, ..cache_at(relay(origin.address, |request| request, on_text(edit)).await) };
    verdict(&run(&cases(&[case]), &target, &origin, |_, _| ()).await, case)
}

#[test]
fn who_reads_by_the_length_what_has_a_coding_is_found_and_who_removes_the_length_is_right() {
    on_one_thread(async {
        let case = "response-coding-over-length";
        let by_length = |text: String| without(&text, "Transfer-Encoding");
        let by_coding = |text: String| without(&text, "Content-Length");
        assert_eq!(verdict_with(by_length, case).await, Verdict::Fail);
        assert_eq!(verdict_with(by_coding, case).await, Verdict::Pass);
    });
}

/// A gateway that sends the second of two requests on first, and its response, or does so in order.
async fn two_at_a_time(origin: SocketAddr, is_reversed: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            spawn_local(async move {
                let mut buf = Vec::new();
                let mut requests = Vec::new();
                while requests.len() < 2 {
                    requests.push(message(&mut client, &mut buf, None).await?.0);
                }
                if is_reversed {
                    requests.reverse();
                }
                for request in requests {
                    let (mut server, mut buf) = (TcpStream::connect(origin).await.ok()?, Vec::new());
                    server.write_all(&request).await.ok()?;
                    let (response, _) = message(&mut server, &mut buf, Some("GET")).await?;
                    client.write_all(&response).await.ok()?;
                }
                Some(())
            });
        }
    });
    address
}

#[test]
fn responses_in_another_order_than_their_requests_are_found() {
    on_one_thread(async {
        for (is_reversed, expected) in [(true, Verdict::Fail), (false, Verdict::Pass)] {
            let origin = Rc::new(Origin::start("127.0.0.1:0".parse().unwrap()).unwrap());
            let address = two_at_a_time(origin.address, is_reversed).await;
            let target = Target { stores: false, ..cache_at(address) };
            let outcomes = run(&cases(&["pipelined"]), &target, &origin, |_, _| ()).await;
            assert_eq!(verdict(&outcomes, "pipelined"), expected, "reversed: {is_reversed}");
        }
    });
}
