//! What `make dist` makes, of a small program instead of the real one: everything else is as it is published.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Assay, Said, program, read, root};

fn shell(script: &str, directory: &Path) -> Said {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(directory).stdin(Stdio::null());
    Said::from(command.output().expect("a shell"))
}

/// The packages, in a directory; none: a tool that makes them is not installed.
fn packages(assay: &Assay, out: &str) -> Option<PathBuf> {
    for (tool, package) in [("objcopy", "binutils"), ("dpkg-deb", "dpkg"), ("python3", "python3")] {
        program(&[tool], package)?;
    }
    let (script, tool) = (root().join("scripts/dist.sh"), env!("CARGO_BIN_EXE_assay"));
    let line = format!("{} --binary /bin/true --tool {tool} --out {out}", script.display());
    shell(&line, assay.directory.path()).exits(0);
    Some(assay.path(out))
}

/// All files and directories below a directory, by their paths.
fn tree(directory: &Path) -> BTreeSet<String> {
    let said = shell("find . -mindepth 1 | sort", directory).exits(0);
    said.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn packages_are_complete_and_the_same_each_time_and_removal_leaves_nothing() {
    let assay = Assay::new();
    let Some(first) = packages(&assay, "one") else { return };
    let second = packages(&assay, "two").expect("the tools are there");
    assert_eq!(read(&first.join("SHA256SUMS")), read(&second.join("SHA256SUMS")));

    // The tarball, in a place that has a file of somebody else's.
    shell(
        "tar -xzf one/*.tar.gz && mkdir -p place/share/man && echo mine > place/share/man/mine",
        assay.directory.path(),
    )
    .exits(0);
    let before = tree(&assay.path("place"));
    let install = "sh assay-*/install.sh --prefix place";
    shell(install, assay.directory.path()).exits(0);
    let installed = tree(&assay.path("place"));
    for file in [
        "./bin/assay",
        "./share/man/man1/assay-lab-show.1.gz",
        "./share/bash-completion/completions/assay",
        "./share/zsh/site-functions/_assay",
        "./share/fish/vendor_completions.d/assay.fish",
        "./share/doc/assay/examples/workloads/demo.pg",
        "./share/doc/assay/examples/proxies/varnish.toml",
        "./lib/systemd/system/assay-switch@.service",
        "./lib/systemd/system/assay-agent.service",
    ] {
        assert!(installed.contains(file), "{file} is not installed: {installed:#?}");
    }
    // Once more: over what is there.
    shell(install, assay.directory.path()).exits(0);
    assert_eq!(tree(&assay.path("place")), installed);
    shell("sh assay-*/install.sh --uninstall --prefix place", assay.directory.path()).exits(0);
    assert_eq!(tree(&assay.path("place")), before);
    shell("sh assay-*/install.sh --uninstall --prefix place", assay.directory.path()).exits(1);
    shell(
        "sh assay-*/install.sh --prefix new && sh assay-*/install.sh --uninstall --prefix new",
        assay.directory.path(),
    )
    .exits(0);
    assert!(!assay.path("new").exists());

    // The Debian package has the same, where Debian has it.
    let listed = shell("dpkg-deb --contents one/*.deb", assay.directory.path()).exits(0).stdout;
    for file in
        ["./usr/bin/assay", "./usr/share/zsh/vendor-completions/_assay", "./usr/share/man/man1/assay.1.gz"]
    {
        assert!(listed.lines().any(|line| line.ends_with(file)), "{file} is not in the package:\n{listed}");
    }

    // So does that of rpm. Removal takes the directories away that no package of the system has, so it must own them.
    if program(&["rpmbuild"], "rpm").is_some() {
        let listed = shell("rpm -qpl one/*.rpm", assay.directory.path()).exits(0).stdout;
        for path in [
            "/usr/bin/assay",
            "/usr/lib/systemd/system/assay-agent.service",
            "/usr/share/man/man1/assay.1.gz",
            "/usr/share/doc/assay/examples/workloads",
            "/usr/share/zsh/site-functions",
        ] {
            assert!(listed.lines().any(|line| line == path), "{path} is not in the package:\n{listed}");
        }
        assert!(!listed.lines().any(|line| line == "/usr/bin"), "the package owns /usr/bin:\n{listed}");
    }

    // What others install the tarball by agrees with it and with Cargo.toml.
    let check = format!("{} one", root().join("scripts/dist/check-recipes.sh").display());
    shell(&check, assay.directory.path()).exits(0);
    shell("sed -i 's/sha256 \"./sha256 \"/' one/assay.rb", assay.directory.path()).exits(0);
    shell(&check, assay.directory.path()).exits(1);

    // The list of materials names what is linked in, and nothing that is for tests only.
    let list = read(&first.join(format!("assay-{}.spdx.json", env!("CARGO_PKG_VERSION"))));
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let names: BTreeSet<&str> = list["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names.contains("assay") && names.contains("rustls") && names.contains("assay-pgl"), "{names:?}");
    assert!(!names.contains("proptest") && !names.contains("assay-testbed"), "{names:?}");
}
