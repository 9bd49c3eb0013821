//! A body as HTTP/1.1 delimits it (RFC 9112, section 6), off a socket.

use assay_http::framing::{BodyDecoder, BodyFraming};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The content of a body, and what follows it in `buf`; none when it broke off, and what there is of it in `buf`. `came` is called with the
/// number of its bytes that are there, whenever there may be more.
pub async fn read_body(
    stream: &mut TcpStream,
    buf: &mut Vec<u8>,
    framing: BodyFraming,
    came: &mut impl FnMut(usize),
) -> Option<Vec<u8>> {
    let (mut content, mut decoder) = (Vec::new(), BodyDecoder::new(framing));
    loop {
        let used = decoder.decode_into(buf, &mut content).expect("the coding is right");
        buf.drain(..used);
        came(content.len());
        if decoder.is_done() {
            return Some(content);
        }
        match stream.read_buf(buf).await {
            Ok(1..) => {}
            Ok(0) if decoder.end() => return Some(content),
            _ => {
                *buf = content;
                return None;
            }
        }
    }
}
