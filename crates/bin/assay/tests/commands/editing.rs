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

#[test]
fn other_codings_are_read_in_comments_and_named_elsewhere_and_never_written() {
    let assay = Assay::new();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(assay.path(name), bytes).expect("a directory of its own");
    write("inc.pg", b"// Andr\xe9\nsize unused = 1KB;\n");
    write("sizes.txt", b"# caf\xe9\nsize_distr d = {\n1KB 1 # \xe9\n}\n");
    let workload = b"/* Andr\xe9 */\n#include \"inc.pg\"\n\
        Content c = { kind = \"c\"; size = table(\"sizes.txt\"); cachable = 80%; };\n\
        Server S = { kind = \"s\"; contents = [ c ]; direct_access = contents; addresses = ['10.0.0.1:80']; };\n\
        Robot R = { kind = \"r\"; origins = S.addresses; addresses = ['10.0.1.1']; req_rate = 1/sec; };\n\
        Phase p = { name = \"p\"; goal.duration = 1min; };\nschedule(p);\nuse(S, R);\n";
    write("w.pg", workload);
    assay.run(&["check", "w.pg"]).exits(0);
    assay.run(&["fmt", "w.pg"]).exits(2).complains("iconv");
    assert_eq!(std::fs::read(assay.path("w.pg")).expect("is there"), workload);
    write("inc.pg", b"size unused = 1KB;\nRobot R2 = { kind = \"\xe9\"; };\n");
    assay.run(&["check", "w.pg"]).exits(2).complains("inc.pg:2:22").complains("not text (UTF-8)");
    write("inc.pg", b"");
    write("sizes.txt", b"size_distr d = {\n1KB\xe9 1\n}\n");
    assay.run(&["check", "w.pg"]).exits(2).complains("line 2").complains("column 4 is not text");
    write("w.pg", b"\x7fELF\0\xff");
    assay.run(&["check", "w.pg"]).exits(2).complains("not text (UTF-8)");
}
