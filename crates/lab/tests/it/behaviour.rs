//! What a description declares is what the proxy does: told by what reaches the origin.

use std::net::SocketAddr;

use assay_lab::description::Behaviour;
use assay_lab::plan::Mode;

use crate::origin::{LATER, Origin, ask};
use crate::proxies::target;

/// A proxy before a scripted origin.
pub struct Bench {
    pub listen: SocketAddr,
    pub mode: Mode,
    pub origin: Origin,
}

impl Bench {
    async fn ask(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let (target, host) = target(self.mode, &self.origin, path);
        ask(self.listen, method, &target, &host, headers).await
    }

    /// Does a plain GET of `path` reach the origin?
    async fn get_reaches_origin(&self, path: &str) -> bool {
        let before = self.origin.asked(path).len();
        assert_eq!(self.ask("GET", path, "").await.0, 200, "{path}");
        self.origin.asked(path).len() > before
    }

    async fn head_fills(&self) -> bool {
        assert_eq!(self.ask("HEAD", "/head", "").await.0, 200);
        !self.get_reaches_origin("/head").await
    }

    async fn conditional_fills(&self) -> bool {
        let condition = format!("If-Modified-Since: {LATER}\r\n");
        assert_eq!(self.ask("GET", "/conditional", &condition).await.0, 304);
        !self.get_reaches_origin("/conditional").await
    }

    async fn reload_fills(&self) -> bool {
        self.ask("GET", "/reload", "").await;
        let reload = "Cache-Control: no-cache\r\nPragma: no-cache\r\n";
        let (_, body) = self.ask("GET", "/reload", reload).await;
        assert_eq!(body, "answer 2 for /reload\n", "a reload must reach the origin");
        self.ask("GET", "/reload", "").await.1 == "answer 2 for /reload\n"
    }

    async fn post_invalidates(&self) -> bool {
        self.ask("GET", "/post", "").await;
        assert_eq!(self.ask("POST", "/post", "Content-Length: 0\r\n").await.0, 200);
        self.get_reaches_origin("/post").await
    }

    async fn caches_what_it_should(&self) {
        for path in ["/plain", "/undated"] {
            assert!(self.get_reaches_origin(path).await, "{path} came from nowhere");
            assert!(!self.get_reaches_origin(path).await, "{path} must be a hit");
        }
        let condition = format!("If-Modified-Since: {LATER}\r\n");
        assert_eq!(self.ask("GET", "/plain", &condition).await.0, 304);
        assert_eq!(self.origin.asked("/plain").len(), 1, "a stored object answers a condition");
        for path in ["/uncachable", "/expired"] {
            assert!(self.get_reaches_origin(path).await, "{path} came from nowhere");
            assert!(self.get_reaches_origin(path).await, "{path} must reach the origin");
        }
    }

    pub async fn does_what_is_declared(&self, declared: Behaviour) {
        self.caches_what_it_should().await;
        assert_eq!(self.head_fills().await, declared.head_fills, "head-fills");
        assert_eq!(self.conditional_fills().await, declared.conditional_fills, "conditional-fills");
        assert_eq!(self.reload_fills().await, declared.reload_fills, "reload-fills");
        assert_eq!(self.post_invalidates().await, declared.post_invalidates, "post-invalidates");
    }
}
