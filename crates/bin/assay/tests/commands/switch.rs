//! Files of `assay switch`, as people use it.

use crate::support::Assay;

#[test]
fn a_switch_file_is_explained_and_mistakes_are_shown() {
    let assay = Assay::new();
    let file =
        assay.file("front.toml", "listen = \"127.0.0.1:0\"\n[[server]]\naddress = \"127.0.0.1:9001\"\n");
    let said = assay.run(&["switch", "check", file]).exits(0).stdout;
    assert!(said.contains("listens on 127.0.0.1:0") && said.contains("no server is watched"), "{said}");
    let file = assay.file("wrong.toml", "listen = \"127.0.0.1:0\"\n[[sever]]\n");
    assay.run(&["switch", file]).exits(2).complains("did you mean `server`?");
    assay.run(&["switch", "check", "none.toml"]).exits(2).complains("none.toml");
}

#[test]
fn servers_with_public_addresses_are_asked_for_whatever_their_form() {
    let assay = Assay::new();
    // Set aside for documentation: nobody is there. And nothing is sent.
    for public in ["192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"] {
        let file = assay
            .file("front.toml", &format!("listen = \"127.0.0.1:0\"\n[[server]]\naddress = \"{public}\"\n"));
        assay.run(&["switch", file]).exits(2).complains("--i-own-this-target");
        assay.run(&["switch", "check", file]).exits(0);
    }
}
