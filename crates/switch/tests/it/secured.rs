//! TLS and HTTP/2 to clients and to servers; curl is the client where the version matters.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_plane::byte_stream::{ByteStream, LEAST_ROOM};
use assay_role::tls::Offer;
use assay_switch::{Switch, read};
use assay_tls::authority::{Authority, KeyKind, Validity};
use assay_tls::client::{Client, Name, Trust};
use tempfile::TempDir;

use crate::failing::eventually;
use crate::harness::{PATIENCE, Server, file, ok, switch};

/// A directory with certificates: for `one.test` and `two.test`, with the authority of both.
struct Files {
    dir: TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        let files = Self { dir: tempfile::tempdir().expect("there is room"), authority: authority() };
        files.write("ca.pem", &files.authority.certificate);
        for name in ["one", "two"] {
            files.issue(name, &files.authority);
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("there is room");
    }

    /// Writes the certificate of `NAME.test`.
    fn issue(&self, name: &str, authority: &Authority) {
        let identity = authority.issue(&[format!("{name}.test")], validity()).expect("can be made");
        self.write(&format!("{name}.pem"), &identity.certificate);
        self.write(&format!("{name}.key"), &identity.key);
    }

    /// The part of a switch file about TLS to clients.
    fn toml(&self, names: &[&str]) -> String {
        let dir = self.dir.path().display();
        let certificates = names.iter().map(|name| {
            format!("[[certificate]]\nfile = \"{dir}/{name}.pem\"\nkey = \"{dir}/{name}.key\"\n")
        });
        format!("[tls]\nlisten = \"127.0.0.1:0\"\n{}", certificates.collect::<String>())
    }
}

fn validity() -> Validity {
    Validity::around(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs())
}

fn authority() -> Authority {
    Authority::new(KeyKind::P256, validity()).expect("can be made")
}

/// The address at which a switch speaks TLS: that behind the one in the clear.
fn secured(switch: &Switch) -> SocketAddr {
    switch.addresses()[1]
}

/// What curl prints: the body, and then the version of HTTP; or its own error.
fn curl(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "20", "--noproxy", "*", "-w", " HTTP/%{http_version}"]);
    let output = command.args(arguments).output().expect("curl is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// The same over TLS, from the server of this name at an address.
fn curl_over_tls(name: &str, at: SocketAddr, ca: &Path, more: &[&str]) -> Result<String, String> {
    let resolve = format!("{name}.test:{}:127.0.0.1", at.port());
    let url = format!("https://{name}.test:{}/", at.port());
    let ca = ca.display().to_string();
    curl(&[&["--resolve", &resolve, "--cacert", &ca, &url][..], more].concat())
}

#[test]
fn clients_get_the_certificate_of_the_name_that_they_send_in_either_version_of_http() {
    let (files, server) = (Files::new(), Server::named("a"));
    let switch = switch(&file("", &[&server], &files.toml(&["one", "two"])));
    let (at, ca) = (secured(&switch), files.path("ca.pem"));
    for name in ["one", "two"] {
        assert_eq!(curl_over_tls(name, at, &ca, &["--http2"]).as_deref(), Ok("a HTTP/2"));
        assert_eq!(curl_over_tls(name, at, &ca, &["--http1.1"]).as_deref(), Ok("a HTTP/1.1"));
    }
    let url = format!("https://one.test:{}/", at.port());
    let many: Vec<&str> = std::iter::repeat_n(&url[..], 20).collect();
    let got = curl_over_tls("one", at, &ca, &[&["--http2", "-Z"][..], &many].concat()).expect("is served");
    assert_eq!(got.matches(" HTTP/2").count(), 21, "many at once");
    let accepted = switch.snapshot().expect("runs").accepted;
    assert_eq!(accepted, 5, "all that one curl requests is on one connection");
    assert!(server.last().head.contains("X-Forwarded-Proto: https\r\n"), "{}", server.last().head);
    assert!(server.last().head.contains("\r\nVia: 2.0 "), "{}", server.last().head);
    // Any other name gets the first.
    let error = curl_over_tls("three", at, &ca, &[]).expect_err("is not for this name");
    assert!(error.contains("three.test"), "{error}");
}

#[test]
fn over_tls_a_whole_url_is_taken_with_the_scheme_of_the_connection_alone() {
    let (files, server) = (Files::new(), Server::named("a"));
    let switch = switch(&file("", &[&server], &files.toml(&["one"])));
    let (at, ca) = (secured(&switch), files.path("ca.pem"));
    let whole = |scheme: &str| {
        let target = format!("{scheme}://one.test/x?y");
        curl_over_tls("one", at, &ca, &["--http1.1", "--request-target", &target])
    };
    assert_eq!(whole("https").as_deref(), Ok("a HTTP/1.1"));
    assert!(
        server.last().head.starts_with("GET /x?y HTTP/1.1\r\nHost: one.test\r\n"),
        "{}",
        server.last().head
    );
    assert_ne!(whole("http").as_deref(), Ok("a HTTP/1.1"));
}

#[test]
fn an_older_version_than_allowed_is_refused_and_http_2_can_be_switched_off() {
    let (files, server) = (Files::new(), Server::named("a"));
    let tls = files.toml(&["one"]).replacen("[tls]\n", "[tls]\nmin-version = \"1.3\"\n", 1);
    let switch = switch(&file("http2 = \"none\"", &[&server], &tls));
    let (at, ca) = (secured(&switch), files.path("ca.pem"));
    assert!(curl_over_tls("one", at, &ca, &["--tls-max", "1.2"]).is_err());
    assert_eq!(curl_over_tls("one", at, &ca, &["--http2"]).as_deref(), Ok("a HTTP/1.1"));
}

#[test]
fn http_2_in_the_clear_carries_bodies_both_ways_beside_http_1() {
    let server = Server::responding("echo", |got, stream| ok(stream, &got.body));
    let switch = switch(&file("http2 = \"all\"", &[&server], ""));
    let url = format!("http://{}/", switch.addresses()[0]);
    let sent = "0123456789".repeat(30_000);
    let dir = tempfile::tempdir().expect("there is room");
    let body = dir.path().join("body");
    std::fs::write(&body, &sent).expect("there is room");
    let data = format!("@{}", body.display());
    for version in ["--http2-prior-knowledge", "--http1.1"] {
        let got = curl(&[version, "--data-binary", &data, "-H", "Expect:", &url]).expect("is served");
        let told = if version == "--http1.1" { "HTTP/1.1" } else { "HTTP/2" };
        assert!(got == format!("{sent} {told}"), "{version}: {} bytes", got.len());
    }
    assert!(curl(&["--http2-prior-knowledge", "-I", &url]).expect("is served").starts_with("HTTP/2 200"));
    eventually("connections end", || switch.snapshot().expect("runs").clients == 0);
}

/// A connection with TLS that trusts one authority, and requests one thing after the other.
struct Kept(ByteStream<TcpStream>);

impl Kept {
    fn new(at: SocketAddr, authority: &Authority) -> Result<Self, std::io::Error> {
        let trust = Trust::Authorities(authority.certificate.as_bytes());
        let client = Client::new(trust, &Offer::default()).expect("can be made");
        let name = Name::of_authority("one.test").expect("a name");
        let socket = TcpStream::connect(at)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let session = client.connect(&name, false).map_err(std::io::Error::other)?;
        let mut stream = ByteStream::secured(socket, session);
        stream.shake_hands()?;
        Ok(Self(stream))
    }

    fn status_line(&mut self) -> String {
        let request = b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n";
        assert_eq!(self.0.send(request).expect("is taken"), request.len());
        let mut room = vec![0; LEAST_ROOM];
        let mut got = Vec::new();
        while !got.windows(4).any(|end| end == b"\r\n\r\n") {
            match self.0.recv(&mut room) {
                Ok(read) if read.length == 0 => break,
                Ok(read) => got.extend_from_slice(&room[..read.length]),
                // A ticket came, and nothing with it.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8_lossy(&got).lines().next().unwrap_or("").to_owned()
    }
}

#[test]
fn a_reload_shows_the_new_certificate_and_keeps_connections_with_the_old_one() {
    let (files, server) = (Files::new(), Server::named("a"));
    let text = file("", &[&server], &files.toml(&["one"]));
    let mut switch = switch(&text);
    let at = secured(&switch);
    let mut kept = Kept::new(at, &files.authority).expect("is trusted");
    assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
    let other = authority();
    files.issue("one", &other);
    switch.reload(read("test.toml", &text).expect("is a switch file")).expect("is taken on");
    assert_eq!(secured(&switch), at);
    assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
    assert!(Kept::new(at, &files.authority).is_err(), "it shows the new one");
    assert_eq!(Kept::new(at, &other).expect("is trusted").status_line(), "HTTP/1.1 200 OK");
    // What cannot be used changes nothing.
    files.write("one.key", "no key");
    let error = switch.reload(read("test.toml", &text).expect("is a switch file")).expect_err("is wrong");
    assert!(
        error.to_string().contains("one.key: ") && error.to_string().contains("no private key"),
        "{error}"
    );
    assert_eq!(Kept::new(at, &other).expect("is trusted").status_line(), "HTTP/1.1 200 OK");
}

#[test]
fn a_key_that_does_not_match_is_named_before_anything_listens() {
    let (files, server) = (Files::new(), Server::named("a"));
    std::fs::copy(files.path("two.key"), files.path("one.key")).expect("is there");
    let config = read("test.toml", &file("", &[&server], &files.toml(&["one"]))).expect("is a switch file");
    let error = Switch::start(config).map(drop).expect_err("cannot be").to_string();
    assert!(error.contains("one.pem with ") && error.contains("does not match the certificate"), "{error}");
}

#[test]
fn servers_are_verified_for_requests_and_for_health_checks() {
    let (files, server) = (Files::new(), Server::named("behind"));
    let behind = switch(&file("", &[&server], &files.toml(&["one"])));
    let front = |tls: &str, health: &str| {
        let (at, dir) = (secured(&behind), files.dir.path().display());
        let tls = tls.replace("DIR", &dir.to_string());
        switch(&format!(
            "listen = \"127.0.0.1:0\"\n{health}[[server]]\nname = \"s\"\naddress = \"{at}\"\ntls = {{ {tls} }}\n"
        ))
    };
    let url = |switch: &Switch| format!("http://{}/", switch.addresses()[0]);
    let get = |switch: &Switch| curl(&[&url(switch), &url(switch)]).expect("is served");
    let verified = front("ca = \"DIR/ca.pem\", name = \"one.test\"", "");
    assert_eq!(get(&verified), "behind HTTP/1.1behind HTTP/1.1");
    assert_eq!(verified.snapshot().expect("runs").connects, 1, "a connection with TLS is kept like others");
    let unverified = front("verify = false", "");
    assert_eq!(get(&unverified), "behind HTTP/1.1behind HTTP/1.1");
    let misnamed = front("ca = \"DIR/ca.pem\", name = \"two.test\"", "");
    let said = get(&misnamed);
    assert!(said.contains("server s could not be reached") && said.contains("two.test"), "{said}");
    let health = "[health]\ninterval = \"20ms\"\nfall = 1\nrise = 1\n";
    let up = |switch: &Switch| switch.snapshot().expect("runs").servers[0].up;
    let watched = front("ca = \"DIR/ca.pem\", name = \"one.test\"", health);
    let before = server.count();
    eventually("it is checked over TLS", || server.count() > before + 3);
    assert!(up(&watched));
    let misled = front("ca = \"DIR/ca.pem\", name = \"two.test\"", health);
    eventually("it is down", || !up(&misled));
}

#[test]
fn a_client_that_speaks_in_the_clear_where_tls_is_spoken_gets_nothing_and_harms_nobody() {
    let (files, server) = (Files::new(), Server::named("a"));
    let switch = switch(&file("", &[&server], &files.toml(&["one"])));
    let mut socket = TcpStream::connect(secured(&switch)).expect("is listened at");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("is taken");
    let mut rest = Vec::new();
    // It ends the connection, by its end or by a reset.
    let _ = std::io::Read::read_to_end(&mut socket, &mut rest);
    assert_eq!(server.count(), 0);
    assert_eq!(curl_over_tls("one", secured(&switch), &files.path("ca.pem"), &[]).as_deref(), Ok("a HTTP/2"));
}

/// A switch in front of one whose first server is at this address, to which it speaks HTTP/2.
fn in_front_of(at: SocketAddr, more: &str) -> Switch {
    let health = "[health]\ninterval = \"20ms\"\nfall = 1\nrise = 1\n";
    switch(&format!(
        "listen = \"127.0.0.1:0\"\n{health}[[server]]\nname = \"s\"\naddress = \"{at}\"\nhttp = \"2\"\n{more}"
    ))
}

#[test]
fn servers_are_spoken_to_over_http_2_and_many_requests_share_a_connection() {
    let server = Server::responding("echo", |got, stream| ok(stream, &got.body));
    let behind = switch(&file("http2 = \"all\"", &[&server], ""));
    let front = in_front_of(behind.addresses()[0], "");
    eventually("it is checked over HTTP/2", || server.count() > 3);
    assert!(front.snapshot().expect("runs").servers[0].up);
    let url = format!("http://{}/", front.addresses()[0]);
    let sent = "0123456789".repeat(30_000);
    let dir = tempfile::tempdir().expect("there is room");
    let body = dir.path().join("body");
    std::fs::write(&body, &sent).expect("there is room");
    let data = format!("@{}", body.display());
    for more in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
        let request = [&["--data-binary", &data, "-H", "Expect:", &url], more].concat();
        let got = curl(&request).expect("is served");
        assert!(got == format!("{sent} HTTP/1.1"), "{more:?}: {} bytes", got.len());
    }
    let many: Vec<&str> = std::iter::repeat_n(&url[..], 40).collect();
    let got = curl(&[&["-Z", "-d", "x"][..], &many].concat()).expect("is served");
    let bodies = got.replace(" HTTP/1.1", "");
    assert_eq!((bodies, got.matches(" HTTP/1.1").count()), ("x".repeat(40), 40), "many at once");
    assert!(curl(&["-I", &url]).expect("is served").starts_with("HTTP/1.1 200"));
    assert_eq!(front.snapshot().expect("runs").connects, 1, "all on one connection");
    let head = server.last().head;
    assert!(head.contains(" 2.0 assay\r\n"), "what is behind was spoken to in HTTP/2: {head}");
}

#[test]
fn http_2_to_servers_goes_over_tls_if_the_server_agrees_and_is_verified() {
    let (files, server) = (Files::new(), Server::named("behind"));
    let ca = files.path("ca.pem").display().to_string();
    let tls = |name: &str| format!("tls = {{ ca = \"{ca}\", name = \"{name}.test\" }}\n");
    let get = |front: &Switch| curl(&[&format!("http://{}/", front.addresses()[0])]).expect("is served");
    let behind = switch(&file("", &[&server], &files.toml(&["one"])));
    let front = in_front_of(secured(&behind), &tls("one"));
    assert_eq!((get(&front), get(&front)), ("behind HTTP/1.1".into(), "behind HTTP/1.1".into()));
    assert_eq!(front.snapshot().expect("runs").connects, 1);
    let head = server.last().head;
    assert!(head.contains(" 2.0 assay\r\n"), "{head}");
    let misnamed = in_front_of(secured(&behind), &tls("two"));
    eventually("it is down", || !misnamed.snapshot().expect("runs").servers[0].up);
    let old = switch(&file("http2 = \"none\"", &[&server], &files.toml(&["one"])));
    let refused = in_front_of(secured(&old), &tls("one"));
    eventually("it is down", || !refused.snapshot().expect("runs").servers[0].up);
}

#[test]
fn a_server_that_ends_its_connection_loses_no_request() {
    let server = Server::named("a");
    let text = file("http2 = \"all\"", &[&server], "[timeouts]\nclient-idle = \"50ms\"\n");
    let behind = switch(&text);
    let front = switch(&format!(
        "listen = \"127.0.0.1:0\"\n[[server]]\nname = \"s\"\naddress = \"{}\"\nhttp = \"2\"\n",
        behind.addresses()[0]
    ));
    let url = format!("http://{}/", front.addresses()[0]);
    for _ in 0..3 {
        assert_eq!(curl(&[&url]).as_deref(), Ok("a HTTP/1.1"));
        eventually("its connection has ended", || behind.snapshot().expect("runs").clients == 0);
    }
    assert_eq!(front.snapshot().expect("runs").connects, 3, "one after the other");
}

#[test]
fn a_reload_keeps_sessions_that_can_be_resumed() {
    let (files, server) = (Files::new(), Server::named("a"));
    let text = file("", &[&server], &files.toml(&["one"]));
    let mut switch = switch(&text);
    let trust = Trust::Authorities(files.authority.certificate.as_bytes());
    let client = Client::new(trust, &Offer::default()).expect("can be made");
    let name = Name::of_authority("one.test").expect("a name");
    let at = secured(&switch);
    let connect = || {
        let socket = TcpStream::connect(at).expect("is listened at");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let session = client.connect(&name, true).expect("can begin");
        let mut kept = Kept(ByteStream::secured(socket, session));
        kept.0.shake_hands().expect("is trusted");
        assert_eq!(kept.status_line(), "HTTP/1.1 200 OK");
        kept.0.take_handshake().expect("is over").agreed.resumed
    };
    assert!(!connect() && connect());
    switch.reload(read("test.toml", &text).expect("is a switch file")).expect("is taken on");
    assert!(connect(), "the ticket is from before");
}
