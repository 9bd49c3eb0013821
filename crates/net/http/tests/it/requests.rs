//! Every request of the corpus is read, or refused, as it says.

use assay_testbed::corpus::format::requests;
use assay_testbed::corpus::reader::serve;

#[test]
fn every_request_of_the_corpus_is_read_or_refused_as_it_says() {
    let cases = requests();
    assert!(cases.len() >= 200, "{} cases are too few", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let (taken, end) = serve(&case.bytes);
            let seen: Vec<_> = taken.iter().map(|one| (&one.method, &one.target, &one.body)).collect();
            let meant: Vec<_> =
                case.passes.iter().map(|pass| (&pass.method, &pass.target, &pass.body)).collect();
            let hosts = case.passes.iter().zip(&taken).all(|(pass, one)| {
                let mut hosts = pass.has.iter().filter(|(name, _)| name == "host");
                hosts.all(|(_, value)| one.authority.as_deref().map(str::as_bytes) == Some(value))
            });
            let is_right = seen == meant && end == case.end && hosts;
            let was =
                || format!("{}\n    meant {meant:?} {:?}\n    seen  {seen:?} {end:?}", case.name(), case.end);
            (!is_right).then(was)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_two_cases_of_the_corpus_are_the_same() {
    let mut cases = requests();
    cases.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    let same: Vec<_> = cases.windows(2).filter(|two| two[0].bytes == two[1].bytes).collect();
    assert!(
        same.is_empty(),
        "{:?}",
        same.iter().map(|two| (two[0].name(), two[1].name())).collect::<Vec<_>>()
    );
}

#[test]
fn a_request_that_arrives_byte_by_byte_is_read_no_differently() {
    for case in requests().iter().filter(|case| case.bytes.len() < 200) {
        let (taken, end) = serve(&case.bytes);
        let Some(first) = taken.first() else {
            // What is refused is never taken for a message before that.
            for cut in 0..case.bytes.len() {
                assert!(serve(&case.bytes[..cut]).0.is_empty(), "{} at {cut}: {end:?}", case.name());
            }
            continue;
        };
        for cut in 0..first.length {
            assert!(serve(&case.bytes[..cut]).0.is_empty(), "{} at {cut}", case.name());
        }
        let (again, _) = serve(&case.bytes[..first.length]);
        assert_eq!(again[0].body, first.body, "{}", case.name());
    }
}
