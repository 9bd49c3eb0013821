//! Images for containers: what they are made of.

use std::collections::BTreeSet;

use crate::support::{Assay, read, root, script};

fn containers() -> std::path::PathBuf {
    root().join("contrib/containers")
}

#[test]
fn the_image_with_proxies_pins_a_version_of_each_that_assay_can_start() {
    let versions = read(&containers().join("proxies/versions"));
    let pinned: BTreeSet<&str> = versions
        .lines()
        .map(|line| {
            let (package, version) = line.split_once('=').expect("PACKAGE=VERSION");
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
            package
        })
        .collect();
    let described = std::fs::read_dir(root().join("proxies")).expect("descriptions").map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        // Debian names httpd's package after its makers.
        name.trim_end_matches(".toml").replace("httpd", "apache2")
    });
    let described: BTreeSet<String> = described.collect();
    assert_eq!(pinned, described.iter().map(String::as_str).collect());
}

#[test]
fn earlier_packages_come_from_the_archive_that_the_image_names() {
    let assay = Assay::new();
    let sources = "Types: deb\n# http://archive.test/archive/debian/20250520T000000Z\nURIs: http://mirror.test/debian\n\
        Suites: bookworm\n";
    assay.file("debian.sources", sources);
    let snapshot = containers().join("proxies/snapshot.sh");
    script(&snapshot, &["debian.sources", "20261125T000000Z"], assay.directory.path()).exits(0);
    assert_eq!(
        read(&assay.path("debian.sources")),
        "Types: deb\nURIs: http://archive.test/archive/debian/20261125T000000Z\nCheck-Valid-Until: no\nSuites: bookworm\n"
    );
    assay.file("others.sources", "Types: deb\nURIs: http://mirror.test/debian\n");
    let said = script(&snapshot, &["others.sources", "20261125T000000Z"], assay.directory.path());
    said.exits(1).complains("does not name an archive");
    assert_eq!(read(&assay.path("others.sources")), "Types: deb\nURIs: http://mirror.test/debian\n");
}
