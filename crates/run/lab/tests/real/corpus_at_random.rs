//! Requests at random through real proxies: how many come out in a way that a strict reader does not take, as other requests than they
//! went in, or to another client. None of it is a failure here: it is reported.

use std::path::Path;

use crate::corpus::{Fate, PROXIES, Tried, between, count, through};
use assay_testbed::corpus::derived;

const BEGIN: &str = "<!-- Random requests through real proxies: written by the tests of the lab crate. -->\n";
const END: &str = "<!-- The end of random requests through real proxies. -->\n";
/// Streams through each; `PROPTEST_CASES` says more.
const LEAST: u32 = 3000;

/// A line of the table.
fn line(name: &str, version: &str, all: &[Tried]) -> String {
    let of = |must_refuse, fate| count(all, |tried| tried.must_refuse == must_refuse && tried.fate == fate);
    format!(
        "| {name} {version} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        all.len(),
        of(true, Fate::AsSaid) + of(true, Fate::Refused) + of(false, Fate::Refused),
        of(true, Fate::Rewritten),
        of(false, Fate::AsSaid),
        of(false, Fate::Others),
        count(all, |tried| tried.fate == Fate::PassedOn),
        count(all, Tried::is_unanswered),
        count(all, |tried| tried.is_mixed_up),
    )
}

#[tokio::test]
async fn some_requests_at_random_go_through_a_real_proxy_and_none_reaches_another_client() {
    let Some((_, all)) = through("nginx", derived::some(100)).await else { return };
    assert_eq!(count(&all, |tried| tried.is_mixed_up), 0);
    let refused = count(&all, |tried| tried.fate == Fate::Refused || tried.must_refuse);
    assert!(
        refused > all.len() / 5 && refused < all.len(),
        "{refused} of {}: the generator makes nothing of either kind",
        all.len()
    );
}

#[tokio::test]
#[ignore = "takes ten minutes, and needs all six proxies; writes the page with UPDATE_GOLDEN=1"]
async fn the_page_says_what_real_proxies_do_with_requests_at_random() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/refused-requests.md");
    let mut text = String::from(
        "\n| proxy | streams | refused in whole or in part | rewritten | gone on as read here | as other requests | as what a strict server does not take | without a response | another's response |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    // Side by side: most of the time is spent in waiting for connections to be quiet.
    let [varnish, nginx, squid, haproxy, httpd, trafficserver] =
        PROXIES.map(|name| through(name, derived::some(LEAST)));
    let (varnish, nginx, squid, haproxy, httpd, trafficserver) =
        tokio::join!(varnish, nginx, squid, haproxy, httpd, trafficserver);
    for (name, tried) in PROXIES.into_iter().zip([varnish, nginx, squid, haproxy, httpd, trafficserver]) {
        let Some((version, all)) = tried else { continue };
        text += &line(name, &version, &all);
    }
    between(&path, (BEGIN, END), &[&text, "\n"].concat());
}
