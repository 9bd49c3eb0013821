//! Requests through proxies that fail, each in its own way.

use assay_record::spe::{ResponseError, ResponseRow, Verdict};
use tokio::net::TcpSocket;

use crate::multiplier_bed::{Bed, Part, Server, ok};

/// Two requests through these proxies, which fail each in its own way, one that is not there, and one that is sound.
pub async fn request_twice(
    broken: &[(Vec<Part>, ResponseError)],
    response_timeout_ms: u64,
) -> Vec<ResponseRow> {
    let collector = Server::of(ok("", "hello")).await;
    let mut proxies = Vec::new();
    for (response, _) in broken {
        proxies.push(Server::of(response.clone()).await.address);
    }
    // There is no listener, and no other program gets the port as long as this has it.
    let gone = TcpSocket::new_v4().unwrap();
    gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let sound = Server::of(ok("", "hello")).await;
    proxies.extend([gone.local_addr().unwrap(), sound.address]);
    let bed = Bed::with(&collector, &proxies, |spec| spec.response_timeout_ms = response_timeout_ms);
    for requested in 1..=2 {
        assert_eq!(bed.get("/").await.body.as_deref(), Some("hello"));
        bed.responses(requested).await;
    }
    bed.finish().await
}

pub fn check(rows: &[ResponseRow], target: u16, expected: (Verdict, Option<ResponseError>)) {
    let of_target: Vec<_> = rows.iter().filter(|row| row.target == target).collect();
    assert_eq!(of_target.len(), 2);
    for row in of_target {
        assert_eq!((row.verdict, row.error), expected, "{target}: {row:?}");
    }
}
