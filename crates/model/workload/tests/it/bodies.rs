//! What bodies are made of.

use std::path::PathBuf;
use std::sync::Arc;

use assay_workload::body::{Body, FileBytes};
use assay_workload::model::{
    BodySource, BodySpec, Content, Distribution, Embedded, FileEntry, FileSet, Injection, Weighted, Workload,
};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Object, Universe, UniverseError, UniverseOptions};
use proptest::prelude::*;

use crate::fixtures;

/// The whole body of a version, put together in chunks of at most `max` bytes.
pub fn bytes_of(universe: &Universe, object: &Object, version: u64, max: usize) -> Vec<u8> {
    let body = universe.body(object, version);
    let mut bytes = Vec::new();
    loop {
        let chunk = body.chunk(universe.pool(), bytes.len() as u64, max);
        if chunk.is_empty() {
            return bytes;
        }
        bytes.extend_from_slice(chunk);
    }
}

fn workload(body: BodySpec, size: f64) -> Workload {
    let mut workload = fixtures::small();
    workload.contents[0] = Content { body, ..fixtures::content("x", Distribution::Constant(size), 1.0) };
    workload
}

fn universe(workload: Workload, seed: u64) -> Universe {
    Universe::new(Arc::new(workload), seed, 7, UniverseOptions::default()).unwrap()
}

fn of_source(source: BodySource) -> BodySpec {
    BodySpec { source, ..BodySpec::default() }
}

fn public(universe: &Universe, serial: u64) -> Object {
    universe.object(ObjectId { origin: 0, content: 0, space: Space::Public, serial })
}

/// A set of files with these contents.
fn file_set(root: &str, files: &[(&str, &[u8])]) -> (FileSet, Vec<Arc<[u8]>>) {
    let entry = |(path, bytes): &(&str, &[u8])| FileEntry {
        path: PathBuf::from(path),
        bytes: bytes.len() as u64,
        digest: FileEntry::digest_of(bytes),
    };
    let set = FileSet { root: PathBuf::from(root), files: files.iter().map(entry).collect() };
    (set, files.iter().map(|(_, bytes)| Arc::from(*bytes)).collect())
}

fn with_files(mut workload: Workload, sets: Vec<(FileSet, Vec<Arc<[u8]>>)>) -> (Arc<Workload>, FileBytes) {
    let (sets, bytes): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
    workload.files = sets;
    (Arc::new(workload), bytes)
}

#[test]
fn text_holds_nothing_that_markup_is_made_of() {
    let universe = universe(workload(of_source(BodySource::Text), 300_000.0), 1);
    let object = public(&universe, 0);
    let bytes = bytes_of(&universe, &object, 3, usize::MAX);
    assert_eq!(bytes.len() as u64, object.size_bytes);
    assert!(bytes.iter().all(|b| (33..=126).contains(b) && *b != b'<' && *b != b'"'));
    assert_ne!(bytes[..16], bytes_of(&universe, &object, 4, usize::MAX)[..16], "versions differ at once");
}

#[test]
fn words_are_printable_and_repeat_themselves() {
    let universe = universe(workload(of_source(BodySource::Words), 200_000.0), 1);
    let bytes = bytes_of(&universe, &public(&universe, 0), 0, usize::MAX);
    let text = String::from_utf8(bytes).expect("is text");
    assert!(text.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '\n'));
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let distinct: std::collections::HashSet<_> = words.iter().collect();
    assert!(words.len() > 25_000 && distinct.len() * 4 < words.len(), "{} {}", words.len(), distinct.len());
}

#[test]
fn some_objects_share_a_body_that_never_changes() {
    let universe = universe(workload(BodySpec { unique: Some(0.25), ..BodySpec::default() }, 1000.0), 2);
    let objects: Vec<_> = (0..2000).map(|serial| public(&universe, serial)).collect();
    let own = objects.iter().filter(|o| universe.has_own_body(o)).count();
    assert!((420..580).contains(&own), "{own}");
    let shared: Vec<_> = objects.iter().filter(|o| !universe.has_own_body(o)).collect();
    let first = bytes_of(&universe, shared[0], 0, usize::MAX);
    assert!(shared.iter().all(|o| bytes_of(&universe, o, 5, usize::MAX) == first));
    assert!(shared.iter().all(|o| universe.body_key(o) == universe.body_key(shared[0])));
    assert_ne!(shared[0].key, shared[1].key, "they are still different objects");
}

#[test]
fn a_whole_file_is_its_own_bytes_and_keeps_its_extension() {
    let files: [(&str, &[u8]); 3] =
        [("a/one.html", b"<p>1"), ("two.tar.gz", &[7; 100_000]), ("README", b"!")];
    let workload = workload(of_source(BodySource::Files(0)), 0.0);
    let (workload, bytes) = with_files(workload, vec![file_set("/files", &files)]);
    let universe = Universe::with_files(workload, 1, 7, UniverseOptions::default(), &bytes).unwrap();
    let mut seen = [0; 3];
    for serial in 0..300 {
        let object = public(&universe, serial);
        let body = bytes_of(&universe, &object, serial, 1000);
        let file = files.iter().position(|(_, bytes)| *bytes == body).expect("is one of the files");
        seen[file] += 1;
        assert_eq!(object.size_bytes, files[file].1.len() as u64);
        let path = universe.path(&object);
        assert!(path.ends_with([".html", ".gz", ""][file]), "{path}");
        assert_eq!(universe.parse_path(0, path.as_bytes()), Ok(object.id));
    }
    assert!(seen.iter().all(|n| *n > 60), "{seen:?}");
}

#[test]
fn entries_follow_one_another_from_where_the_object_says() {
    let files: [(&str, &[u8]); 3] = [("a", b"aaaa"), ("b", b"bb"), ("c", b"ccccccc")];
    let workload = workload(of_source(BodySource::Database(0)), 200_000.0);
    let (workload, bytes) = with_files(workload, vec![file_set("/db", &files)]);
    let universe = Universe::with_files(workload, 1, 7, UniverseOptions::default(), &bytes).unwrap();
    let round = b"aaaabbccccccc";
    for serial in 0..20 {
        let body = bytes_of(&universe, &public(&universe, serial), 0, usize::MAX);
        let start = [0, 4, 6].into_iter().find(|start| body.starts_with(&round[*start..])).expect("an entry");
        assert!(body.iter().zip(round.iter().cycle().skip(start)).all(|(have, want)| have == want));
        assert_eq!(body.len(), 200_000);
    }
}

#[test]
fn files_that_changed_are_found_out() {
    let workload = workload(of_source(BodySource::Files(0)), 0.0);
    let (workload, mut bytes) = with_files(workload, vec![file_set("/files", &[("a.txt", b"before")])]);
    bytes[0][0] = Arc::from(&b"after!"[..]);
    let made = |bytes: &FileBytes| {
        Universe::with_files(workload.clone(), 1, 7, UniverseOptions::default(), bytes).map(|_| ())
    };
    let error = made(&bytes).unwrap_err();
    assert_eq!(error, UniverseError::FileChanged { path: "/files/a.txt".into() });
    assert!(matches!(made(&vec![]), Err(UniverseError::Files { .. })));
    assert!(matches!(made(&vec![vec![]]), Err(UniverseError::Files { .. })));
}

#[test]
fn lines_are_put_into_a_share_of_bodies_with_gaps_between_them() {
    let lines = b"first line\n\nthe second\r\nthird";
    let injection = Injection {
        lines: Some(0),
        gap_bytes: Distribution::Uniform { low: 100.0, high: 200.0 },
        share: 0.3,
    };
    let spec = BodySpec { injection: Some(injection), ..of_source(BodySource::Words) };
    let (workload, bytes) =
        with_files(workload(spec, 50_000.0), vec![file_set("/lines.txt", &[("", lines)])]);
    let universe = Universe::with_files(workload, 1, 7, UniverseOptions::default(), &bytes).unwrap();
    let mut infected = 0;
    for serial in 0..400 {
        let object = public(&universe, serial);
        let body = String::from_utf8(bytes_of(&universe, &object, 0, 777)).unwrap();
        let places: Vec<usize> = ["first line", "the second", "third"]
            .iter()
            .flat_map(|l| body.match_indices(l))
            .map(|m| m.0)
            .collect();
        assert_eq!(universe.is_infected(&object), !places.is_empty());
        infected += usize::from(!places.is_empty());
        if !places.is_empty() {
            // A line and its gap take 159 bytes on average.
            assert!((280..350).contains(&places.len()), "{}", places.len());
        }
    }
    assert!((80..160).contains(&infected), "{infected}");
}

#[test]
fn the_path_can_be_put_at_the_end() {
    let injection = Injection { lines: None, gap_bytes: Distribution::Constant(0.0), share: 1.0 };
    let spec = BodySpec { injection: Some(injection), ..BodySpec::default() };
    let universe = universe(workload(spec, 500.0), 1);
    let object = public(&universe, 9);
    assert!(bytes_of(&universe, &object, 0, 64).ends_with(universe.path(&object).as_bytes()));
}

/// Every link of a page as a browser would find it: the position behind it and the path.
fn links(page: &[u8]) -> Vec<(usize, String)> {
    let text = std::str::from_utf8(page).expect("pages are text");
    text.match_indices('<')
        .filter(|(at, _)| !text[*at..].starts_with("</"))
        .map(|(at, _)| {
            let tag = &text[at..];
            let value = tag.split('"').find(|part| part.starts_with('/')).expect("a path").to_owned();
            let mut end = at + tag.find('>').expect("an end") + 1;
            if let Some(closing) = text[end..].strip_prefix("</") {
                end += 2 + closing.find('>').expect("an end") + 1;
            }
            (end, value)
        })
        .collect()
}

#[test]
fn a_page_holds_its_links_each_where_it_ends() {
    let mut workload = fixtures::mixed_listing();
    let mimes =
        [Some("image/png"), Some("text/html"), None, Some("text/css"), Some("application/javascript")];
    workload.contents.iter_mut().zip(mimes).for_each(|(c, mime)| c.mime_type = mime.map(str::to_owned));
    let contents = Weighted::new([(0, 0.4), (1, 0.1), (2, 0.1), (3, 0.2), (4, 0.2)]);
    workload.contents[1].embedded = Some(Embedded { count: Distribution::Zipf { n: 60.0 }, contents });
    let universe = universe(workload, 3);
    for serial in 0..400 {
        for space in [Space::Public, Space::Private(1599), Space::RequestBody(7), Space::BestEffort(1599)] {
            let page = universe.object(ObjectId { origin: 0, content: 1, space, serial: serial << 40 });
            let body = bytes_of(&universe, &page, 2, 5000);
            let count = universe.embedded_count(&page);
            let found = links(&body);
            assert_eq!(found.len(), usize::from(count));
            for (place, (end, path)) in (1..=count).zip(&found) {
                let id = universe.embedded(&page, place).unwrap();
                assert_eq!(*path, universe.path(&universe.object(id)));
                let ends = page.size_bytes * u64::from(place) / (u64::from(count) + 1);
                assert_eq!(*end as u64, ends, "the link is complete where it is said to end");
            }
        }
    }
}

#[test]
fn a_page_within_a_page_holds_no_links() {
    let mut workload = fixtures::mixed_listing();
    workload.contents[1].embedded.as_mut().unwrap().contents = Weighted::one(1);
    let universe = universe(workload, 3);
    let page = universe.object(ObjectId { origin: 0, content: 1, space: Space::Public, serial: 5 });
    let within = universe.object(universe.embedded(&page, 1).unwrap());
    assert_eq!(universe.embedded_count(&within), 0);
    assert!(links(&bytes_of(&universe, &within, 0, 5000)).is_empty());
}

#[test]
fn lines_do_not_cover_links() {
    let mut workload = fixtures::mixed_listing();
    let injection =
        Injection { lines: Some(0), gap_bytes: Distribution::Exponential { mean: 40.0 }, share: 1.0 };
    workload.contents[1].body.injection = Some(injection);
    let (workload, bytes) =
        with_files(workload, vec![file_set("/lines", &[("", b"a line of some length\n?")])]);
    let universe = Universe::with_files(workload, 1, 7, UniverseOptions::default(), &bytes).unwrap();
    for serial in 0..200 {
        let page = universe.object(ObjectId { origin: 0, content: 1, space: Space::Public, serial });
        let body = bytes_of(&universe, &page, 0, usize::MAX);
        assert_eq!(links(&body).len(), usize::from(universe.embedded_count(&page)));
        assert!(body.windows(9).any(|part| part == b"some leng"), "there is room between links");
    }
}

fn any_spec() -> impl Strategy<Value = BodySpec> {
    let source = prop_oneof![
        Just(BodySource::Data),
        Just(BodySource::Text),
        Just(BodySource::Words),
        Just(BodySource::Database(0)),
    ];
    let injection = prop_oneof![Just(None), Just(Some(None)), Just(Some(Some(0)))];
    (source, injection, prop::option::of(0.0f64..=1.0)).prop_map(|(source, lines, unique)| BodySpec {
        source,
        unique,
        codings: Vec::new(),
        injection: lines.map(|lines| Injection {
            lines,
            gap_bytes: Distribution::Exponential { mean: 700.0 },
            share: 0.8,
        }),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_body_is_the_same_however_it_is_cut_and_every_wrong_byte_is_found(
        spec in any_spec(), page: bool, size in 0.0f64..200_000.0, serial: u64, version: u64,
        max in 1usize..100_000, at: u64, flip in 1u8..=255,
    ) {
        let mut workload = workload(spec, size);
        if page {
            let count = Distribution::Constant(9.0);
            workload.contents[0].embedded = Some(Embedded { count, contents: Weighted::one(0) });
        }
        let set = file_set("/x", &[("a", b"one\ntwo\nthree"), ("b", &[b'y'; 9000])]);
        let (workload, bytes) = with_files(workload, vec![set]);
        let universe = Universe::with_files(workload, 1, 7, UniverseOptions::default(), &bytes).unwrap();
        let object = public(&universe, serial);
        let body: Body = universe.body(&object, version);
        let mut whole = bytes_of(&universe, &object, version, usize::MAX);
        prop_assert_eq!(whole.len() as u64, object.size_bytes);
        prop_assert!(whole == bytes_of(&universe, &object, version, max));
        let mut from = 0;
        for part in whole.chunks(max) {
            prop_assert_eq!(body.matches(universe.pool(), from, part), Ok(()));
            from += part.len() as u64;
        }
        if !whole.is_empty() {
            let at = at % object.size_bytes;
            whole[at as usize] ^= flip;
            prop_assert_eq!(body.matches(universe.pool(), 0, &whole), Err(at));
        }
    }
}
