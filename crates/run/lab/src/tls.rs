//! TLS in a run: which legs speak it, and the authority and the certificates that the run makes for itself.
//!
//! Nobody else has signed these certificates, and robots, origins and the target trust nobody else. The key of the authority is
//! never written down; those of certificates can be read by their owner only, and are removed as soon as everybody has started.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::target_spec::TargetTls;
use assay_net::tls::authority::{Authority, Identity, KeyKind, Validity};
use assay_net::tls::client::{TlsClient, TlsServerName, Trust, host_of};
use assay_net::tls::settings::{ClientTls, Offer, ServerTls};
use assay_record::run::TlsInfo;
use assay_workload::model::Workload;

use crate::description::{Description, Leg, ORIGIN_NAME};
use crate::error::{FileError, LabError};
use crate::mode::Mode;
use crate::plan::{RunPart, RunPlan, TargetChoice};
use crate::process::install_advice;

/// Legs of a run that speak TLS, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsPlan {
    /// Robots speak it to the target.
    pub robots: bool,
    /// Origins speak it: the target does to them, or robots do where there is no target.
    pub origins: bool,
    /// Algorithm of the certificates' keys.
    pub key: KeyKind,
    /// Versions and cipher suites of robots and origins.
    pub offer: Offer,
    /// Probability that a robot's new connection offers to resume an earlier session.
    pub resumption: f64,
    /// Authorities that robots trust in place of the run's own, for a target that runs already.
    pub ca: Option<PathBuf>,
    pub insecure: bool,
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self {
            robots: false,
            origins: false,
            key: KeyKind::default(),
            offer: Offer::default(),
            resumption: 1.0,
            ca: None,
            insecure: false,
        }
    }
}

impl TlsPlan {
    /// Some leg speaks TLS.
    pub fn is_some(&self) -> bool {
        self.robots || self.origins
    }

    /// For the record; none: all in the clear.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        self.is_some().then(|| TlsInfo {
            robots: self.robots,
            origins: self.origins,
            versions: format!("{}-{}", self.offer.oldest.name(), self.offer.newest.name()),
            ciphers: self.offer.ciphers.clone(),
            key: self.key.name().into(),
            resumption: self.resumption,
            verified: !self.insecure,
        })
    }

    /// Robots speak TLS, to whatever they send requests to.
    fn by_robots(&self, target: &TargetChoice) -> bool {
        self.robots || (self.origins && *target == TargetChoice::Direct)
    }

    fn by_origins(&self, target: &TargetChoice) -> bool {
        self.origins || (self.robots && *target == TargetChoice::Direct)
    }
}

/// Refuses TLS where the target cannot speak it, or nobody would.
pub(crate) fn check(plan: &RunPlan) -> Result<(), LabError> {
    let tls = &plan.tls;
    let refusal = if !tls.is_some() {
        (tls.ca.is_some() || tls.insecure)
            .then(|| "--ca and --insecure are for robots that speak TLS; add --robot-tls".to_owned())
    } else {
        refusal(plan)
    };
    if let Some(why) = refusal {
        return Err(LabError::plan(why));
    }
    if !tls.is_some() {
        return Ok(());
    }
    // What files and flags are wrong about is found by trying them.
    let told = ClientTls { offer: tls.offer.clone(), ca: tls.ca.clone(), resumption: tls.resumption };
    assay_net::tls::setup::client(&told).map(drop).map_err(LabError::plan)
}

fn refusal(plan: &RunPlan) -> Option<String> {
    let tls = &plan.tls;
    if !(0.0..=1.0).contains(&tls.resumption) {
        return Some(format!("--tls-resumption {}: a probability lies between 0 and 1", tls.resumption));
    }
    if plan.part != RunPart::Whole {
        return Some("a part of a run has no authority that the other parts know; run TLS as a whole".into());
    }
    if plan.target.mode() == Some(Mode::Forward) {
        return Some("TLS is for direct runs and reverse proxies; leave --forward out".into());
    }
    let runs_already = matches!(plan.target, TargetChoice::Running { .. });
    if tls.ca.is_some() && !runs_already {
        return Some(
            "--ca is for a target that runs already: the certificates of what Assay starts are made for the run, and robots trust \
             them; leave --ca out"
                .into(),
        );
    }
    if (!runs_already || tls.origins) && !is_usable(tls) {
        return Some(format!(
            "none of the cipher suites {} goes with a key of {}, which Assay's certificates have; choose another key (--tls-key), or \
             other suites (--tls-ciphers)",
            tls.offer.ciphers.join(", "),
            tls.key.name()
        ));
    }
    match &plan.target {
        TargetChoice::Topology(_) => {
            Some("caches that work together speak in the clear; leave --robot-tls and --origin-tls out".into())
        }
        TargetChoice::Described(description, _) => {
            let wanted = [(tls.robots, Leg::Robots), (tls.origins, Leg::Origins)];
            let missing = wanted.into_iter().find(|(is_wanted, leg)| *is_wanted && !description.tls.contains(leg));
            let cannot = missing.map(|(_, leg)| {
                format!(
                    "{} cannot speak TLS {}: its description does not say how; leave {flag} out ({flag}=off if the \
                     workload has `ssl_wraps`), or choose another proxy (`assay proxies` lists them)",
                    description.title,
                    leg.words(),
                    flag = leg.flag()
                )
            });
            // Whether it is installed elsewhere is for the agent there to say.
            let is_here = tls.robots && plan.remote.is_none();
            cannot.or_else(|| is_here.then(|| missing_terminator(description)).flatten())
        }
        TargetChoice::Running { .. } if tls.robots && tls.ca.is_none() && !tls.insecure => Some(
            "a target that already runs has a certificate that this run did not make; name its authority with --ca FILE, \
             or verify nothing with --insecure"
                .into(),
        ),
        _ => None,
    }
}

/// One of the cipher suites goes with the kind of key: those of TLS 1.2 name it, those of TLS 1.3 go with any.
fn is_usable(tls: &TlsPlan) -> bool {
    let goes = |suite: &String| match tls.key {
        _ if !suite.contains("_WITH_") => true,
        KeyKind::Rsa2048 => suite.contains("_RSA_"),
        KeyKind::P256 | KeyKind::P384 => suite.contains("_ECDSA_"),
    };
    tls.offer.ciphers.is_empty() || tls.offer.ciphers.iter().any(goes)
}

/// Reason why a proxy cannot speak TLS to robots on this machine; none: it can, or needs no program for that.
pub(crate) fn missing_terminator(description: &Description) -> Option<String> {
    let terminator = description.tls_terminator.as_ref()?;
    let program = terminator.missing()?;
    let advice = install_advice(terminator.package.as_deref());
    Some(format!(
        "{} speaks TLS through {}, and `{program}` was not found; {advice}",
        description.title, terminator.title
    ))
}

/// TLS settings of all roles of a run. Dropped, the keys that were written are gone.
#[derive(Debug, Default)]
pub(crate) struct RunTls {
    /// For robots; none: in the clear.
    pub(crate) robots: Option<ClientTls>,
    pub(crate) origins: Option<ServerTls>,
    /// For the side of the built-in proxy that robots connect to.
    pub(crate) listen: Option<ServerTls>,
    /// For its side that connects to origins.
    pub(crate) upstream: Option<ClientTls>,
    /// For a proxy that the lab starts.
    pub(crate) proxy: Option<ProxyTls>,
    /// For one that is a role on another machine.
    pub(crate) role: Option<TargetTls>,
    /// Client of the first requests.
    pub(crate) probe: Option<TlsClient>,
    keys: Vec<PathBuf>,
}

/// TLS of a proxy that the lab starts.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyTls {
    /// Certificate and key towards robots; none: in the clear.
    pub identity: Option<Identity>,
    /// Origins speak TLS.
    pub to_origins: bool,
    /// The certificate of the run's authority, as PEM.
    pub ca: String,
}

impl RunTls {
    /// Makes authority and certificates, and writes down what roles read.
    pub(crate) fn make(
        plan: &RunPlan,
        run_dir: &Path,
        origins: &[SocketAddr],
        target: Option<SocketAddr>,
    ) -> Result<Self, LabError> {
        let tls = &plan.tls;
        let mut made = Self::default();
        if !tls.is_some() {
            return Ok(made);
        }
        let cannot = |e: &dyn std::fmt::Display| LabError::run(format!("cannot set up TLS: {e}"));
        let validity = Validity::around(now_unix_s());
        let authority = Authority::new(tls.key, validity).map_err(|e| cannot(&e))?;
        let dir = run_dir.join("tls");
        let written = |name: &str, e: io::Error| LabError::run(FileError::write(&dir.join(name), e));
        fs::create_dir_all(&dir).map_err(|e| written("", e))?;
        let ca = dir.join("ca.pem");
        let authority_file = ca.clone();
        fs::write(&ca, &authority.certificate).map_err(|e| written("ca.pem", e))?;
        let client =
            |ca: Option<PathBuf>| ClientTls { offer: tls.offer.clone(), ca, resumption: tls.resumption };
        let hosts = hosts(&plan.workload);
        if tls.by_origins(&plan.target) {
            let mut names = with_addresses(&hosts, origins);
            names.push(ORIGIN_NAME.to_owned());
            let identity = authority.issue(&names, validity).map_err(|e| cannot(&e))?;
            made.origins =
                Some(made.write(&dir, "origins", &identity, &tls.offer).map_err(|e| written("origins", e))?);
            made.upstream = Some(client(Some(ca.clone())));
        }
        if tls.by_robots(&plan.target) {
            let trusted = match (tls.insecure, &tls.ca) {
                (true, _) => None,
                (false, Some(file)) => Some(std::path::absolute(file).unwrap_or_else(|_| file.clone())),
                (false, None) => Some(ca),
            };
            let told = client(trusted);
            made.probe = Some(assay_net::tls::setup::client(&told).map_err(LabError::plan)?);
            made.robots = Some(told);
        }
        if plan.target.is_started() {
            let names = with_addresses(&hosts, target.as_slice());
            let identity = tls.robots.then(|| authority.issue(&names, validity)).transpose();
            let identity = identity.map_err(|e| cannot(&e))?;
            let is_role = plan.remote.is_some() || matches!(plan.target, TargetChoice::Builtin(_));
            if let Some(identity) = identity.as_ref().filter(|_| is_role) {
                made.listen =
                    Some(made.write(&dir, "target", identity, &tls.offer).map_err(|e| written("target", e))?);
            }
            made.role =
                Some(TargetTls { listen: made.listen.clone(), to_origins: tls.origins, ca: authority_file });
            let (ca, to_origins) = (authority.certificate, tls.origins);
            made.proxy = Some(ProxyTls { identity, to_origins, ca });
        }
        Ok(made)
    }

    fn write(&mut self, dir: &Path, name: &str, identity: &Identity, offer: &Offer) -> io::Result<ServerTls> {
        let certificate = dir.join(format!("{name}.pem"));
        fs::write(&certificate, &identity.certificate)?;
        let key = dir.join(format!("{name}.key"));
        self.keys.push(key.clone());
        write_private(&key, &identity.key)?;
        Ok(ServerTls { offer: offer.clone(), certificate, key })
    }

    /// Everybody who needs them has read the keys: they are removed.
    pub(crate) fn forget_keys(&mut self) {
        for key in self.keys.drain(..) {
            // One that was not written cannot be removed.
            let _ = fs::remove_file(key);
        }
    }
}

impl Drop for RunTls {
    fn drop(&mut self) {
        self.forget_keys();
    }
}

/// A certificate for these names, of an authority that signs nothing else, and the certificate of that.
pub(crate) fn identity(names: &[String]) -> Result<(Identity, String), LabError> {
    let validity = Validity::around(now_unix_s());
    let made = Authority::new(KeyKind::default(), validity).and_then(|authority| {
        let identity = authority.issue(names, validity)?;
        Ok((identity, authority.certificate))
    });
    made.map_err(|e| LabError::run(format!("cannot set up TLS: {e}")))
}

/// A certificate and its key, as a role reads them. Dropped, the key is removed.
#[derive(Debug)]
pub struct Written {
    pub tls: ServerTls,
}

impl Drop for Written {
    fn drop(&mut self) {
        // One that was not written cannot be removed.
        let _ = fs::remove_file(&self.tls.key);
    }
}

/// Writes a certificate and its key below a directory.
pub(crate) fn written(directory: &Path, identity: &Identity) -> Result<Written, LabError> {
    let directory = directory.join("tls");
    let tls = ServerTls {
        offer: Offer::default(),
        certificate: directory.join("target.pem"),
        key: directory.join("target.key"),
    };
    let cannot = |e: io::Error| LabError::run(FileError::new("write into", &directory, e));
    fs::create_dir_all(&directory).map_err(cannot)?;
    fs::write(&tls.certificate, &identity.certificate).map_err(cannot)?;
    let written = Written { tls };
    write_private(&written.tls.key, &identity.key).map_err(cannot)?;
    Ok(written)
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A first request over TLS.
#[derive(Debug, Clone)]
pub struct TlsProbe {
    pub client: TlsClient,
    /// The name that the certificate is verified for.
    pub name: TlsServerName,
}

impl TlsProbe {
    /// With a client, for the server that an authority names.
    pub(crate) fn new(client: &TlsClient, authority: &str) -> Result<Self, LabError> {
        let name = TlsServerName::from_authority(authority).map_err(LabError::plan)?;
        Ok(Self { client: client.with_own_sessions(), name })
    }
}

impl ProxyTls {
    /// A client that trusts the certificate of the proxy; none: it speaks in the clear.
    pub(crate) fn probe(&self, authority: &str) -> Result<Option<TlsProbe>, LabError> {
        if self.identity.is_none() {
            return Ok(None);
        }
        let client = TlsClient::new(Trust::Authorities(self.ca.as_bytes()), &Offer::default());
        TlsProbe::new(&client.map_err(LabError::plan)?, authority).map(Some)
    }
}

/// The hosts of all origins, each once.
fn hosts(workload: &Workload) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for origin in &workload.origins {
        let host = host_of(&origin.authority);
        if !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}

/// Hosts and addresses, each once.
fn with_addresses(hosts: &[String], addresses: &[SocketAddr]) -> Vec<String> {
    let mut names = hosts.to_vec();
    for address in addresses {
        let ip = address.ip().to_string();
        if !names.contains(&ip) {
            names.push(ip);
        }
    }
    names
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use assay_net::tls::settings::TlsVersion;

    use super::*;
    use crate::testing;

    fn tls(robots: bool, origins: bool) -> TlsPlan {
        TlsPlan { robots, origins, ..TlsPlan::default() }
    }

    #[test]
    fn keys_are_for_their_owner_only_and_go_when_the_run_goes() {
        let dir = tempfile::tempdir().expect("there is room");
        let plan = RunPlan { tls: tls(true, true), ..testing::plan() };
        let target = Some("127.0.0.1:8080".parse().expect("an address"));
        let made = RunTls::make(&plan, dir.path(), &[], target).expect("can be made");
        let key = dir.path().join("tls/target.key");
        assert_eq!(key.metadata().expect("is there").permissions().mode() & 0o777, 0o600);
        assert!(made.listen.is_some() && made.upstream.is_some() && made.robots.is_some());
        drop(made);
        let left = fs::read_dir(dir.path().join("tls")).expect("is there");
        let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert!(
            !left.is_empty() && !left.iter().any(|name| name.to_string_lossy().ends_with(".key")),
            "{left:?}"
        );
    }

    #[test]
    fn a_key_that_is_written_for_one_proxy_goes_when_it_was_read() {
        let dir = tempfile::tempdir().expect("there is room");
        let (identity, ca) = identity(&["127.0.0.1".to_owned()]).expect("can be made");
        assert!(ca.contains("BEGIN CERTIFICATE"));
        let keys = written(dir.path(), &identity).expect("can be written");
        let key = dir.path().join("tls/target.key");
        assert_eq!(key.metadata().expect("is there").permissions().mode() & 0o777, 0o600);
        drop(keys);
        assert!(!key.exists() && dir.path().join("tls/target.pem").is_file());
    }

    #[test]
    fn without_a_target_both_flags_mean_the_one_leg_that_there_is() {
        for (robots, origins) in [(true, false), (false, true)] {
            let dir = tempfile::tempdir().expect("there is room");
            let plan = RunPlan { tls: tls(robots, origins), target: TargetChoice::Direct, ..testing::plan() };
            let made = RunTls::make(&plan, dir.path(), &[], None).expect("can be made");
            assert!(made.robots.is_some() && made.origins.is_some() && made.proxy.is_none());
        }
    }

    #[test]
    fn what_could_only_fail_in_every_request_is_refused() {
        let refused = |change: &dyn Fn(&mut TlsPlan)| {
            let mut plan = RunPlan { tls: tls(true, false), target: TargetChoice::Direct, ..testing::plan() };
            change(&mut plan.tls);
            check(&plan).map_err(|error| error.to_string())
        };
        let authority = refused(&|tls| tls.ca = Some("ca.pem".into())).expect_err("is of no use");
        assert!(authority.contains("leave --ca out"), "{authority}");
        let suite = |tls: &mut TlsPlan, name: &str| {
            tls.offer = Offer {
                oldest: TlsVersion::Tls12,
                newest: TlsVersion::Tls12,
                ciphers: vec![format!("TLS_ECDHE_{name}")],
            };
        };
        let other =
            refused(&|tls| suite(tls, "RSA_WITH_AES_128_GCM_SHA256")).expect_err("nothing is agreed upon");
        assert!(other.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 goes with a key of p256"), "{other}");
        assert_eq!(refused(&|tls| suite(tls, "ECDSA_WITH_AES_128_GCM_SHA256")), Ok(()));
        let with_rsa = |tls: &mut TlsPlan| {
            tls.key = KeyKind::Rsa2048;
            suite(tls, "RSA_WITH_AES_128_GCM_SHA256");
        };
        assert_eq!(refused(&with_rsa), Ok(()));
    }

    #[test]
    fn what_cannot_speak_tls_is_refused_by_name() {
        let refused = |plan: RunPlan| check(&plan).expect_err("cannot be").to_string();
        let forward = RunPlan {
            tls: tls(true, false),
            target: TargetChoice::Builtin(Mode::Forward),
            ..testing::plan()
        };
        assert!(refused(forward).contains("leave --forward out"));
        let mut varnish = crate::description::find("varnish", &[]).expect("is shipped");
        let through =
            |description: &Description| TargetChoice::Described(Box::new(description.clone()), Mode::Reverse);
        let target = through(&varnish);
        let message = refused(RunPlan { tls: tls(false, true), target, ..testing::plan() });
        assert!(message.contains("Varnish Cache cannot speak TLS to origins"), "{message}");
        varnish.tls_terminator.as_mut().expect("it has one").command = vec!["no-such-program".into()];
        let target = through(&varnish);
        let message = refused(RunPlan { tls: tls(true, false), target, ..testing::plan() });
        assert!(message.contains("Varnish Cache speaks TLS through hitch"), "{message}");
        assert!(message.contains("apt-get install hitch"), "{message}");
        let target = TargetChoice::Running {
            address: "127.0.0.1:1".parse().expect("an address"),
            mode: Mode::Reverse,
        };
        let message = refused(RunPlan { tls: tls(true, false), target, ..testing::plan() });
        assert!(message.contains("--ca FILE"), "{message}");
        let alone = TlsPlan { insecure: true, ..TlsPlan::default() };
        assert!(refused(RunPlan { tls: alone, ..testing::plan() }).contains("add --robot-tls"));
    }
}
