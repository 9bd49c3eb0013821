//! Tunnels (CONNECT): relayed unseen, and not recorded.

use std::iter;
use std::time::Duration;

use assay_net::upstream::Upstream;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::copy_bidirectional;

use crate::collector::replay::CollectorClient;
use crate::collector::shared::{CLIENT_WRITE, FetchAddress};

/// Silence after which keep-alive probes are sent.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// Connects to the target of a CONNECT, and relays both ways until both sides have ended.
pub async fn serve(mut client: CollectorClient, destination: &FetchAddress) {
    client.shared.count(|c| c.connects += 1);
    let timeouts = client.shared.origin_timeouts();
    let connected = match client.shared.address_of(destination).await {
        Ok(address) => {
            Upstream::connect(address, timeouts, &client.shared.resources).await.map_err(Into::into)
        }
        Err(error) => Err(error),
    };
    let mut server = match connected {
        Ok(upstream) => upstream.connection,
        Err(error) => {
            client.exchange.persists = false;
            client.shared.count_failed(&error);
            // A client that does not read it is gone.
            let _ = client.send_error(error.status(), &error.to_string(), false).await;
            return;
        }
    };
    let sockets = [
        Some(SockRef::from(&client.exchange.connection.stream)),
        server.stream.socket().map(|stream| SockRef::from(stream.socket())),
    ];
    for socket in sockets.into_iter().flatten() {
        // Without keep-alive, a tunnel to a dead machine stays for ever; still better than no tunnel.
        let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER));
    }
    let agreed = client.exchange.write(&[b"HTTP/1.1 200 Connection established\r\n\r\n"]).await;
    let from = &mut client.exchange.connection;
    let early = iter::once(from.input.unread());
    if agreed.is_ok() && server.write_all(early, CLIENT_WRITE).await.is_ok() {
        // A tunnel may break off at any time; both sides notice that.
        let _ = copy_bidirectional(&mut from.stream, &mut server.stream).await;
    }
}
