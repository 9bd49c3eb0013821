//! What a description declares is what the proxy does: told by what reaches the origin.

use std::net::SocketAddr;
use std::time::Duration;

use assay_cache::behaviour::CacheBehaviour;
use assay_lab::mode::Mode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::origin::{LATER, Origin, exchange};
use crate::proxies::target;

/// How long it is watched that a request does not reach the origin. Too short a time hides a wrong declaration, and makes no
/// right one look wrong.
const WATCHED: Duration = Duration::from_millis(500);
/// How long a request may take to reach the origin that must.
const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy before a scripted origin.
pub struct Bench {
    pub listen: SocketAddr,
    pub mode: Mode,
    pub origin: Origin,
}

impl Bench {
    async fn exchange(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let (target, host) = target(self.mode, &self.origin, path);
        exchange(self.listen, method, &target, &host, headers).await
    }

    /// Whether a plain GET of `path` reaches the origin.
    pub async fn get_reaches_origin(&self, path: &str) -> bool {
        let before = self.origin.requested(path).len();
        assert_eq!(self.exchange("GET", path, "").await.0, 200, "{path}");
        self.origin.requested(path).len() > before
    }

    async fn head_fills(&self) -> bool {
        assert_eq!(self.exchange("HEAD", "/head", "").await.0, 200);
        !self.get_reaches_origin("/head").await
    }

    async fn conditional_fills(&self) -> bool {
        let condition = format!("If-Modified-Since: {LATER}\r\n");
        assert_eq!(self.exchange("GET", "/conditional", &condition).await.0, 304);
        !self.get_reaches_origin("/conditional").await
    }

    async fn reloads_reach_origin(&self) -> bool {
        self.exchange("GET", "/reload", "").await;
        let reload = "Cache-Control: no-cache\r\nPragma: no-cache\r\n";
        self.exchange("GET", "/reload", reload).await.1 == "answer 2 for /reload\n"
    }

    /// After [`Self::reloads_reach_origin`].
    async fn reload_fills(&self) -> bool {
        self.exchange("GET", "/reload", "").await.1 == "answer 2 for /reload\n"
    }

    async fn post_invalidates(&self) -> bool {
        self.exchange("GET", "/post", "").await;
        assert_eq!(self.exchange("POST", "/post", "Content-Length: 0\r\n").await.0, 200);
        self.get_reaches_origin("/post").await
    }

    async fn range_fills(&self) -> bool {
        let (status, _) = self.exchange("GET", "/range", "Range: bytes=0-0\r\n").await;
        assert!(matches!(status, 200 | 206), "{status}");
        !self.get_reaches_origin("/range").await
    }

    /// Whether a request for an object whose response is outstanding waits for that response.
    async fn collapses(&self, declared: bool) -> bool {
        let path = "/held-head";
        let first = self.exchange("GET", path, "");
        let second = async {
            self.origin.until_requested(path, 1).await;
            self.joins(path, declared).await
        };
        tokio::join!(first, second).1
    }

    /// Whether a response that has begun goes to others.
    async fn shares_arriving(&self, declared: bool) -> bool {
        let path = "/held-body";
        let mut first = TcpStream::connect(self.listen).await.unwrap();
        let (target, host) = target(self.mode, &self.origin, path);
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        first.write_all(request.as_bytes()).await.unwrap();
        self.origin.until_requested(path, 1).await;
        // A proxy that shares what arrives sends it on at once; another may wait for all of it.
        let mut response = Vec::new();
        while declared && !response.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            assert!(first.read_buf(&mut response).await.unwrap() > 0, "the proxy closed");
        }
        let joins = self.joins(path, declared).await;
        first.read_to_end(&mut response).await.unwrap();
        joins
    }

    /// Whether a request for an object under way is served without another request to the origin. Lets all responses go on.
    async fn joins(&self, path: &str, declared: bool) -> bool {
        let again = async {
            let patience = if declared { WATCHED } else { PATIENCE };
            let reaches = timeout(patience, self.origin.until_requested(path, 2)).await.is_ok();
            self.origin.let_go(if reaches { 2 } else { 1 });
            reaches
        };
        let ((status, _), reaches) = tokio::join!(self.exchange("GET", path, ""), again);
        assert_eq!(status, 200, "{path}");
        !reaches && self.origin.requested(path).len() == 1
    }

    /// Whether a GET of `path` soon reaches the origin. A proxy that gives responses on while it still stores them may do so for
    /// the request that follows at once, which meets the end of that storing; not for one request after another.
    async fn get_soon_reaches_origin(&self, path: &str, shares_arriving: bool) -> bool {
        for _ in 0..if shares_arriving { 10 } else { 1 } {
            if self.get_reaches_origin(path).await {
                return true;
            }
        }
        false
    }

    async fn caches_what_it_should(&self, shares_arriving: bool) {
        for path in ["/plain", "/undated"] {
            assert!(self.get_reaches_origin(path).await, "{path} came from nowhere");
            assert!(!self.get_reaches_origin(path).await, "{path} must be a hit");
        }
        let condition = format!("If-Modified-Since: {LATER}\r\n");
        assert_eq!(self.exchange("GET", "/plain", &condition).await.0, 304);
        assert_eq!(self.origin.requested("/plain").len(), 1, "a stored object answers a condition");
        for path in ["/uncachable", "/expired"] {
            assert!(self.get_reaches_origin(path).await, "{path} came from nowhere");
            assert!(
                self.get_soon_reaches_origin(path, shares_arriving).await,
                "{path} must reach the origin"
            );
        }
    }

    pub async fn does_what_is_declared(&self, declared: CacheBehaviour) {
        self.caches_what_it_should(declared.shares_arriving).await;
        assert_eq!(self.head_fills().await, declared.head_fills, "head-fills");
        assert_eq!(self.conditional_fills().await, declared.conditional_fills, "conditional-fills");
        assert_eq!(self.reloads_reach_origin().await, declared.reloads_reach_origin, "reloads-reach-origin");
        assert_eq!(self.reload_fills().await, declared.reload_fills, "reload-fills");
        assert_eq!(self.range_fills().await, declared.range_fills, "range-fills");
        assert_eq!(self.collapses(declared.collapses).await, declared.collapses, "collapses");
        let shares = declared.shares_arriving;
        assert_eq!(self.shares_arriving(shares).await, shares, "shares-arriving");
        assert_eq!(self.post_invalidates().await, declared.post_invalidates, "post-invalidates");
    }
}
