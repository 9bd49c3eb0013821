//! Checks of an evaluation before anything is started.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::address;
use crate::harness::{self, ProxyChoice, TestedProxy};
use crate::{Description, LabError, Mode, prepare};
use assay_protocol::network::is_private;
use assay_spe::validate::Rules;

use crate::evaluation::plan::{LISTENERS, SpePlan};

/// Refuses a plan that cannot be carried out.
pub fn check(plan: &SpePlan) -> Result<(), LabError> {
    Rules::load(plan.rules.as_deref()).map_err(LabError::plan)?;
    let mut labels = BTreeSet::from([assay_record::spe::DIRECT]);
    for proxy in &plan.proxies {
        if !labels.insert(&proxy.label) {
            return Err(LabError::plan(format!(
                "two targets are called `{}`; name one differently: --proxy NAME={}",
                proxy.label, proxy.label
            )));
        }
        check_proxy(plan, proxy)?;
    }
    match (&plan.origin, plan.mode) {
        (None, Mode::Reverse) => {
            return Err(LabError::plan(
                "a reverse proxy stands for an origin; say which with --origin HOST:PORT",
            ));
        }
        (Some((_, address)), _) => check_own(plan, *address)?,
        (None, Mode::Forward) => {}
    }
    let listeners = (plan.listeners.is_some() || has_running(plan)).then(|| all_listeners(plan));
    check_listeners(plan, listeners.as_deref().unwrap_or_default())?;
    for address in std::iter::once(plan.listen).chain(listeners.into_iter().flatten()) {
        if let Some(why) = address::cannot_listen(address) {
            return Err(LabError::plan(why));
        }
    }
    Ok(())
}

/// Every listener needs a port of its own, and none of them may be where clients come in.
fn check_listeners(plan: &SpePlan, listeners: &[SocketAddr]) -> Result<(), LabError> {
    let Some(first) = listeners.first().filter(|first| first.port() > 0) else { return Ok(()) };
    if usize::from(first.port()) + plan.proxies.len() > usize::from(u16::MAX) {
        return Err(LabError::plan(format!(
            "the Collector's listeners are on {first} and the {} ports that follow, and ports end at {}; name a smaller one \
             with --collector-listen",
            plan.proxies.len(),
            u16::MAX
        )));
    }
    let listen = plan.listen;
    let is_same = |listener: &&SocketAddr| {
        let is_any = listen.ip().is_unspecified() || listener.ip().is_unspecified();
        listener.port() == listen.port() && (is_any || listener.ip() == listen.ip())
    };
    match listeners.iter().find(is_same) {
        Some(listener) => Err(LabError::plan(format!(
            "clients are to come in on {listen}, and a listener of the Collector is to be on {listener}; listeners take {} ports from \
             {first} on: name other ones with --collector-listen, or another address with --listen",
            listeners.len()
        ))),
        None => Ok(()),
    }
}

/// True where a proxy runs already, and so must know its listener beforehand.
pub(crate) fn has_running(plan: &SpePlan) -> bool {
    plan.proxies.iter().any(|proxy| matches!(proxy.choice, ProxyChoice::Running(_)))
}

/// The listeners on one address: the Multiplier's, then one for each proxy.
pub(crate) fn all_listeners(plan: &SpePlan) -> Vec<SocketAddr> {
    let first = plan.listeners.unwrap_or(LISTENERS);
    // Port 0: the system chooses each of them.
    let port = |step: usize| match first.port() {
        0 => 0,
        port => port.saturating_add(u16::try_from(step).unwrap_or(u16::MAX)),
    };
    (0..=plan.proxies.len()).map(|step| SocketAddr::new(first.ip(), port(step))).collect()
}

fn check_proxy(plan: &SpePlan, proxy: &TestedProxy) -> Result<(), LabError> {
    match &proxy.choice {
        ProxyChoice::Builtin(_) if proxy.memory_bytes == 0 => Err(LabError::plan(
            "the built-in proxy keeps everything in memory, and --memory is 0; give it some",
        )),
        ProxyChoice::Builtin(_) => Ok(()),
        ProxyChoice::Described(description) => {
            can_be_isolated(description, plan.mode)?;
            prepare::check_described(description, plan.mode)?;
            if plan.over_tls.contains_key(&proxy.label) {
                harness::check_tls(description)?;
            }
            description.check_capacity(proxy.memory_bytes, proxy.disk_bytes).map_err(LabError::plan)
        }
        ProxyChoice::Running(address) => {
            check_own(plan, *address)?;
            let listeners = plan.listeners.unwrap_or(LISTENERS);
            if !address.ip().is_loopback() && listeners.ip().is_loopback() {
                return Err(LabError::plan(format!(
                    "the proxy {address} is on another machine and cannot reach its listener on {listeners}; say where listeners are \
                     with --collector-listen and an address of this machine that it can reach"
                )));
            }
            Ok(())
        }
    }
}

/// A forward proxy is led to its listener as to a parent, by which everything goes.
fn can_be_isolated(description: &Description, mode: Mode) -> Result<(), LabError> {
    let title = &description.title;
    if mode == Mode::Reverse {
        return Ok(());
    }
    if !description.modes.contains(&mode) {
        return Err(LabError::plan(format!(
            "{title} is no forward proxy: it stands for servers that its configuration names, and those that clients use \
             are not known beforehand; evaluate it in front of one: --origin HOST:PORT"
        )));
    }
    if harness::can_be_isolated(description, mode) {
        return Ok(());
    }
    Err(LabError::plan(format!(
        "{title} cannot be evaluated as a forward proxy: its description does not say how everything is sent through one \
         parent, which the Collector's listener is to be; start it yourself, with its listener as parent, and name its address, or \
         evaluate it in front of a server: --origin HOST:PORT"
    )))
}

fn check_own(plan: &SpePlan, address: SocketAddr) -> Result<(), LabError> {
    if !is_private(address.ip()) && !plan.own_target {
        return Err(LabError::plan(format!(
            "{address} is a public address; what clients request here is requested there too, by Assay. If it is yours, say so \
             with --i-own-this-target"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use assay_spe::spec::{Turns, When};

    use assay_proxy::spec::Chosen;

    use super::*;

    fn plan(proxies: Vec<TestedProxy>) -> SpePlan {
        SpePlan {
            exe: "/nowhere".into(),
            assay_version: "0".into(),
            listen: "127.0.0.1:0".parse().unwrap(),
            mode: Mode::Reverse,
            origin: Some(("origin.example".into(), "127.0.0.1:9".parse().unwrap())),
            tls: None,
            origin_tls: None,
            intercept: None,
            proxies,
            over_tls: BTreeMap::new(),
            proxies_tls: None,
            listeners: Some("127.0.0.1:0".parse().unwrap()),
            when: When::After,
            turns: Turns::Permuted,
            seed: 1,
            minimum_freshness: Duration::from_secs(180),
            maximum_age: Duration::from_secs(3600),
            replay: true,
            collector_memory_bytes: 1 << 28,
            collector_disk_bytes: 0,
            max_waiting: 100,
            response_timeout: Duration::from_secs(60),
            rules: None,
            directory: "/nowhere".into(),
            text_log: false,
            duration: None,
            destinations: None,
            own_target: false,
        }
    }

    fn under_test(label: &str, choice: ProxyChoice) -> TestedProxy {
        TestedProxy { label: label.into(), choice, memory_bytes: 1 << 28, disk_bytes: 1 << 30 }
    }

    fn refused(plan: &SpePlan) -> String {
        let error = check(plan).unwrap_err();
        assert!(error.before_start(), "{error}");
        error.to_string()
    }

    #[test]
    fn labels_are_told_apart_and_public_addresses_need_a_word() {
        let builtin = || under_test("a", ProxyChoice::Builtin(Chosen::default()));
        assert!(refused(&plan(vec![builtin(), builtin()])).contains("called `a`"));
        assert!(
            refused(&plan(vec![under_test("direct", ProxyChoice::Builtin(Chosen::default()))]))
                .contains("called `direct`")
        );
        let public = under_test("p", ProxyChoice::Running("8.8.8.8:80".parse().unwrap()));
        assert!(refused(&plan(vec![public])).contains("--i-own-this-target"));
    }

    #[test]
    fn a_proxy_elsewhere_must_be_able_to_reach_its_listener() {
        let remote = under_test("p", ProxyChoice::Running("10.1.2.3:80".parse().unwrap()));
        assert!(refused(&plan(vec![remote])).contains("--collector-listen"));
    }

    #[test]
    fn a_reverse_proxy_is_no_forward_proxy_here_and_all_others_can_be_led_to_their_listener() {
        for name in ["varnish", "nginx"] {
            let reverse = under_test("v", ProxyChoice::Described(Box::new(crate::find(name, &[]).unwrap())));
            let forward = SpePlan { mode: Mode::Forward, ..plan(vec![reverse]) };
            assert!(refused(&forward).contains("is no forward proxy: it stands for servers"));
        }
        for name in ["squid", "httpd", "trafficserver", "haproxy"] {
            assert!(can_be_isolated(&crate::find(name, &[]).unwrap(), Mode::Forward).is_ok(), "{name}");
        }
        let mut lonely = crate::find("httpd", &[]).unwrap();
        lonely.hierarchy.one_parent = false;
        let lonely = under_test("l", ProxyChoice::Described(Box::new(lonely)));
        let forward = SpePlan { mode: Mode::Forward, ..plan(vec![lonely]) };
        assert!(refused(&forward).contains("does not say how everything is sent through"));
    }

    #[test]
    fn a_reverse_proxy_needs_an_origin_and_rules_must_be_readable() {
        assert!(refused(&SpePlan { origin: None, ..plan(Vec::new()) }).contains("--origin"));
        let rules = Some("/nowhere/rules.toml".into());
        assert!(refused(&SpePlan { rules, ..plan(Vec::new()) }).contains("/nowhere/rules.toml"));
    }

    #[test]
    fn listeners_are_on_ports_that_follow_each_other() {
        let mut plan = plan(vec![
            under_test("a", ProxyChoice::Builtin(Chosen::default())),
            under_test("b", ProxyChoice::Builtin(Chosen::default())),
        ]);
        plan.listeners = Some("127.0.0.1:4000".parse().unwrap());
        let ports: Vec<u16> = all_listeners(&plan).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [4000, 4001, 4002]);
        plan.listeners = Some("127.0.0.1:65534".parse().unwrap());
        assert!(refused(&plan).contains("ports end at 65535"));
        plan.listeners = Some("127.0.0.1:0".parse().unwrap());
        assert!(all_listeners(&plan).iter().all(|listener| listener.port() == 0));
    }

    #[test]
    fn clients_do_not_come_in_where_a_listener_is() {
        let mut plan = plan(vec![under_test("a", ProxyChoice::Builtin(Chosen::default()))]);
        plan.listeners = Some("127.0.0.1:4000".parse().unwrap());
        for listen in ["127.0.0.1:4000", "0.0.0.0:4001"] {
            plan.listen = listen.parse().unwrap();
            assert!(refused(&plan).contains(&format!("come in on {listen}")));
        }
        for listen in ["127.0.0.1:4002", "127.0.0.2:4000"] {
            plan.listen = listen.parse().unwrap();
            assert!(check_listeners(&plan, &all_listeners(&plan)).is_ok(), "{listen}");
        }
    }
}
