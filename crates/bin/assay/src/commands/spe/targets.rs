//! The proxies under test, and the settings of each.

use std::path::PathBuf;

use anyhow::anyhow;
use assay_lab::harness::{ProxyChoice, TestedProxy};
use assay_proxy::spec::{Chosen, Prefetch};

use crate::exit::Failure;
use crate::target::{is_address, resolve};
use crate::units;

/// Memory and disk of a proxy's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheCapacity {
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

/// A `--set`: label of the proxy, name and value of the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySetting {
    label: Option<String>,
    name: String,
    value: String,
}

/// Reads `[LABEL:]NAME=VALUE`.
pub fn setting(text: &str) -> Result<ProxySetting, String> {
    let wrong = || format!("`{text}` is not [LABEL:]NAME=VALUE");
    let (whose, value) = text.split_once('=').ok_or_else(wrong)?;
    let (label, name) = match whose.split_once(':') {
        Some((label, name)) => (Some(label.to_owned()), name),
        None => (None, whose),
    };
    if name.is_empty() || label.as_deref() == Some("") {
        return Err(wrong());
    }
    Ok(ProxySetting { label, name: name.to_owned(), value: value.to_owned() })
}

/// The proxies, each with a label of its own and set as it is to be.
pub fn under_test(
    proxies: &[String],
    dirs: &[PathBuf],
    settings: &[ProxySetting],
    capacity: CacheCapacity,
) -> Result<Vec<TestedProxy>, Failure> {
    let mut all: Vec<TestedProxy> = Vec::new();
    for typed in proxies {
        let (label, name) = match typed.split_once('=') {
            Some((label, name)) => (Some(check_label(label)?), name),
            None => (None, typed.as_str()),
        };
        let choice = choose(name, dirs)?;
        let label = label.unwrap_or_else(|| fresh_label(&choice, name, &all));
        let CacheCapacity { memory_bytes, disk_bytes } = capacity;
        all.push(TestedProxy { label, choice, memory_bytes, disk_bytes });
    }
    for setting in settings {
        set(whose(setting, &mut all)?, setting)?;
    }
    Ok(all)
}

/// One proxy alone, set as it is to be.
pub fn one(
    name: &str,
    dirs: &[PathBuf],
    settings: &[ProxySetting],
    capacity: CacheCapacity,
) -> Result<TestedProxy, Failure> {
    let choice = choose(name, dirs)?;
    let CacheCapacity { memory_bytes, disk_bytes } = capacity;
    let mut proxy = TestedProxy { label: fresh_label(&choice, name, &[]), choice, memory_bytes, disk_bytes };
    for setting in settings {
        set(whose(setting, std::slice::from_mut(&mut proxy))?, setting)?;
    }
    Ok(proxy)
}

/// Proxy that a name stands for.
fn choose(name: &str, dirs: &[PathBuf]) -> Result<ProxyChoice, Failure> {
    Ok(match name {
        "builtin" => ProxyChoice::Builtin(Chosen::default()),
        "builtin:embedded" | "builtin:links" => {
            let prefetch = Prefetch::from_word(&name[8..]).flatten();
            ProxyChoice::Builtin(Chosen { prefetch, ..Chosen::default() })
        }
        "direct" => {
            return Err(Failure::usage(anyhow!("--proxy direct: direct is always there, and no proxy"))
                .hint("leave it out"));
        }
        name if is_address(name) => ProxyChoice::Running(resolve(name)?),
        name => ProxyChoice::Described(Box::new(assay_lab::find(name, dirs).map_err(Failure::usage)?)),
    })
}

/// The proxy that a setting is for.
fn whose<'p>(setting: &ProxySetting, all: &'p mut [TestedProxy]) -> Result<&'p mut TestedProxy, Failure> {
    let labels: Vec<String> = all.iter().map(|proxy| proxy.label.clone()).collect();
    let name = &setting.name;
    let found = match &setting.label {
        None if all.len() == 1 => all.first_mut(),
        None if all.is_empty() => {
            return Err(Failure::usage(anyhow!("--set {name}: there is no proxy to set it for"))
                .hint("name a proxy; the file of a topology has `set` for its caches"));
        }
        None => {
            return Err(Failure::usage(anyhow!(
                "--set {name}: of which proxy? There are {}",
                labels.join(", ")
            ))
            .hint(format!("say so: --set LABEL:{name}={}", setting.value)));
        }
        Some(label) => all.iter_mut().find(|proxy| proxy.label == *label),
    };
    found.ok_or_else(|| {
        let label = setting.label.as_deref().unwrap_or_default();
        Failure::usage(anyhow!("--set {label}:{name}: no proxy is called `{label}`"))
            .hint(format!("there are: {}", labels.join(", ")))
    })
}

/// Sets one thing of one proxy.
fn set(proxy: &mut TestedProxy, setting: &ProxySetting) -> Result<(), Failure> {
    let ProxySetting { name, value, .. } = setting;
    let label = &proxy.label;
    let refused = |why: String| Failure::usage(anyhow!("--set {label}:{name}={value}: {why}"));
    let size = || units::size(value).map_err(|error| refused(error.to_string()));
    if matches!(proxy.choice, ProxyChoice::Running(_)) {
        return Err(refused("it runs already, as whoever started it has set it".into()));
    }
    match (name.as_str(), &mut proxy.choice) {
        ("memory", _) => proxy.memory_bytes = size()?,
        ("disk", ProxyChoice::Described(_)) => proxy.disk_bytes = size()?,
        (_, ProxyChoice::Described(description)) => {
            let wanted = [(name.clone(), value.clone())].into();
            description.set(&wanted).map_err(|error| refused(error.to_string()))?;
        }
        ("disk", ProxyChoice::Builtin(_)) => {
            return Err(refused("the built-in proxy stores in memory only; it has `memory`".into()));
        }
        (_, ProxyChoice::Builtin(chosen)) => {
            chosen.set(name, value).map_err(|error| refused(error.to_string()))?;
        }
        (_, ProxyChoice::Running(_)) => {}
    }
    Ok(())
}

/// A label, if it is one.
pub fn check_label(label: &str) -> Result<String, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if label.is_empty() || label.starts_with('.') || !label.chars().all(fits) {
        return Err(Failure::usage(anyhow!(
            "`{label}` is no label; letters, digits, `-`, `_` and `.` make one"
        )));
    }
    Ok(label.to_owned())
}

/// Label of a proxy: its name, with a number if another has the same.
fn fresh_label(choice: &ProxyChoice, name: &str, others: &[TestedProxy]) -> String {
    let base = match choice {
        ProxyChoice::Builtin(Chosen { prefetch: Some(prefetch), .. }) => {
            format!("builtin-{}", prefetch.word())
        }
        ProxyChoice::Builtin(_) => "builtin".to_owned(),
        ProxyChoice::Described(description) => description.name.clone(),
        ProxyChoice::Running(_) => name.replace([':', '[', ']'], "_"),
    };
    let numbered = (2..).map(|number: u32| format!("{base}-{number}"));
    let is_free = |label: &String| others.iter().all(|other| other.label != *label);
    std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn read(typed: &[&str]) -> Result<Vec<TestedProxy>, String> {
        let all = ["assay", "spe"].iter().chain(typed);
        let Command::Spe(args) = Cli::parse_from(all).command else { panic!("not spe") };
        under_test(
            &args.proxy,
            &args.proxy_dir,
            &args.settings,
            CacheCapacity { memory_bytes: args.memory, disk_bytes: args.disk },
        )
        .map_err(|failure| failure.error.to_string())
    }

    fn labels(typed: &[&str]) -> Vec<String> {
        read(typed).unwrap().into_iter().map(|proxy| proxy.label).collect()
    }

    #[test]
    fn proxies_are_called_by_their_names_unless_somebody_says_otherwise() {
        let typed = ["--proxy", "squid", "--proxy", "builtin", "--proxy", "squid", "--proxy", "a=squid"];
        assert_eq!(labels(&typed), ["squid", "builtin", "squid-2", "a"]);
        assert_eq!(labels(&["--proxy", "127.0.0.1:80"]), ["127.0.0.1_80"]);
        assert_eq!(labels(&["--proxy", "builtin:links", "--proxy", "builtin"]), ["builtin-links", "builtin"]);
        assert!(read(&["--proxy", "a b=squid"]).is_err());
        assert!(read(&["--proxy", "direct"]).is_err());
    }

    #[test]
    fn a_setting_is_of_the_proxy_that_it_names_and_of_no_other() {
        let set =
            ["--set", "b:replacement=heap-lfuda", "--set", "b:memory=64MB", "--set", "c:prefetch=links"];
        let typed =
            [&["--proxy", "a=squid", "--proxy", "b=squid", "--proxy", "c=builtin"][..], &set].concat();
        let all = read(&typed).unwrap();
        let replacement = |proxy: &TestedProxy| match &proxy.choice {
            ProxyChoice::Described(description) => description.settings_as_typed()["replacement"].clone(),
            _ => panic!("it has none"),
        };
        assert_eq!([&all[0], &all[1]].map(replacement), ["lru", "heap-lfuda"]);
        let memory: Vec<u64> = all.iter().map(|proxy| proxy.memory_bytes).collect();
        assert_eq!(memory, [256 << 20, 64 << 20, 256 << 20]);
        assert!(
            matches!(&all[2].choice, ProxyChoice::Builtin(chosen) if chosen.prefetch.is_some_and(|one| one.links))
        );
        let alone = read(&["--proxy", "squid", "--set", "disk=512MB"]).unwrap();
        assert_eq!(alone[0].disk_bytes, 512 << 20);
    }

    #[test]
    fn a_setting_that_nobody_has_is_refused_with_its_proxy() {
        for (set, words) in [
            ("ttl=1d", "of which proxy? There are a, b, c"),
            ("x:ttl=1d", "no proxy is called `x`"),
            ("a:tll=1d", "did you mean `ttl`?"),
            ("a:storage=tape", "is no value for `storage`"),
            ("a:memory=much", "--set a:memory=much"),
            ("b:ttl=1d", "runs already"),
            ("c:storage=rock", "it has prefetch, policy, admission, ttl"),
            ("c:ttl=much", "another time"),
            ("c:disk=1GB", "stores in memory only"),
            ("c:policy=mru", "s3-fifo"),
            ("c:prefetch=all", "embedded"),
        ] {
            let proxies = ["--proxy", "a=squid", "--proxy", "b=127.0.0.1:80", "--proxy", "c=builtin"];
            let error = read(&[&proxies[..], &["--set", set]].concat()).unwrap_err();
            assert!(error.contains(words), "{words} is not in: {error}");
        }
        assert!(setting("ttl").is_err() && setting(":ttl=1").is_err() && setting("a:=1").is_err());
    }
}
