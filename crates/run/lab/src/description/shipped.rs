//! Proxies that can be named: those compiled in, and the user's own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::{Description, DescriptionError};
use assay_base::settings::suggest::or_did_you_mean;

/// File name and text of every description that is compiled in.
const SHIPPED: [(&str, &str); 6] = [
    ("proxies/varnish.toml", include_str!("../../../../../proxies/varnish.toml")),
    ("proxies/nginx.toml", include_str!("../../../../../proxies/nginx.toml")),
    ("proxies/squid.toml", include_str!("../../../../../proxies/squid.toml")),
    ("proxies/trafficserver.toml", include_str!("../../../../../proxies/trafficserver.toml")),
    ("proxies/haproxy.toml", include_str!("../../../../../proxies/haproxy.toml")),
    ("proxies/httpd.toml", include_str!("../../../../../proxies/httpd.toml")),
];

/// Every proxy that can be named, by name: those compiled in and those found in `user_dirs`. Of one name, the
/// description in the earliest directory wins, and any of them over the one compiled in.
pub fn described(user_dirs: &[PathBuf]) -> Vec<Result<Description, DescriptionError>> {
    let mut good = BTreeMap::new();
    let mut bad = Vec::new();
    let mut keep = |read: Result<Description, DescriptionError>| match read {
        Ok(description) => drop(good.insert(description.name.clone(), description)),
        Err(error) => bad.push(Err(error)),
    };
    for (file, text) in SHIPPED {
        keep(Description::read(file, text));
    }
    for dir in user_dirs.iter().rev() {
        match toml_files(dir) {
            Ok(files) => files.iter().for_each(|path| keep(read_file(path))),
            Err(error) => keep(Err(error)),
        }
    }
    good.into_values().map(Ok).chain(bad).collect()
}

/// The description called `name`; or, when `name` ends in `.toml`, the one in that file.
pub fn find(name: &str, user_dirs: &[PathBuf]) -> Result<Description, DescriptionError> {
    if name.ends_with(".toml") {
        return read_file(Path::new(name));
    }
    // A user's file is taken by its own name, so that a broken one is reported and not passed over.
    for dir in user_dirs {
        for path in toml_files(dir)? {
            let by_file_name = path.file_stem().is_some_and(|stem| stem == name);
            match read_file(&path) {
                Ok(description) if description.name == name => return Ok(description),
                Err(error) if by_file_name => return Err(error),
                _ => {}
            }
        }
    }
    match SHIPPED.iter().find(|(file, _)| Path::new(file).file_stem().is_some_and(|stem| stem == name)) {
        Some((file, text)) => Description::read(file, text),
        None => Err(unknown(name, user_dirs)),
    }
}

fn unknown(name: &str, user_dirs: &[PathBuf]) -> DescriptionError {
    if Path::new(name).is_file() {
        return DescriptionError {
            message: format!(
                "{name} is a file, but no description of a proxy, whose name ends in .toml; to test a configuration of \
                 your own, start the proxy with it and give its HOST:PORT, or put the configuration into a description \
                 (`assay proxies show nginx` prints one)"
            ),
        };
    }
    if name.parse::<IpAddr>().is_ok() {
        return DescriptionError {
            message: format!("{name} is an address without a port; write it like {name}:8080"),
        };
    }
    if name.starts_with("unix:") || name.ends_with(".sock") {
        let message = format!(
            "`{name}` names a Unix socket; proxies are reached over TCP: give the HOST:PORT of this one"
        );
        return DescriptionError { message };
    }
    let names: Vec<String> = described(user_dirs).into_iter().flatten().map(|d| d.name).collect();
    let near = or_did_you_mean(name, names.iter().map(String::as_str).chain(["builtin", "direct"]));
    let there = if near.is_empty() { "; there" } else { " There" };
    DescriptionError {
        message: format!(
            "there is no proxy called `{name}`{near}{there} are builtin, {}; or give the path of a description \
             (a file that ends in .toml), or the host:port of a proxy that runs",
            names.join(", ")
        ),
    }
}

fn read_file(path: &Path) -> Result<Description, DescriptionError> {
    let file = path.display().to_string();
    let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX).map_err(|e| {
        DescriptionError { message: format!("cannot read the proxy description {file}: {e}") }
    })?;
    Description::read(&file, &text)
}

/// The `.toml` files of a directory, by name.
fn toml_files(dir: &Path) -> Result<Vec<PathBuf>, DescriptionError> {
    let entries = std::fs::read_dir(dir).map_err(|e| DescriptionError {
        message: format!("cannot look for proxy descriptions in {}: {e}", dir.display()),
    })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::template::TemplateVariables;
    use super::super::{Mode, PeeringVariables};
    use super::*;

    #[test]
    fn every_shipped_description_is_good() {
        let all = described(&[]);
        assert_eq!(all.len(), SHIPPED.len());
        for description in all {
            let description = description.unwrap();
            assert!(description.package.is_some(), "{}", description.name);
            assert!(!description.notes.is_empty(), "{}", description.name);
            assert_eq!(find(&description.name, &[]).unwrap().name, description.name);
        }
    }

    #[test]
    fn what_is_no_name_of_a_proxy_is_told_apart() {
        let own = tempfile::tempdir().unwrap();
        let file = own.path().join("nginx.conf");
        std::fs::write(&file, "events {}\n").unwrap();
        let refused = |name: &str| find(name, &[]).unwrap_err().to_string();
        let said = refused(file.to_str().unwrap());
        assert!(said.contains("configuration of your own") && said.contains("HOST:PORT"), "{said}");
        assert!(refused("127.0.0.1").contains("write it like 127.0.0.1:8080"), "{}", refused("127.0.0.1"));
        for socket in ["unix:/run/v.sock", "/run/v.sock"] {
            assert!(refused(socket).contains("over TCP"), "{}", refused(socket));
        }
        assert!(refused("varnisch").contains("did you mean `varnish`?"), "{}", refused("varnisch"));
    }

    #[test]
    fn httpd_keeps_what_goes_through_it_as_a_forward_proxy_whoever_is_behind_it() {
        let httpd = find("httpd", &[]).unwrap();
        let rendered = |peering: Option<PeeringVariables>| -> String {
            let chosen = httpd.chosen.clone();
            let settings = TemplateVariables {
                peering,
                chosen,
                ..TemplateVariables::sample(Mode::Forward, false, 1 << 30)
            };
            httpd.files.iter().map(|file| settings.fill(&file.text).unwrap()).collect()
        };
        let alone = rendered(None);
        for origin in ["http://127.0.0.1:9000", "http://127.0.0.1:9001"] {
            assert!(alone.contains(&format!("CacheEnable disk {origin}/\n")), "{alone}");
        }
        // Any host and any port.
        let led = rendered(Some(PeeringVariables::sample(&httpd.hierarchy)));
        assert!(led.contains("CacheEnable disk http://:/\n") && led.contains("ProxyRemote * "), "{led}");
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let error = find("varnisch", &[]).unwrap_err().to_string();
        for word in ["`varnisch`", "builtin", "nginx", "squid", "varnish", ".toml"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_users_own_wins_and_a_broken_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        let own = SHIPPED[1].1.replace("title = \"nginx\"", "title = \"my nginx\"");
        std::fs::write(dir.path().join("mine.toml"), own).unwrap();
        assert_eq!(find("nginx", &dirs).unwrap().title, "my nginx");
        assert_eq!(described(&dirs).len(), SHIPPED.len());
        std::fs::write(dir.path().join("squid.toml"), "name = 3").unwrap();
        assert!(find("squid", &dirs).unwrap_err().to_string().contains("squid.toml:1"));
    }

    #[test]
    fn a_path_that_ends_in_toml_is_read_as_a_file() {
        let error = find("/nowhere/at/all.toml", &[]).unwrap_err().to_string();
        assert!(error.contains("cannot read the proxy description /nowhere/at/all.toml"), "{error}");
    }
}
