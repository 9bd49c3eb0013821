//! The mode of a switch file, and the settings that layer 4 has no use for: it sees connections, and no request.

use assay_base::settings::{Fields, Mistake, Value};
use assay_cluster::dispatch::PolicyConfig;
use thiserror::Error;

use super::{Mode, Splice};

/// Top-level settings about requests, or about protocols above TCP.
const OF_REQUESTS: [&str; 8] =
    ["tls", "certificate", "http2", "name", "access-log", "trusted-proxies", "upgrades", "class"];
/// Settings of `[limits]` and of `[timeouts]` about requests.
const LIMITS: [&str; 5] = ["head-size", "head-fields", "target-size", "body-size", "client-rate"];
const TIMEOUTS: [&str; 4] = ["client-idle", "client-request", "response", "server-idle"];

#[derive(Debug, Error)]
enum UnknownValue {
    #[error("`{0}` is neither \"http\" nor \"tcp\"")]
    Mode(String),
    #[error("`{0}` is none of \"auto\", \"always\" and \"never\"")]
    Splice(String),
}

/// Parses `mode` and `splice`; an error names settings that have no use in the mode.
pub(super) fn mode(top: &Fields<'_>) -> Result<(Mode, Splice), Mistake> {
    let mode = top.get("mode").map_or(Ok(Mode::Http), |value| value.read(parse_mode))?;
    let splice = top.get("splice").map_or(Ok(Splice::Auto), |value| value.read(parse_splice))?;
    if mode == Mode::Tcp {
        let nested = [("limits", &LIMITS[..]), ("timeouts", &TIMEOUTS[..])];
        refuse(top, &OF_REQUESTS)?;
        for (section, keys) in nested {
            if let Some(value) = top.get(section) {
                refuse(&value.fields(section)?, keys)?;
            }
        }
        for server in top.get("server").map_or(Ok(Vec::new()), |value| value.list())? {
            refuse(&server.fields("[[server]]")?, &["tls", "http"])?;
        }
    }
    Ok((mode, splice))
}

/// Refuses a policy that chooses by request in layer-4 mode.
pub(super) fn check_policy(
    mode: Mode,
    policy: &PolicyConfig,
    value: Option<&Value<'_>>,
) -> Result<(), Mistake> {
    match value {
        Some(value) if mode == Mode::Tcp && policy.needs_request() => {
            let all = PolicyConfig::all();
            let others: Vec<&str> =
                all.iter().filter(|policy| !policy.needs_request()).map(PolicyConfig::name).collect();
            Err(value.wrong(&format!(
                "{} chooses by what is requested, and mode = \"tcp\" does not see it; these need no request: {}",
                policy.name(),
                others.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

fn refuse(fields: &Fields<'_>, keys: &[&str]) -> Result<(), Mistake> {
    let found = keys.iter().find_map(|key| fields.get(key));
    found.map_or(Ok(()), |value| {
        Err(value.wrong("mode = \"tcp\" passes connections on as they are and sees no request: leave it out"))
    })
}

fn parse_mode(text: &str) -> Result<Mode, UnknownValue> {
    match text {
        "http" => Ok(Mode::Http),
        "tcp" => Ok(Mode::Tcp),
        other => Err(UnknownValue::Mode(other.to_owned())),
    }
}

fn parse_splice(text: &str) -> Result<Splice, UnknownValue> {
    match text {
        "auto" => Ok(Splice::Auto),
        "always" => Ok(Splice::Always),
        "never" => Ok(Splice::Never),
        other => Err(UnknownValue::Splice(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Splice, explain, read};
    use super::*;

    const SMALL: &str =
        "listen = \"127.0.0.1:0\"\nmode = \"tcp\"\n?\n[[server]]\naddress = \"127.0.0.1:9001\"\n";

    fn text(more: &str) -> String {
        SMALL.replace('?', more)
    }

    #[test]
    fn policies_that_need_a_request_are_refused_by_name_and_all_others_are_taken() {
        for policy in PolicyConfig::all() {
            let name = policy.name();
            let setting = match policy {
                PolicyConfig::Ward(_) => "policy = { name = \"ward\", core = [\"/a\"] }".to_owned(),
                _ => format!("policy = \"{name}\""),
            };
            match read("s.toml", &text(&setting)) {
                Ok(config) => {
                    assert!(!policy.needs_request(), "{name}");
                    assert_eq!((config.mode, config.splice), (Mode::Tcp, Splice::Auto));
                }
                Err(mistake) => {
                    assert!(policy.needs_request(), "{mistake}");
                    let start = format!("{name} chooses by what is requested");
                    assert!(
                        mistake.message.contains(&start) && mistake.message.contains("s.toml:3"),
                        "{mistake}"
                    );
                    assert!(mistake.message.contains("rand, rr, wrr, wrr-load, lc"), "{mistake}");
                }
            }
            assert!(
                read("s.toml", &text(&setting).replace("\"tcp\"", "\"http\"")).is_ok(),
                "{name} over HTTP"
            );
        }
    }

    #[test]
    fn what_is_about_requests_is_refused_by_name() {
        for setting in [
            "http2 = \"all\"",
            "name = \"front\"",
            "access-log = \"a.log\"",
            "trusted-proxies = \"::1\"",
            "upgrades = \"none\"",
            "[limits]\nhead-size = \"1KB\"",
            "[timeouts]\nresponse = \"1s\"",
            "[[class]]\nname = \"a\"",
        ] {
            let mistake = read("s.toml", &text(setting)).expect_err(setting);
            assert!(mistake.message.contains("sees no request"), "{setting}: {mistake}");
        }
        let tls_addresses = format!("{}tls = {{ verify = false }}\n", text(""));
        assert!(read("s.toml", &tls_addresses).expect_err("TLS").message.contains("sees no request"));
        let kept = "[timeouts]\ntunnel = \"5s\"\nconnect = \"1s\"\n[limits]\nconnections = 5\nqueue = 0";
        let config = read("s.toml", &text(kept)).expect("is right");
        assert_eq!(config.limits.connections, 5);
        for wrong in ["mode = \"udp\"", "splice = \"yes\""] {
            assert!(read("s.toml", &text("").replace("mode = \"tcp\"", wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_mode_is_explained() {
        let said = explain(&read("s.toml", &text("policy = \"rr\"")).expect("is right"));
        for part in
            ["layer 4", "rr over all servers", "at most 1000 connections at once", "kernel moves bytes"]
        {
            assert!(said.contains(part), "{part} is not in:\n{said}");
        }
        assert!(!said.contains("heads of up to") && !said.contains("Via"), "{said}");
    }
}
