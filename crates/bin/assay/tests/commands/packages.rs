//! What packages bring beside the program: the units of services start what the program has.

use crate::support::{Assay, read, root};

/// The words of a unit's `ExecStart`, with its variables replaced.
fn exec_start(unit: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a unit of a service");
    let replaced = variables.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
    let mut words = replaced.split_whitespace().map(str::to_owned);
    assert_eq!(words.next().as_deref(), Some("/usr/bin/assay"));
    words.collect()
}

#[test]
fn the_units_start_what_the_program_has() {
    let assay = Assay::new();
    assay.file("password", "secret");
    let unit = read(&root().join("contrib/systemd/assay-agent.service"));
    let example =
        unit.lines().find_map(|line| line.trim_start_matches("# ").trim().strip_prefix("ASSAY_AGENT="));
    // Nobody listens at port 9 (discard) of this host: the agent gets as far as the network.
    let example = example.expect("an example").replace("10.0.0.1:4222", "127.0.0.1:9");
    let words = exec_start(&unit, &[("${CREDENTIALS_DIRECTORY}", "."), ("$ASSAY_AGENT", &example)]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assay.run(&words).exits(2).complains("127.0.0.1:9");

    let unit = read(&root().join("contrib/systemd/assay-switch@.service"));
    let words = exec_start(&unit, &[("/etc/assay/switch-%i.toml", "switch-edge.toml")]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assay.run(&words).exits(2).complains("switch-edge.toml");
}
