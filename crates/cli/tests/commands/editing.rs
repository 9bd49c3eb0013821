//! Workloads in an editor: their layout.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Assay, Said, read};

const UNTIDY: &str = "Robot  R={kind=\"r\"; // who\n};";
const TIDY: &str = "Robot R = {\n    kind = \"r\"; // who\n};\n";

#[test]
fn fmt_lays_out_files_and_names_those_it_has_changed() {
    let assay = Assay::new();
    let (untidy, tidy) = (assay.file("untidy.pg", UNTIDY), assay.file("tidy.pg", TIDY));
    let said = assay.run(&["fmt", "--check", untidy, tidy]).exits(1);
    assert_eq!((said.stdout.as_str(), read(&assay.path(untidy)).as_str()), ("untidy.pg\n", UNTIDY));
    let said = assay.run(&["fmt", untidy, tidy]).exits(0);
    assert_eq!((said.stdout.as_str(), read(&assay.path(untidy)).as_str()), ("untidy.pg\n", TIDY));
    assert_eq!(assay.run(&["fmt", "--check", untidy, tidy]).exits(0).stdout, "");
    let left: Vec<_> = std::fs::read_dir(assay.directory.path()).expect("the directory").collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn fmt_of_standard_input_goes_to_standard_output() {
    let assay = Assay::new();
    let fmt = |arguments: &[&str]| {
        let mut command = assay.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        child.stdin.take().expect("a pipe").write_all(UNTIDY.as_bytes()).expect("it is read");
        Said::from(child.wait_with_output().expect("an end"))
    };
    assert_eq!(fmt(&["fmt", "-"]).exits(0).stdout, TIDY);
    assert_eq!(fmt(&["fmt", "--check", "-"]).exits(1).stdout, "");
}

#[test]
fn fmt_leaves_a_file_with_mistakes_as_it_is_and_goes_on_with_the_next() {
    let assay = Assay::new();
    let (broken, untidy) = (assay.file("broken.pg", "Robot R = ;\n"), assay.file("untidy.pg", UNTIDY));
    let said = assay.run(&["fmt", broken, "none.pg", untidy]).exits(2);
    assert_eq!(said.stdout, "untidy.pg\n");
    said.complains("broken.pg:1:11")
        .complains("broken.pg was not formatted")
        .complains("cannot read none.pg");
    assert_eq!(read(&assay.path(broken)), "Robot R = ;\n");
    let experiment = assay.file("lab.toml", "workloads = [\"demo\"]\n");
    assay.run(&["fmt", experiment]).exits(2).complains("assay lab lab.toml");
}
