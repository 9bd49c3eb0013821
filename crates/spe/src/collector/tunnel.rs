//! How does a tunnel go through? Unseen, and not recorded.

use std::io::IoSlice;
use std::time::Duration;

use assay_plane::upstream::Upstream;
use assay_plane::wire::{self, Input};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::copy_bidirectional;

use crate::collector::play::Client;
use crate::collector::shared::{CLIENT_WRITE, Place};

/// After so much silence the other side is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(60);

/// Connects to where a CONNECT wants to go, and copies both ways until both have ended.
pub async fn serve(mut client: Client, input: &Input, place: &Place) {
    client.shared.count(|c| c.connects += 1);
    let patience = client.shared.patience();
    let connected = match client.shared.address_of(place).await {
        Ok(address) => Upstream::connect(address, patience).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    let mut server = match connected {
        Ok(upstream) => upstream.stream,
        Err(error) => {
            client.persists = false;
            client.shared.count(|c| c.origin_errors += 1);
            // Who does not read it is gone.
            let _ = client.send_error(error.status(), &error.to_string(), false).await;
            return;
        }
    };
    for socket in [SockRef::from(&client.stream), SockRef::from(&server)] {
        // Without it, a tunnel to a machine that is gone stays for ever; better than no tunnel.
        let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE));
    }
    let mut agreed = [IoSlice::new(b"HTTP/1.1 200 Connection established\r\n\r\n")];
    let mut early = [IoSlice::new(input.unread())];
    if wire::write_all(&mut client.stream, &mut agreed, CLIENT_WRITE).await.is_ok()
        && wire::write_all(&mut server, &mut early, CLIENT_WRITE).await.is_ok()
    {
        // A tunnel may break off at any time; both sides see that.
        let _ = copy_bidirectional(&mut client.stream, &mut server).await;
    }
}
