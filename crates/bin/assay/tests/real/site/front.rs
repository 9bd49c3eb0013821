//! TLS in front of a site: what the site sends and gets, over HTTP/1.1, with a certificate of an authority of its own.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::byte_stream::ByteStream;
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::server::TlsServer;
use assay_net::tls::settings::Offer;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

/// Bytes of a buffer: a record of TLS fits into it.
const ROOM: usize = 64 * 1024;

/// What stands before a site.
pub struct Front {
    /// `host:port`.
    pub name: String,
    /// The certificate of its authority.
    pub trusted: PathBuf,
}

impl Front {
    /// At a host of this machine, in a thread of its own; its authority goes into this directory.
    pub fn start(host: &str, site: SocketAddr, directory: &Path) -> Self {
        let listener = StdListener::bind((host, 0)).expect("there is a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("it has an address").port();
        let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let valid = Validity::around(now_unix_s);
        let authority = Authority::new(KeyKind::P256, valid).expect("can be made");
        let identity = authority.issue(&[host.to_owned()], valid).expect("can be made");
        let trusted = directory.join("origins.pem");
        std::fs::write(&trusted, &authority.certificate).expect("a writable directory");
        let chain = identity.certificate + &authority.certificate;
        let server = TlsServer::new(chain.as_bytes(), identity.key.as_bytes(), &Offer::default());
        let server = server.expect("they belong together");
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket");
                loop {
                    let (client, _) = listener.accept().await.expect("somebody connects");
                    spawn_local(carry(client, server.clone(), site));
                }
            });
        });
        Self { name: format!("{host}:{port}"), trusted }
    }
}

async fn carry(client: TcpStream, server: TlsServer, site: SocketAddr) {
    let Ok(mut site) = TcpStream::connect(site).await else { return };
    if client.set_nodelay(true).and(site.set_nodelay(true)).is_err() {
        return;
    }
    let mut client = ByteStream::over_tls(client, server.accept().expect("can begin"));
    // Either side may leave at any time.
    let _ = copy_bidirectional_with_sizes(&mut client, &mut site, ROOM, ROOM).await;
}
