//! The schemas of settings files, held against every such file of the repository and against what the readers accept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assay_testbed::violations;
use serde_json::Value;

use crate::support::{Assay, read, root};

/// A name that is like no other.
const UNKNOWN: &str = "qqqqqqqqqq";

fn schema(kind: &str) -> Value {
    let path = root().join(format!("docs/reference/{kind}.schema.json"));
    serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a schema says about a text in TOML.
fn complaints(kind: &str, text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let value = serde_json::to_value(table).expect("TOML is JSON");
    violations(&schema(kind), &value)
}

/// The files of a directory with an ending.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(directory)).expect("the tree").flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    found.sort();
    assert!(!found.is_empty(), "{directory} has no {ending}");
    found
}

/// The blocks of TOML in a page of the manual.
fn blocks(page: &Path) -> Vec<String> {
    let text = read(page);
    let starts = text.split("```toml\n").skip(1);
    starts.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_settings_file_of_the_repository_fits_its_schema() {
    for (kind, directory) in [("experiment", "experiments"), ("cluster", "clusters"), ("proxy", "proxies")] {
        for path in files(directory, "toml") {
            assert_eq!(complaints(kind, &read(&path)), [""; 0], "{}", path.display());
        }
    }
    let assay = Assay::new();
    assay.run(&["init", "--experiment", "mine.toml"]);
    for made in std::fs::read_dir(assay.directory.path()).expect("the directory").flatten() {
        assert_eq!(complaints("experiment", &read(&made.path())), [""; 0]);
    }
}

/// Whole examples of the manual: the page, and the keys that tell what they are.
#[test]
fn every_whole_example_of_the_manual_fits_its_schema() {
    let mut seen = BTreeSet::new();
    let pages = files("docs/reference", "md").into_iter().chain(files("docs/how-to", "md"));
    for block in pages.flat_map(|page| blocks(&page)) {
        let Ok(table) = block.parse::<toml::Table>() else { continue };
        let has = |keys: &[&str]| keys.iter().all(|key| table.contains_key(*key));
        let kind = match () {
            () if has(&["workloads", "proxy"]) => "experiment",
            () if has(&["cache"]) => "topology",
            () if has(&["policies", "service"]) => "cluster",
            () if has(&["listen", "server"]) => "switch",
            () if has(&["header"]) || has(&["body"]) => "rules",
            () if has(&["start", "modes"]) => "proxy",
            () => continue,
        };
        assert_eq!(complaints(kind, &block), [""; 0], "{block}");
        seen.insert(kind);
    }
    assert!(seen.len() >= 4, "{seen:?}");
}

#[test]
fn schemas_refuse_what_the_readers_refuse() {
    let experiment = "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n";
    assert_eq!(complaints("experiment", experiment), [""; 0]);
    for wrong in ["nmae = \"x\"\n", "mode = \"sideways\"\n", "memory = 64\n", "disk = \"much\"\n"] {
        assert!(!complaints("experiment", &format!("{experiment}{wrong}")).is_empty(), "{wrong}");
    }
    let switch = "listen = \"127.0.0.1:0\"\n[[server]]\naddress = \"127.0.0.1:9001\"\n";
    assert_eq!(complaints("switch", switch), [""; 0]);
    for wrong in ["weigth = 1\n", "backup = \"yes\"\n", "health = true\n"] {
        assert!(!complaints("switch", &format!("{switch}{wrong}")).is_empty(), "{wrong}");
    }
    assert!(!complaints("switch", "listen = \"127.0.0.1:0\"\n").is_empty());
}

/// The names that a message about an unknown field lists.
fn listed(message: &str) -> BTreeSet<String> {
    if let Some((_, list)) = message.split_once("can have: ") {
        let line = list.lines().next().unwrap_or_default();
        return line.split(", ").map(|name| name.trim().to_owned()).collect();
    }
    let (_, list) =
        message.split_once("expected ").unwrap_or_else(|| panic!("no list of fields in: {message}"));
    let quoted = list.lines().next().unwrap_or_default().split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// The properties of the table that a pointer leads to.
fn properties(schema: &Value, pointer: &str) -> BTreeSet<String> {
    let table = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
    assert_eq!(table["additionalProperties"], false, "{pointer}");
    table["properties"].as_object().expect("properties").keys().cloned().collect()
}

/// Has a reader complain about an unknown field, and compares the fields that it knows with those of the schema.
fn same_fields(kind: &str, pointer: &str, text: &str, command: &[&str]) {
    let assay = Assay::new();
    let text = text.replace('?', &format!("{UNKNOWN} = 1"));
    assay.file("x.toml", &text);
    let said = assay.run(command).exits(2);
    assert!(said.stderr.contains(UNKNOWN), "{}\n{text}", said.stderr);
    assert_eq!(listed(&said.stderr), properties(&schema(kind), pointer), "{kind} {pointer}");
}

#[test]
fn an_experiment_has_the_fields_of_its_schema_and_no_others() {
    let proxy = "[[proxy]]\nname = \"builtin\"\n";
    for (pointer, text) in [
        ("", format!("?\nworkloads = [\"demo\"]\n{proxy}")),
        ("/$defs/workload", format!("[[workload]]\nname = \"demo\"\n?\n{proxy}")),
        ("/$defs/proxy", format!("workloads = [\"demo\"]\n{proxy}?\n")),
        ("/$defs/cache", format!("workloads = [\"demo\"]\n{proxy}[[proxy.cache]]\nname = \"a\"\n?\n")),
        ("/$defs/condition", format!("workloads = [\"demo\"]\n{proxy}[[condition]]\n?\n")),
    ] {
        same_fields("experiment", pointer, &text, &["lab", "show", "x.toml"]);
    }
    let topology = ["run", "demo", "--topology", "x.toml"];
    same_fields("topology", "", "?\n[[cache]]\nname = \"a\"\n", &topology);
    same_fields("topology", "/$defs/cache", "[[cache]]\nname = \"a\"\n?\n", &topology);
}

#[test]
fn a_cluster_has_the_fields_of_its_schema_and_no_others() {
    let head = "policies = [\"rr\"]\nclients = [1]\n[[service]]\nname = \"a\"\n";
    let cluster = "[[cluster]]\nnodes = 1\n";
    for (pointer, text) in [
        ("/$defs/switch", format!("{head}{cluster}[switch]\n?\n")),
        ("/$defs/node", format!("{head}{cluster}[node]\n?\n")),
        ("/$defs/service", format!("{head}?\n{cluster}")),
        ("/$defs/mix", format!("{head}[[mix]]\nlabel = \"m\"\nweights = {{ a = 1 }}\n?\n{cluster}")),
        ("/$defs/cluster", format!("{head}{cluster}?\n")),
        ("/$defs/group", format!("{head}{cluster}[[cluster.group]]\nnodes = 1\n?\n")),
        ("/$defs/failure", format!("{head}{cluster}[[failure]]\nnode = 0\nat = \"1s\"\n?\n")),
        ("/$defs/reference", format!("{head}{cluster}[[reference]]\n?\n")),
        ("/$defs/forwarding", format!("{head}{cluster}[[forwarding]]\nname = \"w\"\n?\n")),
        ("/$defs/policy", format!("{head}{cluster}[[policy]]\nname = \"rr\"\nlabel = \"x\"\n?\n")),
        ("", format!("?\n{head}{cluster}")),
    ] {
        same_fields("cluster", pointer, &text, &["simulate", "x.toml"]);
    }
}

#[test]
fn a_switch_has_the_fields_of_its_schema_and_no_others() {
    let head = "listen = \"127.0.0.1:0\"\n";
    let server = "[[server]]\naddress = \"127.0.0.1:9001\"\n";
    let pair = "[[certificate]]\nfile = \"a\"\nkey = \"b\"\n";
    for (pointer, text) in [
        ("", format!("?\n{head}{server}")),
        ("/$defs/server", format!("{head}{server}?\n")),
        ("/$defs/class", format!("{head}{server}[[class]]\nname = \"c\"\n?\n")),
        ("/$defs/check", format!("{head}{server}[health]\n?\n")),
        ("/$defs/certificate", format!("{head}{server}{pair}?\n")),
        ("/$defs/tls", format!("{head}{server}{pair}[tls]\nlisten = \"127.0.0.1:8443\"\n?\n")),
        ("/properties/timeouts", format!("{head}{server}[timeouts]\n?\n")),
        ("/properties/limits", format!("{head}{server}[limits]\n?\n")),
        ("/properties/passive", format!("{head}{server}[passive]\n?\n")),
        ("/$defs/server/properties/tls", format!("{head}{server}[server.tls]\n?\n")),
    ] {
        same_fields("switch", pointer, &text, &["switch", "x.toml"]);
    }
}

#[test]
fn rules_and_proxies_have_the_fields_of_their_schemas_and_no_others() {
    let spe = [
        "spe",
        "--listen",
        "127.0.0.1:0",
        "--origin",
        "127.0.0.1:9",
        "--proxy",
        "builtin",
        "--rules",
        "x.toml",
    ];
    same_fields("rules", "", "?\n", &spe);
    same_fields("rules", "/$defs/header", "[[header]]\nname = \"a\"\ncompare = \"date\"\n?\n", &spe);
    same_fields("rules", "/$defs/body", "[[body]]\ntype = \"*\"\ncompare = \"json\"\n?\n", &spe);
    let run = ["run", "demo", "--proxy", "x.toml"];
    let head = "name = \"x\"\ntitle = \"X\"\nmodes = [\"reverse\"]\n";
    let whole = "[version]\ncommand = [\"true\"]\nafter = \"\"\n[start]\ncommand = [\"true\"]\n";
    for (pointer, text) in [
        ("", format!("{head}?\n{whole}")),
        ("/properties/version", format!("{head}[version]\n?\n")),
        ("/properties/ready", format!("{head}{whole}[ready]\n?\n")),
        ("/properties/stop", format!("{head}{whole}[stop]\n?\n")),
        ("/properties/capacity", format!("{head}{whole}[capacity]\n?\n")),
        ("/properties/behaviour", format!("{head}{whole}[behaviour]\n?\n")),
        ("/properties/access-log", format!("{head}{whole}[access-log]\n?\n")),
        ("/properties/file/items", format!("{head}{whole}[[file]]\n?\n")),
        ("/$defs/setting", format!("{head}{whole}[setting.a]\n?\n")),
        ("/$defs/counters", format!("{head}{whole}[[counters]]\n?\n")),
    ] {
        same_fields("proxy", pointer, &text, &run);
    }
}

#[test]
fn every_schema_is_printed_and_named() {
    let assay = Assay::new();
    let listed = assay.run(&["schema"]).exits(0);
    let printed: BTreeSet<String> = listed
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned))
        .collect();
    let kept: BTreeSet<String> = files("docs/reference", "json")
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(".schema.json")?.to_owned()))
        .collect();
    assert!(kept.is_subset(&printed) && printed.len() > kept.len(), "{printed:?}");
    for name in &printed {
        let text = assay.run(&["schema", name]).exits(0).stdout;
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        // Ends the test if the schema itself is not valid.
        violations(&schema, &Value::Null);
    }
    for (name, command) in [
        ("summary", &["report", "--schema"][..]),
        ("comparison", &["report", "--comparison-schema"]),
        ("conform", &["conform", "--schema"]),
        ("logs", &["logs", "--schema"]),
        ("size", &["size", "--schema"]),
        ("replay", &["replay", "--schema"]),
        ("spe", &["spe", "report", "--schema"]),
    ] {
        let text = assay.run(&["schema", name]).exits(0).stdout;
        assert_eq!(assay.run(command).exits(0).stdout, text, "{name}");
    }
    assay.run(&["schema", "expriment"]).exits(2).complains("did you mean `experiment`?");
}
