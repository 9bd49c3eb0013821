//! Images for containers, without an engine: the context as it is made, and the steps of the Containerfile in a chroot.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Assay, Said, program, read, root};

fn containers() -> std::path::PathBuf {
    root().join("contrib/containers")
}

fn script(path: &Path, arguments: &[&str], within: &Path) -> Said {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(within).stdin(Stdio::null());
    Said::from(command.output().unwrap_or_else(|error| panic!("cannot start {}: {error}", path.display())))
}

#[test]
fn the_image_of_assay_alone_runs_as_a_user_of_its_own_and_keeps_results_in_a_volume() {
    for (tool, package) in [("objcopy", "binutils"), ("unshare", "util-linux"), ("ip", "iproute2")] {
        if program(&[tool], package).is_none() {
            return;
        }
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a chroot needs root");
        return;
    }
    let assay = Assay::new();
    let directory = assay.directory.path();
    let strip = ["--strip-all", env!("CARGO_BIN_EXE_assay"), "program"];
    script(Path::new("objcopy"), &strip, directory).exits(0);
    script(&containers().join("context.sh"), &["program", "context"], directory).exits(0);

    // As `docker run --volume` would mount it: anybody's, here.
    std::fs::create_dir(assay.path("volume")).expect("a directory");
    let anybody = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(assay.path("volume"), anybody).expect("modes");
    let image = ["context", "context/Containerfile", "--keep", "volume", "--"];
    let run = |arguments: &[&str]| {
        script(&containers().join("try.py"), &[&image[..], arguments].concat(), directory)
    };
    let said = run(&["run", "demo", "--duration", "1s", "--rate", "20", "--run-dir", "r"]);
    assert!(said.went_well(), "{said:?}");
    let report = std::fs::metadata(assay.path("volume/r/report.html")).expect("a report");
    assert_eq!((report.uid(), report.gid()), (65532, 65532));
    run(&["run", "no-such-workload"]).exits(2).complains("no-such-workload");
    // Without arguments it says what it can do.
    assert!(run(&[]).exits(0).stdout.contains("Usage: assay"));
    // Neither a shell nor anything else is in it.
    let said = script(Path::new("tar"), &["-tf", "context/program.tar"], directory).exits(0);
    let files: Vec<&str> = said.stdout.lines().filter(|line| !line.ends_with('/')).collect();
    let expected = ["bin/assay", "share/doc/assay/LICENSE-APACHE", "share/doc/assay/LICENSE-MIT"];
    assert_eq!(files, expected.map(|file| format!("./usr/{file}")));
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
