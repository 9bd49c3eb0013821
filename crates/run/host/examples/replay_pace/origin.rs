//! The pages, and how slowly they come.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_base::random::{Rng, mix};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Requests so far: no two of them take the same time.
static REQUESTED: AtomicU64 = AtomicU64::new(0);

/// A page: drawn from its number, whatever the run.
pub struct Page {
    /// Until its head comes.
    first_ms: u64,
    /// Sizes of the parts, and how long after the one before each comes.
    parts: Vec<(usize, u64)>,
    is_cacheable: bool,
}

impl Page {
    /// Of `/kind/run/number`.
    pub fn of(path: &str) -> Self {
        let mut words = path.split('/').skip(1);
        let kind = words.next().unwrap_or_default();
        let number: u64 = words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut rng = Rng::new(number);
        let mut draw = |least: u64, most: u64| least + rng.next_u64() % (most - least + 1);
        // Roughly the document's pages: half a second on average, most of them faster.
        let first_ms = draw(10, 60) + if draw(0, 3) == 0 { draw(100, 400) } else { draw(0, 60) };
        let parts = (0..draw(1, 20)).map(|_| (draw(200, 6000) as usize, draw(0, 25))).collect();
        Self { first_ms, parts, is_cacheable: kind == "c" || number.is_multiple_of(3) }
    }

    /// Offsets in the body at which parts end.
    pub fn ends(&self) -> Vec<usize> {
        let mut at = 0;
        let end = |(size, _): &(usize, u64)| {
            at += size;
            at
        };
        self.parts.iter().map(end).collect()
    }
}

/// Listens at the address and responds for as long as the program runs. To be called in a thread of its own; `listening` is
/// told where.
pub fn serve(address: SocketAddr, listening: impl FnOnce(SocketAddr)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.expect("an address of our own");
        listening(listener.local_addr().expect("it is bound"));
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(response(stream));
            }
        }
    });
}

async fn response(mut stream: TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
            return;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let page = Page::of(request.split(' ').nth(1).unwrap_or_default());
    let length: usize = page.parts.iter().map(|(size, _)| size).sum();
    let control = if page.is_cacheable { "public, max-age=3600" } else { "private, no-store" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nCache-Control: {control}\r\n\r\n"
    );
    if stream.set_nodelay(true).is_err() {
        return;
    }
    // A server is not always equally fast: half to twice as long.
    let slowness = 500 + mix(REQUESTED.fetch_add(1, Ordering::Relaxed).wrapping_mul(7)) % 1500;
    let pause = |ms: u64| tokio::time::sleep(Duration::from_micros(ms * slowness));
    pause(page.first_ms).await;
    let mut sent = stream.write_all(head.as_bytes()).await;
    for (size, after_ms) in page.parts {
        if sent.is_err() {
            return;
        }
        pause(after_ms).await;
        sent = stream.write_all(&vec![b'x'; size]).await;
    }
}
