//! `assay cluster`, `assay webstone` and `assay policies`, as people use them.

use crate::samples::CLUSTER;
use crate::support::Assay;

#[test]
fn mistakes_end_with_2_and_say_what_there_is() {
    let assay = Assay::new();
    let small = assay.file("small.toml", CLUSTER);
    assay.file("list", "/file500.html 1\n");
    assay.file("bad", "file500.html 1\n");
    let groups = "[[cluster.group]]\nnodes = 1000000\n".repeat(5000);
    let many = assay.file("many.toml", &CLUSTER.replace("nodes = 2\n", &groups));
    for (arguments, words) in [
        (vec!["cluster", small, "--policy", "lard"], "it has: rand, cap"),
        (vec!["cluster", small, "--label", "three"], "it has: two"),
        (vec!["cluster", small, "--run", "--nodes", "127.0.0.1:9"], "two has 2 nodes"),
        (vec!["cluster", small, "--nodes", "192.0.2.1:80,8.8.8.8:80"], "is a public address"),
        (vec!["cluster", small, "--clients", "0"], "no number of clients"),
        (vec!["simulate", many], "its groups have 5000000000 nodes; a cluster has 1000000 at most"),
        (
            vec!["cluster", small, "--nodes", "127.0.0.1:9,127.0.0.1:9"],
            "--nodes does nothing without --switch",
        ),
        (vec!["cluster", small, "--measure", "5s"], "--measure does nothing without --run or --calibrate"),
        (vec!["cluster", small, "--calibrate", "--against", "list"], "--against does nothing without --run"),
        (vec!["cluster", small, "--switch", "--keep-alive"], "--keep-alive does nothing without --run"),
        (
            vec!["cluster", small, "--run", "--json", "--csv", "-"],
            "two results would be mixed in standard output",
        ),
        (vec!["webstone", "list"], "nobody says where the server is"),
        (vec!["webstone", "list", "--to", "8.8.8.8:80"], "is a public address"),
        (vec!["webstone", "bad", "--to", "127.0.0.1:9"], "bad, line 1: `file500.html` is no path"),
        (vec!["webstone", "list", "--to", "127.0.0.1:1"], "nothing responds at 127.0.0.1:1"),
        (
            vec!["cluster", small, "--run", "--nodes", "127.0.0.1:1,127.0.0.1:1"],
            "nothing responds at 127.0.0.1:1",
        ),
        (vec!["cluster", small, "--listen", "9000"], "is no address with a port"),
        (
            vec!["policies", assay.file("new.json", "{\"schema\": \"assay-cluster/9\"}")],
            "has schema assay-cluster/9",
        ),
        (vec!["policies", assay.file("none.json", "[]")], "it says no `schema`"),
        (vec!["policies", "list"], "cannot read the result list"),
    ] {
        assay.run(&arguments).exits(2).complains(words);
    }
    assert!(assay.run(&["cluster"]).exits(0).stdout.contains("figure-5"));
}
