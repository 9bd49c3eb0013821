//! Images for containers, without an engine: the context as it is made, and the steps of the Containerfile in a chroot.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use assay_testbed::skip;

use crate::support::{Assay, program, root, script};

fn containers() -> std::path::PathBuf {
    root().join("contrib/containers")
}

#[test]
fn the_image_of_assay_alone_runs_as_a_user_of_its_own_and_keeps_results_in_a_volume() {
    for (tool, package) in [("objcopy", "binutils"), ("unshare", "util-linux"), ("ip", "iproute2")] {
        if program(&[tool], package).is_none() {
            return;
        }
    }
    if !rustix::process::geteuid().is_root() {
        skip("a chroot needs root");
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
