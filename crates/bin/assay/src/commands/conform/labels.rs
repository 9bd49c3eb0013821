//! Labels of the targets of `assay conform`: those that the command line gives, and those that proxies get.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::commands::spe::targets::{CacheCapacity, check_label, one};
use crate::exit::Failure;

/// The labels that the command line gives, each of which is of one target.
pub fn given<'t>(typed: impl Iterator<Item = &'t String>) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for (label, target) in typed.filter_map(|typed| typed.split_once('=')) {
        let label = check_label(label)?;
        if all.contains(&label) {
            return Err(Failure::usage(anyhow!("two targets are called `{label}`"))
                .hint(format!("give each a label of its own: OTHER={target}")));
        }
        all.push(label);
    }
    Ok(all)
}

/// The proxies as `LABEL=NAME`, in their order. A label that is not given avoids those that are, wherever they stand.
pub fn proxies_labelled(
    proxies: &[String],
    dirs: &[PathBuf],
    given: &[String],
) -> Result<Vec<String>, Failure> {
    let mut taken = given.to_vec();
    let mut all = Vec::new();
    for typed in proxies {
        let name = typed.split_once('=').map_or(typed.as_str(), |(_, name)| name);
        refuse_direct(name)?;
        if name != typed {
            all.push(typed.clone());
            continue;
        }
        // Room matters only to what is started.
        let label =
            free(&one(name, dirs, &[], CacheCapacity { memory_bytes: 0, disk_bytes: 0 })?.label, &taken);
        all.push(format!("{label}={name}"));
        taken.push(label);
    }
    Ok(all)
}

/// `assay spe` has a target without a proxy; here there is none.
fn refuse_direct(name: &str) -> Result<(), Failure> {
    match name {
        "direct" => Err(Failure::usage(anyhow!(
            "`direct` is no target: without a proxy, cases would be tried on their own origin"
        ))
        .hint("leave it out; `assay proxies` lists what can be tried")),
        _ => Ok(()),
    }
}

/// A label, or with a number if it is taken.
pub fn free(label: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number: u32| format!("{label}-{number}"));
    let is_free = |label: &String| !taken.contains(label);
    std::iter::once(label.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(typed: &[&str]) -> Result<Vec<String>, String> {
        let typed: Vec<String> = typed.iter().map(|&typed| typed.to_owned()).collect();
        given(typed.iter())
            .and_then(|given| proxies_labelled(&typed, &[], &given))
            .map_err(|failure| failure.error.to_string())
    }

    #[test]
    fn a_label_that_is_not_given_avoids_those_that_are_whatever_their_order() {
        let last = all(&["nginx", "nginx", "nginx-2=squid"]).unwrap();
        assert_eq!(last, ["nginx=nginx", "nginx-3=nginx", "nginx-2=squid"]);
        let first = all(&["builtin-2=nginx", "builtin", "builtin"]).unwrap();
        assert_eq!(first, ["builtin-2=nginx", "builtin=builtin", "builtin-3=builtin"]);
        assert_eq!(all(&["squid", "squid=nginx"]).unwrap(), ["squid-2=squid", "squid=nginx"]);
        assert_eq!(all(&["127.0.0.1:80"]).unwrap(), ["127.0.0.1_80=127.0.0.1:80"]);
    }

    #[test]
    fn a_label_that_is_given_twice_is_refused_by_its_name() {
        assert_eq!(all(&["a=builtin", "a=nginx"]).unwrap_err(), "two targets are called `a`");
        assert_eq!(all(&["a=builtin", "b=nginx", "a=builtin"]).unwrap_err(), "two targets are called `a`");
        assert!(all(&["=builtin"]).unwrap_err().contains("is no label"));
    }

    #[test]
    fn what_has_no_proxy_is_no_target() {
        for typed in ["direct", "a=direct"] {
            let said = all(&[typed]).unwrap_err();
            assert!(said.contains("`direct` is no target") && !said.contains("--proxy"), "{said}");
        }
    }
}
