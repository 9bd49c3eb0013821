//! A body as HTTP/1.1 delimits it (RFC 9112, section 6), off a socket.

use assay_http::chunked::{Decoder, Piece};
use assay_http::framing::BodyFraming;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The body, without its transfer coding; none when it broke off. What follows it stays in `buf`. `came` is told how many
/// bytes of it are there, whenever there may be more.
pub async fn read_body(
    stream: &mut TcpStream,
    buf: &mut Vec<u8>,
    framing: BodyFraming,
    came: &mut impl FnMut(usize),
) -> Option<Vec<u8>> {
    let (mut body, mut decoder) = (Vec::new(), Decoder::new());
    loop {
        match framing {
            BodyFraming::None => return Some(body),
            BodyFraming::Length(bytes) => {
                let bytes = usize::try_from(bytes).expect("a body that fits into memory");
                came(buf.len().min(bytes));
                if buf.len() >= bytes {
                    return Some(buf.drain(..bytes).collect());
                }
            }
            BodyFraming::Chunked => {
                let is_complete = decode(&mut decoder, buf, &mut body);
                came(body.len());
                if is_complete {
                    return Some(body);
                }
            }
            BodyFraming::UntilClose => came(buf.len()),
        }
        match stream.read_buf(buf).await {
            Ok(1..) => {}
            Ok(0) if framing == BodyFraming::UntilClose => return Some(std::mem::take(buf)),
            _ => return None,
        }
    }
}

/// Decodes what is there of a chunked body; whether that was the end of it.
fn decode(decoder: &mut Decoder, buf: &mut Vec<u8>, body: &mut Vec<u8>) -> bool {
    loop {
        let (piece, used) = decoder.next(buf).expect("the coding is right");
        if let Piece::Data(data) = piece {
            body.extend(data);
        }
        let (is_end, needs_more) = (piece == Piece::End, piece == Piece::NeedMore);
        buf.drain(..used);
        if is_end || needs_more {
            return is_end;
        }
    }
}
