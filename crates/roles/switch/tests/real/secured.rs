//! TLS and HTTP/2 to clients and to servers; curl is the client.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use assay_switch::Switch;

use crate::certificates::{Files, secured};
use crate::harness::{PATIENCE, Server, eventually, file, ok, switch};

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
