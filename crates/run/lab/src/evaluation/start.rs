//! The start of the Collector, the proxies under test and the Multiplier.

use std::net::SocketAddr;

use crate::address::LoopbackNet;
use crate::description::{Description, TemplateOrigin};
use crate::error::FileError;
use crate::harness::{self, ProxyCertificate, ProxyChoice, TestedProxy};
use crate::real_proxy::{self, RealProxy};
use crate::roles::{Role, RoleKind};
use crate::{LabError, Mode, prepare};
use assay_net::tls::settings::{ClientTls, Offer};
use assay_proxy::spec::Chosen;
use assay_record::spe::DIRECT;
use assay_spe::spec::{
    CollectorLog, CollectorSpec, DiskSpec, Listener, MultiplierSpec, ProxyUnderTest, TlsTo,
};

use crate::evaluation::check;
use crate::evaluation::plan::{SpeEvent, SpePlan};
use crate::evaluation::supervisor::Evaluation;

/// Directory of recordings that memory has no room for, while the evaluation lasts.
const RECORDINGS: &str = "recordings";

/// Addresses of the listeners: addresses of our own, unless somebody outside must know them.
pub(crate) fn listeners(plan: &SpePlan, net: &LoopbackNet) -> Result<Vec<SocketAddr>, LabError> {
    if plan.listeners.is_some() || check::has_running(plan) {
        return Ok(check::all_listeners(plan));
    }
    (0..=plan.proxies.len()).map(|place| net.listener(u8::try_from(place).unwrap_or(u8::MAX))).collect()
}

impl Evaluation {
    /// Starts the Collector and waits until its listeners are open.
    pub(crate) async fn start_collector(&mut self) -> Result<(), LabError> {
        let plan = &self.plan;
        let labels = std::iter::once(DIRECT).chain(plan.proxies.iter().map(|proxy| proxy.label.as_str()));
        let listeners = labels
            .zip(&self.listeners)
            .map(|(client, &listen)| Listener { listen, client: client.to_owned() })
            .collect();
        let spec = CollectorSpec {
            lost_key: self.lost_key.clone(),
            listeners,
            origins: Vec::new(),
            default_origin: plan.origin.as_ref().map(|(_, address)| *address),
            origin_tls: plan
                .origin
                .as_ref()
                .zip(plan.origin_tls.clone())
                .map(|((authority, _), client)| TlsTo { client, authority: authority.clone() }),
            tunnels_tls: plan.intercept.as_ref().map(|(_, origins)| origins.clone()),
            destinations: plan.destinations.clone(),
            minimum_freshness_ms: millis(plan.minimum_freshness),
            maximum_age_ms: millis(plan.maximum_age),
            replay: plan.replay,
            memory_bytes: plan.collector_memory_bytes,
            disk: (plan.collector_disk_bytes > 0).then(|| DiskSpec {
                directory: plan.directory.join(RECORDINGS),
                bytes: plan.collector_disk_bytes,
            }),
            log: Some(CollectorLog { directory: plan.directory.clone(), text: plan.text_log }),
            cpus: Vec::new(),
        };
        self.collector = Some(self.start_role(RoleKind::Collector, "collector", &spec)?);
        self.listeners = self.ready(RoleKind::Collector).await?;
        Ok(())
    }

    /// Starts those proxies that do not run already; where all of them are, and how they are spoken to.
    pub(crate) async fn start_proxies(&mut self) -> Result<Vec<ProxyUnderTest>, LabError> {
        let mut started = Vec::new();
        for (index, proxy) in self.plan.proxies.clone().into_iter().enumerate() {
            let listener = *self
                .listeners
                .get(index + 1)
                .ok_or_else(|| LabError::run("the Collector has too few listeners"))?;
            let certificate = self.certificate(index, &proxy)?;
            let (address, software) = match &proxy.choice {
                ProxyChoice::Running(address) => {
                    self.notify(SpeEvent::Listener { label: proxy.label.clone(), listener });
                    (*address, None)
                }
                ProxyChoice::Builtin(chosen) => {
                    let address =
                        self.start_builtin(index, &proxy, *chosen, listener, certificate.as_ref()).await?;
                    (address, Some("Assay".to_owned()))
                }
                ProxyChoice::Described(description) => {
                    self.start_described(index, &proxy, description, listener, certificate.as_ref()).await?
                }
            };
            if let Some(target) = self.info.targets.get_mut(index + 1) {
                target.address = Some(address.to_string());
                target.software = software;
            }
            let tls = self.tls_to(&proxy, certificate.as_ref())?;
            started.push(ProxyUnderTest { label: proxy.label, address, tls });
        }
        self.write_info()?;
        Ok(started)
    }

    /// The certificate of a proxy that is started and gets its requests over TLS: for the host that it stands for, and for where it is.
    fn certificate(&self, index: usize, proxy: &TestedProxy) -> Result<Option<ProxyCertificate>, LabError> {
        let Some(authority) = self.plan.over_tls.get(&proxy.label) else { return Ok(None) };
        if matches!(proxy.choice, ProxyChoice::Running(_)) {
            return Ok(None);
        }
        let listen = self.net.cache(u8::try_from(index).unwrap_or(u8::MAX))?;
        ProxyCertificate::standing_for(authority, listen).map(Some)
    }

    /// TLS settings towards a proxy; none: in the clear.
    fn tls_to(
        &self,
        proxy: &TestedProxy,
        certificate: Option<&ProxyCertificate>,
    ) -> Result<Option<TlsTo>, LabError> {
        let Some(authority) = self.plan.over_tls.get(&proxy.label) else { return Ok(None) };
        let client = match certificate {
            None => self.plan.proxies_tls.clone(),
            Some(certificate) => {
                let ca = certificate.write_authority(&self.dir.proxy_dir(&proxy.label))?;
                Some(ClientTls { offer: Offer::default(), ca: Some(ca), resumption: 1.0 })
            }
        };
        Ok(client.map(|client| TlsTo { client, authority: authority.clone() }))
    }

    async fn start_builtin(
        &mut self,
        index: usize,
        proxy: &TestedProxy,
        chosen: Chosen,
        listener: SocketAddr,
        certificate: Option<&ProxyCertificate>,
    ) -> Result<SocketAddr, LabError> {
        self.notify(SpeEvent::Starting(format!("{}: the built-in proxy", proxy.label)));
        let place = u8::try_from(index).unwrap_or(u8::MAX);
        let mut spec = harness::builtin_spec(proxy, chosen, self.net.cache(place)?, listener);
        // Its key is on disk until it is read.
        let directory = self.dir.proxy_dir(&proxy.label);
        let keys = certificate.map(|certificate| certificate.for_builtin(&directory)).transpose()?;
        spec.tls = keys.as_ref().map(|keys| keys.tls.clone());
        let kind = RoleKind::Proxy(place.into());
        let role = self.start_role(kind, &format!("proxy-{}", proxy.label), &spec)?;
        self.builtins.push(role);
        let listening = self.ready(kind).await?;
        drop(keys);
        Ok(listening.first().copied().unwrap_or(spec.listen))
    }

    async fn start_described(
        &mut self,
        index: usize,
        proxy: &TestedProxy,
        description: &Description,
        listener: SocketAddr,
        certificate: Option<&ProxyCertificate>,
    ) -> Result<(SocketAddr, Option<String>), LabError> {
        let version = real_proxy::version(description).await.map_err(LabError::run)?;
        let software = format!("{} {version}", description.title);
        self.notify(SpeEvent::Starting(format!("{}: {software}", proxy.label)));
        let keep = self.dir.proxy_dir(&proxy.label);
        std::fs::create_dir_all(&keep).map_err(|e| LabError::run(FileError::make(&keep, e)))?;
        let place = u8::try_from(index).unwrap_or(u8::MAX);
        let listen = self.net.cache(place)?;
        let authority = match &self.plan.origin {
            Some((authority, _)) => authority.clone(),
            None => listener.to_string(),
        };
        let origins = vec![TemplateOrigin::new(0, &authority, listener)];
        let mut real_plan =
            harness::described_plan(proxy, description, self.plan.mode, listen, origins, keep);
        real_plan.tls = certificate.map(ProxyCertificate::for_described);
        let mut started = RealProxy::start(real_plan).await?;
        started.wait_ready().await?;
        self.reals.push((proxy.label.clone(), Box::new(started)));
        Ok((listen, Some(software)))
    }

    /// Starts the Multiplier and waits until clients may come: where.
    pub(crate) async fn start_multiplier(
        &mut self,
        proxies: Vec<ProxyUnderTest>,
    ) -> Result<SocketAddr, LabError> {
        let plan = &self.plan;
        let collector =
            self.listeners.first().copied().ok_or_else(|| LabError::run("the Collector has no listener"))?;
        let spec = MultiplierSpec {
            lost_key: self.lost_key.clone(),
            listen: plan.listen,
            tls: plan.tls.clone(),
            intercept: plan.intercept.as_ref().map(|(authority, _)| authority.clone()),
            collector: prepare::reachable(collector),
            proxies,
            forward: plan.mode == Mode::Forward,
            when: plan.when,
            turns: plan.turns,
            seed: plan.seed,
            max_waiting: plan.max_waiting,
            response_timeout_ms: millis(plan.response_timeout),
            rules: plan.rules.clone(),
            directory: plan.directory.clone(),
            text_log: plan.text_log,
            cpus: Vec::new(),
        };
        self.multiplier = Some(self.start_role(RoleKind::Multiplier, "multiplier", &spec)?);
        let listening = self.ready(RoleKind::Multiplier).await?;
        Ok(listening.first().copied().unwrap_or(self.plan.listen))
    }

    fn start_role<S: serde::Serialize>(
        &self,
        kind: RoleKind,
        file: &str,
        spec: &S,
    ) -> Result<Role, LabError> {
        harness::start_role(&self.plan.exe, self.dir.path(), kind, file, spec, self.role_events.clone())
    }
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
