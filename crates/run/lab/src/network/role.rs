//! The process that carries the packets of all links, and reports what it carried once a second.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_host::link::{Forwarder, LinkCounts, LinkSettings};
use assay_measurement::health::LinkInterval;
use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, Event};
use assay_protocol::stdio::{Commands, StdioError, emit};
use serde::{Deserialize, Serialize};

/// Spec of the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRoleSpec {
    pub links: Vec<LinkSpec>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSpec {
    pub name: String,
    /// Names of its ends.
    pub ends: [String; 2],
    pub settings: LinkSettings,
    /// Seed of its losses and jitter.
    pub seed: u64,
    /// Descriptors of the TUN devices at its ends, inherited.
    pub devices: [RawFd; 2],
}

/// Reason why links could not be carried.
#[derive(Debug, thiserror::Error)]
pub enum LinkRoleError {
    /// Talking to the parent failed.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    #[error("the link {link} cannot be carried: {cause}")]
    Link { link: String, cause: io::Error },
    /// The process could not be set up.
    #[error("the links cannot be carried: {0}")]
    Setup(io::Error),
}

/// The device number of `/dev/net/tun`: 10, 200.
const TUN: u64 = 10 << 8 | 200;

struct CarriedLink {
    spec: LinkSpec,
    forwarder: Forwarder,
    before: [LinkCounts; 2],
}

/// Carries packets until the parent has heard everything or is gone. The descriptors that the spec names are taken over;
/// it must be called before anything else uses them.
pub fn run(spec: LinkRoleSpec) -> Result<(), LinkRoleError> {
    let mut links = Vec::new();
    if let Some((link, descriptor)) = repeated(&spec.links) {
        let cause = io::Error::other(format!("descriptor {descriptor} is named twice"));
        return Err(LinkRoleError::Link { link: link.to_owned(), cause });
    }
    // Before the runtime opens descriptors of its own.
    let taken: Vec<_> = spec.links.iter().map(|spec| spec.devices.map(take)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    for (spec, [one, other]) in spec.links.into_iter().zip(taken) {
        let cannot = |cause| LinkRoleError::Link { link: spec.name.clone(), cause };
        let devices = [one.map_err(cannot)?, other.map_err(cannot)?];
        let forwarder = Forwarder::start(devices, &spec.settings, spec.seed).map_err(cannot)?;
        links.push(CarriedLink { forwarder, before: Default::default(), spec });
    }
    runtime.map_err(LinkRoleError::Setup)?.block_on(serve(links))
}

/// A descriptor that is named a second time, and the link that does so.
fn repeated(links: &[LinkSpec]) -> Option<(&str, RawFd)> {
    let mut message = BTreeSet::new();
    let mut all = links.iter().flat_map(|link| link.devices.map(|device| (link.name.as_str(), device)));
    all.find(|(_, device)| !message.insert(*device))
}

/// An inherited TUN device becomes ours; any other descriptor is somebody else's.
fn take(descriptor: RawFd) -> io::Result<OwnedFd> {
    let is_tun = std::fs::metadata(format!("/proc/self/fd/{descriptor}"))
        .is_ok_and(|file| file.file_type().is_char_device() && file.rdev() == TUN);
    if descriptor <= libc::STDERR_FILENO || !is_tun {
        return Err(io::Error::other(format!("descriptor {descriptor} is no TUN device")));
    }
    // SAFETY: a plain system call on a number; one that is no descriptor is refused.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as was just seen, it was inherited for this, and nobody else in this process knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

async fn serve(mut links: Vec<CarriedLink>) -> Result<(), LinkRoleError> {
    let mut commands = Commands::from_stdin().map_err(LinkRoleError::Setup)?;
    emit(&Event::Ready { listening: Vec::new() })?;
    let start_ns = loop {
        match commands.next().await? {
            Some(Command::Start { at_monotonic_ns, .. }) => break at_monotonic_ns,
            Some(Command::Stop | Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => {}
            None => return Ok(()),
        }
    };
    tokio::time::sleep(Duration::from_nanos(start_ns.saturating_sub(monotonic_ns()))).await;
    report(&mut links, 0, 0)?;
    let mut reported_ms = 0;
    loop {
        let next_ns = start_ns + (reported_ms + 1000) * 1_000_000;
        let stopped = tokio::select! {
            command = commands.next() => match command? {
                Some(Command::Stop) => true,
                Some(Command::Start { .. } | Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => continue,
                None => return Ok(()),
            },
            () = tokio::time::sleep(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()))) => false,
        };
        let now_ms = monotonic_ns().saturating_sub(start_ns) / 1_000_000;
        report(&mut links, reported_ms, now_ms - reported_ms)?;
        reported_ms = now_ms;
        if stopped {
            emit(&Event::Done)?;
            // What the others still say to each other is carried until everybody has ended.
            while commands.next().await?.is_some() {}
            return Ok(());
        }
    }
}

fn report(links: &mut [CarriedLink], start_ms: u64, length_ms: u64) -> Result<(), LinkRoleError> {
    for link in links {
        let now = link
            .forwarder
            .counts()
            .map_err(|cause| LinkRoleError::Link { link: link.spec.name.clone(), cause })?;
        for ((from, now), before) in link.spec.ends.iter().zip(&now).zip(&link.before) {
            let interval = LinkInterval {
                start_ms,
                length_ms,
                link: link.spec.name.clone(),
                from: from.clone(),
                packets: now.packets - before.packets,
                bytes: now.bytes - before.bytes,
                delivered: now.delivered - before.delivered,
                delivered_bytes: now.delivered_bytes - before.delivered_bytes,
                wire: now.wire - before.wire,
                lost: now.lost - before.lost,
                queue_full: now.queue_full - before.queue_full,
                failed: now.failed - before.failed,
                lateness: now.lateness.clone(),
            };
            emit(&Event::Measured(Measured::Link(interval.into())))?;
        }
        link.before = now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn link(name: &str, devices: [RawFd; 2]) -> LinkSpec {
        let ends = ["a".to_owned(), "b".to_owned()];
        LinkSpec { name: name.to_owned(), ends, settings: LinkSettings::default(), seed: 1, devices }
    }

    #[test]
    fn descriptors_that_are_no_tun_devices_are_left_to_their_owners() {
        let file = std::fs::File::open("/dev/null").expect("is there");
        for descriptor in [0, 2, file.as_raw_fd(), 1_000_000, -1] {
            let error = take(descriptor).expect_err("is refused").to_string();
            assert!(error.contains("no TUN device"), "{error}");
        }
        // It was not closed.
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn a_descriptor_that_is_named_twice_is_found_in_one_link_and_in_two() {
        assert_eq!(repeated(&[link("x", [5, 6]), link("y", [7, 8])]), None);
        assert_eq!(repeated(&[link("x", [5, 5])]), Some(("x", 5)));
        assert_eq!(repeated(&[link("x", [5, 6]), link("y", [7, 6])]), Some(("y", 6)));
    }
}
