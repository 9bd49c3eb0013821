//! The authority with which an evaluation opens tunnels: it is made once, only its owner can read its key, and one that cannot be used is
//! refused before anything starts.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::intercept::AUTHORITY_NAME;

use crate::support::Assay;

/// An evaluation that would end at once.
const EVALUATION: [&str; 7] = ["spe", "--listen", "127.0.0.1:0", "--proxy", "builtin", "--duration", "100ms"];

fn intercept(assay: &Assay, dir: &str) -> crate::support::Said {
    assay.run(&[&EVALUATION[..], &["--intercept", dir]].concat())
}

#[test]
fn an_authority_is_made_for_its_owner_alone_and_never_overwritten() {
    let assay = Assay::new();
    let said = assay.run(&["spe", "authority", "kept/own"]).exits(0);
    assert!(said.stdout.contains("next: assay spe --intercept kept/own"), "{said:?}");
    let mode = |name: &str| assay.path(name).metadata().expect("it was made").mode() & 0o777;
    assert_eq!((mode("kept/own/authority.key"), mode("kept/own")), (0o600, 0o700));
    let both = || {
        ["authority.pem", "authority.key"]
            .map(|name| std::fs::read(assay.path("kept/own").join(name)).expect("it was made"))
    };
    let before = both();
    assay.run(&["spe", "authority", "kept/own"]).exits(2).complains("is never overwritten");
    std::fs::remove_file(assay.path("kept/own/authority.pem")).expect("it was made");
    assay.run(&["spe", "authority", "kept/own"]).exits(2).complains("authority.key already");
    assert_eq!(std::fs::read(assay.path("kept/own/authority.key")).expect("it is there"), before[1]);
}

#[test]
fn an_authority_that_cannot_be_used_is_refused_with_what_is_wrong() {
    let assay = Assay::new();
    intercept(&assay, "nowhere")
        .exits(2)
        .complains("assay spe authority DIR")
        .complains("nowhere/authority.pem");
    for dir in ["own", "other"] {
        assay.run(&["spe", "authority", dir]).exits(0);
    }
    std::fs::copy(assay.path("other/authority.key"), assay.path("own/authority.key")).expect("a file");
    intercept(&assay, "own").exits(2).complains("the private key does not match the certificate");
    let key = assay.path("other/authority.key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o640)).expect("it is ours");
    intercept(&assay, "other").exits(2).complains("mode 640").complains("chmod 600");
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let past = Validity { from_unix_s: now_unix_s - 7_200, until_unix_s: now_unix_s - 3_600 };
    let expired = Authority::named(AUTHORITY_NAME, KeyKind::P256, past).expect("can be made");
    let identity =
        expired.issue(&["www.test".to_owned()], Validity::around(now_unix_s)).expect("can be made");
    for (certificate, key, words) in [
        (&expired.certificate, expired.key(), "the authority expired 60 minutes ago"),
        (&identity.certificate, identity.key.clone(), "not that of an authority"),
    ] {
        std::fs::write(assay.path("own/authority.pem"), certificate).expect("a writable file");
        std::fs::write(assay.path("own/authority.key"), key).expect("a writable file");
        intercept(&assay, "own").exits(2).complains(words);
    }
}

#[test]
fn tunnels_are_opened_by_forward_proxies_whose_clients_speak_in_the_clear() {
    let assay = Assay::new();
    assay.run(&["spe", "authority", "own"]).exits(0);
    for other in [&["--origin", "127.0.0.1:9"][..], &["--certificate", "a", "--key", "b"]] {
        let typed = [&EVALUATION[..], &["--intercept", "own"], other].concat();
        assay.run(&typed).exits(2).complains("cannot be used with");
    }
    let insecure = [&EVALUATION[..], &["--intercept", "own", "--origin-insecure"]].concat();
    assay.run(&insecure).exits(2).complains("cannot be used with");
}
