//! The reference of descriptions says what the code does: every field and every variable is in it.

use std::collections::BTreeSet;

use assay_lab::description::{
    AccessLog, Capacity, CounterSource, Description, FileTemplate, Hierarchy, ProgramTemplate, ReadyCheck,
    Setting, StopPolicy, TlsTerminator, VersionCommand,
};
use serde::de::DeserializeOwned;

const REFERENCE: &str = include_str!("../../../../../docs/reference/proxies.md");

/// The names in the first column of the table below a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let (_, rest) = REFERENCE.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = rest.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// The fields that a table of a description may have, as its own error message lists them.
fn fields<T: DeserializeOwned>() -> BTreeSet<String> {
    let error = toml::from_str::<T>("no-such-field = 1").err().expect("it is refused").to_string();
    let (_, expected) = error.split_once("expected").unwrap_or_else(|| panic!("no list in {error}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_field_is_in_its_table_and_no_other() {
    assert_eq!(documented("### At the top"), fields::<Description>());
    assert_eq!(documented("### `[version]`"), fields::<VersionCommand>());
    assert_eq!(documented("### `[[file]]`"), fields::<FileTemplate>());
    assert_eq!(
        documented("### `[start]`, `[[prepare]]`, `[[companion]]`, `[[empty]]`"),
        fields::<ProgramTemplate>()
    );
    assert_eq!(documented("### `access-log`"), fields::<AccessLog>());
    assert_eq!(documented("### `[setting.NAME]`"), fields::<Setting>());
    assert_eq!(documented("### `[tls-terminator]`"), fields::<TlsTerminator>());
    assert_eq!(documented("### `[ready]`"), fields::<ReadyCheck>());
    assert_eq!(documented("### `[stop]`"), fields::<StopPolicy>());
    assert_eq!(documented("### `[[counters]]`"), fields::<CounterSource>());
    assert_eq!(documented("### `[capacity]`"), fields::<Capacity>());
    assert_eq!(documented("### `[behaviour]`"), fields::<assay_cache::behaviour::CacheBehaviour>());
    assert_eq!(documented("### `[hierarchy]`"), fields::<Hierarchy>());
}

#[test]
fn every_variable_in_its_table_can_be_used() {
    let variables = documented("## Variables of templates");
    assert!(variables.len() > 10);
    let text: String = variables
        .iter()
        .map(|variable| format!("{{{{ {} }}}}\n", variable.replace("NAME", "kind_of")))
        .collect();
    let origin =
        "{% for o in origins %}{{ o.name ~ o.authority ~ o.host ~ o.pattern ~ o.ip ~ o.port }}{% endfor %}";
    let sizes = "{{ memory.kib + memory.mib + disk.kib + disk.mib }}";
    let description = format!(
        "name = \"x\"\ntitle = \"X\"\nmodes = [\"reverse\"]\n[version]\ncommand = [\"x\"]\nafter = \"x\"\n\
         [[file]]\npath = \"x\"\ntext = '''\n{text}{origin}{sizes}'''\n[start]\ncommand = [\"x\"]\n\
         [setting.kind-of]\nabout = \"x\"\nvalues = [\"a\", \"b\"]\ndefault = \"a\"\n"
    );
    Description::read("x.toml", &description).unwrap();
}

#[test]
fn declared_behaviour_is_in_the_table_of_proxies() {
    let row = |begin: &str| {
        let line = REFERENCE.lines().find(|line| line.starts_with(&format!("| {begin} |"))).unwrap();
        line.split('|').skip(2).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let (head, conditional, post) =
        (row("a HEAD that misses"), row("a conditional request that misses"), row("a POST"));
    let (confirmed, parts) = (row("a 304 from the origin"), row("a request for parts that misses"));
    let at_once = row("misses at the same time");
    for (column, name) in
        ["varnish", "nginx", "squid", "trafficserver", "haproxy", "httpd"].into_iter().enumerate()
    {
        let declared = assay_lab::find(name, &[]).unwrap().behaviour;
        assert_eq!(head[column].starts_with("fetches"), declared.head_fills, "{name}");
        assert_eq!(conditional[column].starts_with("fetches"), declared.conditional_fills, "{name}");
        assert_eq!(post[column].starts_with("drops what"), declared.post_invalidates, "{name}");
        assert_eq!(parts[column].starts_with("fetches"), declared.range_fills, "{name}");
        assert_eq!(at_once[column].starts_with("share"), declared.collapses, "{name}");
        assert_eq!(!at_once[column].contains("complete"), declared.shares_arriving, "{name}");
        assert_eq!(!confirmed[column].contains("not what"), declared.validation_updates, "{name}");
    }
}
