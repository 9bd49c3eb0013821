//! TLS from the command line: what is wrong with a target is said in one message, and nothing of a key stays behind.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES};
use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::server::TlsServer;
use assay_net::tls::settings::Offer;

use crate::helpers::{all_sent, assert_nothing_left};
use crate::run_command::own_address;
use crate::samples::RECONNECTING;
use crate::support::{Assay, Said};

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// What a target that runs already does with a connection.
enum Target {
    /// Shows a certificate with these names.
    Shows(&'static [&'static str], Validity),
    /// Speaks in the clear.
    Clear,
}

/// Starts a target that serves no request; its address, and the certificate of the authority that signed its own.
fn start(target: Target) -> (SocketAddr, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("is bound");
    let authority = Authority::new(KeyKind::P256, Validity::around(now_unix_s())).expect("can be made");
    let server = match target {
        Target::Clear => None,
        Target::Shows(names, validity) => {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let identity = authority.issue(&names, validity).expect("can be made");
            let server =
                TlsServer::new(identity.certificate.as_bytes(), identity.key.as_bytes(), &Offer::default());
            Some(server.expect("belong together"))
        }
    };
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            meet(socket, server.as_ref());
        }
    });
    (address, authority.certificate)
}

/// Makes a handshake with a client that does not like it, or responds to it in the clear.
fn meet(mut socket: TcpStream, server: Option<&TlsServer>) {
    let Some(server) = server else {
        // The client may be gone: it has only looked whether somebody listens.
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        return;
    };
    let mut stream = ByteStream::over_tls(socket, server.accept().expect("can begin"));
    let mut room = vec![0; MIN_READ_BYTES];
    while stream.recv(&mut room).is_ok_and(|read| read.length > 0) {}
}

/// A run against a target that is there already.
fn against(target: Target) -> Said {
    let assay = Assay::new();
    let (address, ca) = start(target);
    let (workload, ca) = (assay.file("small.pg", RECONNECTING), assay.file("ca.pem", &ca));
    let said = assay.run(&["run", workload, "--proxy", &address.to_string(), "--robot-tls", "--ca", ca]);
    assert_nothing_left(assay.directory.path());
    said
}

#[test]
fn an_expired_certificate_is_found_every_time_and_named() {
    for _ in 0..2 {
        let now_unix_s = now_unix_s();
        let validity = Validity { from_unix_s: now_unix_s - 7_200, until_unix_s: now_unix_s - 3_600 };
        let said = against(Target::Shows(&["10.0.0.1"], validity)).exits(1);
        said.complains("the certificate expired 60 minutes ago").complains("renew the certificate");
    }
}

#[test]
fn a_certificate_for_another_name_is_found_every_time_and_both_are_named() {
    for _ in 0..2 {
        let said = against(Target::Shows(&["other.example"], Validity::around(now_unix_s()))).exits(1);
        said.complains("the certificate is not valid for 10.0.0.1; it is for ").complains("other.example");
    }
}

#[test]
fn a_target_that_runs_already_is_verified_by_its_authority_or_not_at_all() {
    let assay = Assay::new();
    let validity = Validity::around(now_unix_s());
    let authority = Authority::new(KeyKind::P256, validity).expect("can be made");
    let identity = authority.issue(&["10.0.0.1".to_owned()], validity).expect("can be made");
    let (workload, ca) = (assay.file("small.pg", RECONNECTING), assay.file("ca.pem", &authority.certificate));
    assay.file("own.pem", &identity.certificate);
    assay.file("own.key", &identity.key);
    let (origin, dir) = (own_address(9000), assay.directory.path().display());
    let text = format!(
        "[tls]\nlisten = \"127.0.0.1:0\"\n[[certificate]]\nfile = \"{dir}/own.pem\"\nkey = \"{dir}/own.key\"\n\
         [[server]]\naddress = \"{origin}\"\n"
    );
    let config = assay_switch::read("own.toml", &text).expect("is a switch file");
    let switch = assay_switch::Switch::start(config).expect("starts");
    let (target, origin) = (switch.addresses()[0].to_string(), origin.to_string());
    for trust in [&["--ca", ca][..], &["--insecure", "--robot-http", "2"]] {
        let flags = ["--proxy", &target, "--robot-tls", "--origin-listen", &origin, "--json"];
        let total = all_sent(0.5, || {
            let said = assay.run(&[&["run", workload][..], &flags, trust].concat());
            let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("a document");
            document["total"].clone()
        });
        assert_eq!(total["errors"]["total"], 0, "{trust:?}: {:#}", total["errors"]);
        let counted = |field: &str| total[field].as_u64().expect("a number");
        assert!(counted("completed") > 0 && counted("tls_full") > 0, "{trust:?}: {total:#}");
    }
}

#[test]
fn a_port_that_speaks_in_the_clear_is_named_as_one() {
    let said = against(Target::Clear).exits(1);
    said.complains("does not speak TLS: it sent \"HTTP/1.1 400 Bad")
        .complains("name the port that speaks TLS");
}

#[test]
fn the_same_requests_go_over_tls_and_no_key_stays_behind() {
    let assay = Assay::new();
    let workload = assay.file("small.pg", RECONNECTING);
    let total = |flags: &[&str], name: &str| {
        all_sent(1.0, || {
            // Of a run before that was too busy.
            let _ = std::fs::remove_dir_all(assay.path(name));
            let all = [&["run", workload, "--json", "--run-dir", name][..], flags].concat();
            let said = assay.run(&all);
            let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("a document");
            document["total"].clone()
        })
    };
    let clear = total(&["--direct"], "clear");
    let secured = total(&["--direct", "--robot-tls", "--tls-versions", "1.3", "--xact-log"], "secured");
    for field in ["due_digest", "requests", "completed"] {
        assert_eq!(secured[field], clear[field], "{field}");
    }
    let handshakes = |total: &serde_json::Value, field: &str| total[field].as_u64().expect("a number");
    let (full, resumed) = (handshakes(&secured, "tls_full"), handshakes(&secured, "tls_resumed"));
    assert!(full >= 1 && resumed >= 1, "{full} {resumed}");
    assert_eq!(secured["handshake_ms"]["count"].as_u64(), Some(full + resumed));
    assert_eq!(handshakes(&clear, "tls_full") + handshakes(&clear, "tls_resumed"), 0);
    let suites = secured["by_tls"].as_object().expect("suites");
    assert!(suites.keys().all(|name| name.starts_with("1.3 TLS_")), "{suites:?}");
    let left = std::fs::read_dir(assay.path("secured/tls")).expect("is kept").flatten();
    let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(
        left.contains(&"ca.pem".to_owned()) && !left.iter().any(|name| name.ends_with(".key")),
        "{left:?}"
    );
}

#[test]
fn no_session_is_resumed_if_none_is_to_be() {
    let assay = Assay::new();
    let workload = assay.file("small.pg", RECONNECTING);
    let flags =
        ["--direct", "--robot-tls", "--tls-versions", "1.2", "--tls-key", "rsa2048", "--tls-resumption", "0"];
    // A machine that is held up for all of the run leaves no second connection.
    for is_last in [false, false, false, true] {
        let said = assay.run(&[&["run", workload, "--json"][..], &flags].concat());
        let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("a document");
        assert_eq!(document["total"]["tls_resumed"].as_u64(), Some(0));
        if document["total"]["tls_full"].as_u64() > Some(1) {
            break;
        }
        assert!(!is_last, "{document}");
    }
}

#[test]
fn the_workload_can_say_it_all_and_flags_take_precedence() {
    let assay = Assay::new();
    let wrap = "SslWrap wrap = { protocols = [\"TLSv1.2\"]; ciphers = [\"AES128-SHA\"]; };";
    let wrapped = RECONNECTING.replace("Robot R = {", &format!("{wrap}\nRobot R = {{ ssl_wraps = [wrap];"));
    assert_ne!(wrapped, RECONNECTING);
    let workload = assay.file("wrapped.pg", &wrapped);
    let total = |flags: &[&str]| {
        let said = assay.run(&[&["run", workload, "--json", "--direct"][..], flags].concat());
        let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("a document");
        document["total"].clone()
    };
    let secured = total(&[]);
    let suites = secured["by_tls"].as_object().expect("suites");
    assert_eq!(suites.keys().collect::<Vec<_>>(), ["1.2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]);
    assert_eq!(secured["tls_resumed"].as_u64(), Some(0), "without `session_resumption`, none is offered");
    let resuming = total(&["--tls-resumption", "1"]);
    assert!(resuming["tls_resumed"].as_u64() > Some(0));
    let clear = total(&["--robot-tls=off"]);
    assert_eq!(clear["tls_full"].as_u64(), Some(0));
    assert_eq!(clear["due_digest"], secured["due_digest"]);
}
