//! `assay conform` through the binary: cases as they are listed, and mistakes.

use crate::support::Assay;

#[test]
fn mistakes_are_shown_before_anything_is_started() {
    let assay = Assay::new();
    std::fs::create_dir(assay.path("cases")).unwrap();
    std::fs::create_dir(assay.path("empty")).unwrap();
    assay.file("cases/own.toml", "topic = \"own\"\n[[case]]\nname = \"one\"\nlevle = \"MUST\"\n");
    assay.file("not.json", "{}");
    std::fs::create_dir(assay.path("device")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", assay.path("device/own.toml")).unwrap();
    for (typed, words) in [
        (&["builtin", "--case", "fresness"][..], "did you mean `freshness`?"),
        (&["builtin", "--cases", "cases"], "cases/own.toml:4: unknown field `levle`; did you mean `level`?"),
        (&["builtin", "--cases", "empty"], "has no file whose name ends in .toml"),
        (&["builtin", "--cases", "device"], "own.toml: it is a device, and a regular file is needed"),
        (&["builtin", "--baseline", "/dev/zero"], "it is a device, and a regular file is needed"),
        (&["builtin", "--known-failures", "/dev/zero"], "it is a device, and a regular file is needed"),
        (&["builtin", "--baseline", "not.json"], "not.json has no results of `assay conform`"),
        (&["127.0.0.1:9"], "--origin-listen"),
        (&["8.8.8.8:80", "--origin-listen", "127.0.0.1:0"], "--i-own-this-target"),
        (&["varnsh"], "varnsh"),
        (&["a=builtin", "a=builtin"], "two targets are called `a`"),
        (&["direct"], "`direct` is no target"),
        (&["show", "stors"], "did you mean `stores`?"),
    ] {
        assay.run(&[&["conform"], typed].concat()).exits(2).complains(words);
    }
}

#[test]
fn cases_are_listed_and_explained() {
    let assay = Assay::new();
    let list = assay.run(&["conform", "list", "storing"]).exits(0).stdout;
    assert!(list.starts_with("storing: ") && list.contains("no-store-response/plain"), "{list}");
    let shown = assay.run(&["conform", "show", "stale-max-age/one"]).exits(0).stdout;
    for words in
        ["(MUST, RFC 9111, 4.2.4)", "relies on: stores", "Step 2, 3 s later", "Cache-Control: max-age=1"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let file = assay.run(&["conform", "show", "stores", "--toml"]).exits(0).stdout;
    assert!(file.contains("topic = \"storing\""), "{file}");
}

#[test]
fn cases_that_cannot_be_tried_beside_load_are_refused_before_the_run() {
    let assay = Assay::new();
    for (typed, words) in [
        (&["demo", "--with-conform", "stael"][..], "did you mean `stale`?"),
        (&["demo", "--with-conform", "framing"], "no case of framing can be tried beside other requests"),
        (&["demo", "--direct", "--with-conform", "stale"], "--with-conform: there is no target"),
        (&["demo", "--robot-tls", "--with-conform", "stale"], "leave TLS out"),
    ] {
        assay.run(&[&["run"], typed].concat()).exits(2).complains(words);
    }
}

#[test]
fn targets_of_one_label_are_refused() {
    let assay = Assay::new();
    assay.run(&["conform", "switch", "switch"]).exits(2).complains("two targets are called `switch`");
    assay.run(&["conform", "a=builtin", "a=switch"]).exits(2).complains("two targets are called `a`");
}

#[test]
fn what_a_target_cannot_be_tried_with_is_refused() {
    let assay = Assay::new();
    assay
        .run(&["conform", "switch", "--tls"])
        .exits(2)
        .complains("the switch and caches that work together are tried in clear");
    assay.run(&["conform", "builtin", "--tls", "--forward"]).exits(2).complains("--forward");
    assay.run(&["conform", "switch", "--forward"]).exits(2).complains("the switch is no forward proxy");
    assay.run(&["conform", "builtin", "--tries", "0"]).exits(2).complains("--tries");
}

#[test]
fn a_topology_of_caches_that_cannot_be_tried_is_refused() {
    let assay = Assay::new();
    let chain = "[[cache]]\nname = \"edge\"\nparents = [\"top\"]\nprotocol = \"hash\"\nnever-direct = true\n[[cache]]\nname = \"top\"\n";
    assay.file("two.toml", chain);
    assay.file("linked.toml", &chain.replace("never", "peer-link = \"delay=5ms\"\nnever"));
    assay.file("odd.toml", &chain.replace("parents = [\"top\"]", "parents = [\"tpo\"]"));
    for (typed, words) in [
        (&["two.tml"][..], "cannot read the topology two.tml"),
        (&["odd.toml"], "odd.toml:3: parents: no cache is called `tpo`; did you mean `top`?"),
        (&["linked.toml"], "leave `peer-link` out"),
        (&["two.toml", "--topology", "two.toml"], "two targets are called `two`"),
        (&["two.toml", "--set", "ttl=0"], "there is no proxy to set it for"),
    ] {
        assay.run(&[&["conform", "--topology"], typed].concat()).exits(2).complains(words);
    }
}
