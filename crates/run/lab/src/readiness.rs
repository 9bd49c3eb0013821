//! Whether a proxy is ready: a request through it for each origin gets a 200 response, and that of no other origin.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_host::link::Namespace;
use assay_net::HEALTH_ORIGIN_PREFIX;

use crate::description::TemplateOrigin;
use crate::mode::Mode;
use crate::probe::{self, Endpoint};

/// Time that one attempt at a first request may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Number of origins that are requested a second time, the last one first: a balancer that takes its servers in turn could have given
/// each request of one pass to the right one.
const AGAIN: usize = 8;

/// Readiness check of one origin through a proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadinessProbe<'a> {
    /// Network that the request is made from; none: the lab's own.
    pub from: Option<&'a Namespace>,
    /// The proxy (or the origin itself), and how it is spoken to over TLS; none: in the clear.
    pub proxy: Endpoint<'a>,
    /// Mode in which the proxy is addressed.
    pub mode: Mode,
    /// The origin whose response is expected.
    pub origin: &'a TemplateOrigin,
    pub path: &'a str,
}

/// Result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// A 200 response, and nothing says that it was another origin's.
    Ready,
    /// Something else, in words; it may be ready later.
    NotYet(String),
    /// A certificate that is not accepted, in words; it will not be later.
    Untrusted(String),
    /// The origin of this authority responded in place of the one that was requested.
    Other(String),
}

/// The origins in the order in which they are requested: all, and then some once more.
pub(crate) fn order<T>(origins: &[T]) -> impl Iterator<Item = &T> {
    let again = if origins.len() > 1 { AGAIN } else { 0 };
    origins.iter().chain(origins.iter().rev().take(again))
}

pub(crate) async fn attempt(requested: ReadinessProbe<'_>) -> Readiness {
    let (status, body) = match request(requested).await {
        Ok(response) => response,
        Err(error) if probe::is_refused_certificate(&error) => {
            return Readiness::Untrusted(error.to_string());
        }
        Err(error) => return Readiness::NotYet(error.to_string()),
    };
    // 203: a proxy that transforms what it passes on (RFC 9110, 15.3.4).
    if !matches!(status, 200 | 203) {
        return Readiness::NotYet(format!("status {status}"));
    }
    let Some(named) = other(&body, requested.origin) else { return Readiness::Ready };
    // A proxy that stores what must not be stored can have this response from an earlier run, whose origins were others at the same
    // addresses. It has not seen this query.
    let path = format!("{}?{}", requested.path, monotonic_ns());
    match request(ReadinessProbe { path: &path, ..requested }).await {
        Ok((200 | 203, body)) => other(&body, requested.origin).map_or(Readiness::Ready, Readiness::Other),
        Ok((status, _)) => not_confirmed(&named, &format!("status {status}")),
        Err(error) => not_confirmed(&named, &error.to_string()),
    }
}

/// Another origin's response came, and no second one that would show whether it was stored earlier.
fn not_confirmed(named: &str, seen: &str) -> Readiness {
    Readiness::NotYet(format!("the response of {named}, and with a query {seen}"))
}

/// The origin that the response to a health check names, if it is another one. None is named by what is no origin of a run.
fn other(body: &str, origin: &TemplateOrigin) -> Option<String> {
    let named = body.lines().find_map(|line| line.strip_prefix(HEALTH_ORIGIN_PREFIX))?.trim();
    (!named.eq_ignore_ascii_case(&origin.authority)).then(|| named.to_owned())
}

async fn request(requested: ReadinessProbe<'_>) -> io::Result<(u16, String)> {
    let ReadinessProbe { from, proxy, mode, origin, path } = requested;
    let (host, target) = match mode {
        Mode::Reverse => (origin.authority.clone(), path.to_owned()),
        Mode::Forward => {
            let ip = origin.ip.parse().map_err(io::Error::other)?;
            (
                format!("{}:{}", origin.ip, origin.port),
                format!("http://{}{path}", SocketAddr::new(ip, origin.port)),
            )
        }
    };
    match probe::get(from, proxy, &host, &target, ATTEMPT).await {
        // What does not respond in HTTP/1 may speak HTTP/2 alone.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            probe::get_over_http2(from, proxy, &host, &target, ATTEMPT).await.map_err(|_| error)
        }
        seen => seen,
    }
}

/// Message, with what to do, if the origin of the authority `other` responded.
pub(crate) fn mixed_up(requested: ReadinessProbe<'_>, other: &str, origins: &[TemplateOrigin]) -> String {
    let ReadinessProbe { proxy, mode, origin, path, .. } = requested;
    // Where only robots run here, origins are somewhere behind the proxy.
    let at = |origin: &TemplateOrigin| {
        let address = format!("{}:{}", origin.ip, origin.port);
        (address != proxy.address.to_string()).then_some(address)
    };
    let authority = &origin.authority;
    let theirs = origins.iter().find(|origin| origin.authority.eq_ignore_ascii_case(other));
    let theirs = match theirs.map(at) {
        Some(Some(address)) => format!(", the origin at {address}"),
        Some(None) => String::new(),
        None => ", which is no origin of this run".to_owned(),
    };
    let wanted = at(origin).unwrap_or_else(|| format!("the origin of {authority}"));
    let remedy = match mode {
        Mode::Reverse => format!(
            "it must send requests for {authority} to {wanted}, or pass `Host` on as it came (nginx: `proxy_set_header Host \
             $http_host`; httpd: `ProxyPreserveHost On`), as each origin responds for the one that `Host` names; a load balancer \
             whose servers all have the same content needs a workload with one origin (`assay init mine.pg` writes one)"
        ),
        Mode::Forward => format!("it must send each request to the host that its URL names, here {wanted}"),
    };
    format!(
        "origins are mixed up: a request for http://{authority}{path} got the response of {other}{theirs}, and robots would get \
         wrong objects; {remedy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(count: u8) -> Vec<TemplateOrigin> {
        let origin = |i: u8| {
            TemplateOrigin::new(
                i.into(),
                &format!("o{i}.test:80"),
                ([127, 0, 0, 1], 9000 + u16::from(i)).into(),
            )
        };
        (0..count).map(origin).collect()
    }

    #[test]
    fn only_a_named_origin_that_is_another_one_counts_as_mixed_up() {
        let origin = &origins(1)[0];
        assert_eq!(other("ok\norigin o1.test:80\n", origin).as_deref(), Some("o1.test:80"));
        for same in ["ok\norigin O0.Test:80\r\n", "ok\n", "", "<html>origin x</html>"] {
            assert_eq!(other(same, origin), None, "{same}");
        }
    }

    #[test]
    fn origins_in_turn_do_not_look_right_by_their_order() {
        for count in 2..=20 {
            let origins = origins(count);
            let in_turn = order(&origins).enumerate();
            let wrong = in_turn.filter(|(n, origin)| origin.name != origins[n % usize::from(count)].name);
            assert!(wrong.count() > 0, "{count}");
        }
        assert_eq!(order(&origins(1)).count(), 1, "one origin cannot be mixed up");
    }

    #[test]
    fn what_was_requested_what_responded_and_what_to_do_is_said() {
        let origins = origins(2);
        let requested = |mode| ReadinessProbe {
            from: None,
            proxy: Endpoint { address: ([127, 0, 0, 1], 80).into(), tls: None },
            mode,
            origin: &origins[0],
            path: "/x",
        };
        let said = mixed_up(requested(Mode::Reverse), "o1.test:80", &origins);
        for part in [
            "http://o0.test:80/x",
            "of o1.test:80, the origin at 127.0.0.1:9001",
            "o0.test:80 to 127.0.0.1:9000",
            "ProxyPreserveHost",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let behind: Vec<TemplateOrigin> = ["o0.test:80", "o1.test:80"]
            .map(|name| TemplateOrigin::new(0, name, ([127, 0, 0, 1], 80).into()))
            .into();
        let requested_behind = ReadinessProbe { origin: &behind[0], ..requested(Mode::Reverse) };
        let said = mixed_up(requested_behind, "o1.test:80", &behind);
        assert!(!said.contains("127.0.0.1:80") && said.contains("to the origin of o0.test:80"), "{said}");
        let said = mixed_up(requested(Mode::Forward), "elsewhere", &origins);
        assert!(said.contains("no origin of this run") && said.contains("host that its URL names"), "{said}");
    }

    /// An attempt is given up after five seconds of real time.
    mod real_tests {
        use std::io::{Read, Write};
        use std::net::TcpListener;

        use super::*;

        /// A proxy that gives these responses, one for each request.
        fn responds(responses: &'static [(u16, &str)]) -> SocketAddr {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || {
                for (status, body) in responses {
                    let (mut stream, _) = listener.accept().unwrap();
                    let _ = stream.read(&mut [0; 1024]).unwrap();
                    let length = body.len();
                    write!(
                        stream,
                        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    )
                    .unwrap();
                }
            });
            address
        }

        #[test]
        fn another_origins_response_is_confirmed_or_the_proxy_is_not_ready() {
            const OWN: (u16, &str) = (200, "ok\norigin o0.test:80\n");
            const OTHER: (u16, &str) = (200, "ok\norigin o1.test:80\n");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let origin = &origins(1)[0];
            let seen = |responses: &'static [(u16, &str)]| {
                let proxy = Endpoint { address: responds(responses), tls: None };
                let requested = ReadinessProbe { from: None, proxy, mode: Mode::Reverse, origin, path: "/x" };
                runtime.block_on(attempt(requested))
            };
            assert_eq!(seen(&[OWN]), Readiness::Ready);
            assert_eq!(seen(&[OTHER, OTHER]), Readiness::Other("o1.test:80".into()));
            assert_eq!(seen(&[OTHER, OWN]), Readiness::Ready, "the first one was stored in an earlier run");
            let open = seen(&[OTHER, (404, "")]);
            assert_eq!(
                open,
                Readiness::NotYet("the response of o1.test:80, and with a query status 404".into())
            );
            assert_eq!(seen(&[(502, "")]), Readiness::NotYet("status 502".into()));
        }
    }
}
