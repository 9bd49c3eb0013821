//! The page of a run that goes on says so, and that of one that has ended does not.

use assay_report::html::{self, Live};

use crate::synthetic::{self, Story};

#[test]
fn a_page_that_is_not_live_loads_nothing_and_does_not_mention_it() {
    let run = synthetic::run(Story::Killed);
    let page = html::page(&run.dir, None).unwrap();
    assert!(!page.contains("<html lang=\"en\" data-live") && !page.contains("connect-src"));
    assert!(page.contains("Partial.") && !page.contains("Still running."));
    let live = html::page(&run.dir, Some(&Live { url: "./".into(), ended: false })).unwrap();
    assert!(live.contains("<html lang=\"en\" data-live=\"") && live.contains("connect-src 'self'"));
    assert!(live.contains("Still running.") && !live.contains("Partial."));
}
