//! A server that reads a stream of requests and knows nothing but this crate.

use assay_http::framing::{BodyDecoder, BodyFraming};
use assay_http::head::RequestHead;
use assay_http::target::Target;

use crate::corpus::ending::Ending;

/// A request as it was understood.
#[derive(Debug, Clone)]
pub struct Taken {
    pub method: String,
    /// The path, as in a request to an upstream.
    pub target: String,
    pub authority: Option<String>,
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Bytes that it took.
    pub length: usize,
    pub persists: bool,
}

/// All requests of a stream, and what becomes of the connection then.
pub fn serve(bytes: &[u8]) -> (Vec<Taken>, Ending) {
    let (mut taken, mut at) = (Vec::new(), 0);
    loop {
        match take(&bytes[at..]) {
            Err(ending) => return (taken, ending),
            Ok(request) => {
                at += request.length;
                let persists = request.persists;
                taken.push(request);
                if !persists {
                    return (taken, Ending::Closes);
                }
            }
        }
    }
}

/// The first request of a stream, or why there is none.
pub fn take(bytes: &[u8]) -> Result<Taken, Ending> {
    let refused = |status, in_body| Ending::Refused { status, in_body };
    let parsed = RequestHead::parse(bytes).map_err(|error| refused(error.status(), false))?;
    let Some((head, length)) = parsed else {
        // A line feed alone is no empty line, and what is behind it is refused.
        let is_blank = bytes.chunks(2).all(|line| line == b"\r\n");
        return Err(if is_blank { Ending::Open } else { Ending::Waits { in_body: false } });
    };
    let target = Target::of(&head).map_err(|error| refused(error.status(), false))?;
    let rest = &bytes[length..];
    let (body, used) = match head.body() {
        BodyFraming::None | BodyFraming::UntilClose => (Vec::new(), 0),
        BodyFraming::Length(bytes) => {
            let size = usize::try_from(bytes).ok().filter(|size| *size <= rest.len());
            let size = size.ok_or(Ending::Waits { in_body: true })?;
            (rest[..size].to_vec(), size)
        }
        BodyFraming::Chunked => unchunk(rest)?,
    };
    let mut path = Vec::new();
    target.write_path(&mut path);
    Ok(Taken {
        method: head.method.to_owned(),
        target: String::from_utf8(path).expect("a target is ASCII"),
        authority: target.authority.map(str::to_owned),
        fields: head.headers().map(|field| (field.name.to_vec(), field.value.to_vec())).collect(),
        body,
        length: length + used,
        persists: head.persists(),
    })
}

/// A chunked body and how many bytes it takes.
pub fn unchunk(bytes: &[u8]) -> Result<(Vec<u8>, usize), Ending> {
    let (mut decoder, mut body) = (BodyDecoder::new(BodyFraming::Chunked), Vec::new());
    let used =
        decoder.decode_into(bytes, &mut body).map_err(|_| Ending::Refused { status: 400, in_body: true })?;
    if decoder.is_done() { Ok((body, used)) } else { Err(Ending::Waits { in_body: true }) }
}
