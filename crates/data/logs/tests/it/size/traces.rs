//! Traces in the forms that people have: each is read rightly, or refused, or a note says what was not read.

use std::io::Write as _;
use std::path::PathBuf;

use assay_cache::policy::Admission;
use assay_logs::size::document::{SizeDocument, SizeOptions, SizeUnit};
use assay_logs::size::error::SizeError;
use assay_logs::size::form::Form;
use assay_logs::size::input::{ReadOptions, SizeInput, read};
use assay_logs::size::keys::LogRules;
use assay_logs::size::policy::Policy;
use assay_logs::size::trace::text::ColumnNaming;

/// Reads files with these names and contents.
fn read_files(files: &[(&str, &[u8])], form: Option<&Form>) -> Result<SizeInput, SizeError> {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, bytes): &(&str, &[u8])| {
        let path = folder.path().join(name);
        std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
        path
    };
    let paths: Vec<PathBuf> = files.iter().map(write).collect();
    read(&paths, form, LogRules::default(), ReadOptions::default())
}

/// What LRU makes of a trace at this size.
fn simulated(name: &str, trace: &str, size: u64) -> SizeDocument {
    given(name, trace, size, None)
}

fn given(name: &str, trace: &str, size: u64, form: Option<&Form>) -> SizeDocument {
    let options = SizeOptions {
        policies: vec![Policy::LRU],
        sizes: vec![size],
        warm_up: 0.0,
        admission: Admission::All,
        stored_as: None,
    };
    let read = read_files(&[(name, trace.as_bytes())], form);
    SizeDocument::of(&read.unwrap_or_else(|error| panic!("{error}")), &options).unwrap()
}

/// Requests, misses of LRU, and objects.
fn figures(document: &SizeDocument) -> [u64; 3] {
    let point = &document.curves[0].points[0].figures;
    [point.requests, point.misses, document.input.objects]
}

fn refused(name: &str, trace: &[u8]) -> String {
    let error = read_files(&[(name, trace)], None).unwrap_err();
    let source = std::error::Error::source(&error).map_or(String::new(), |source| format!(": {source}"));
    format!("{error}{source}")
}

fn columns(names: &str) -> Form {
    Form::Text(ColumnNaming::Given(names.into()))
}

#[test]
fn reads_are_requests_as_often_as_a_line_says_and_others_are_counted_by_name() {
    let trace = "key,op,size,op_count\nA,GET,300,5\nB,GET,900,1\nA,SET,300,2\nB,DELETE,0,1\nB,GET,900,1\n";
    let document = simulated("a.csv", trace, 2048);
    assert_eq!(figures(&document), [7, 2, 2]);
    assert_eq!((document.input.unit, document.input.size_changes), (SizeUnit::Bytes, 0));
    let others: Vec<_> =
        document.input.other_operations.iter().map(|other| (&*other.name, other.count)).collect();
    assert_eq!(others, [("SET", 2), ("DELETE", 1)]);
    let notes = document.notes.join("\n");
    assert!(notes.contains("not among them: SET 2, DELETE 1."), "{notes}");
    assert!(notes.contains("as `op_count` says: 3 lines are 7 requests."), "{notes}");
    // Caffeine's reader of CacheLib's traces takes keys and values together.
    let document = simulated("a.csv", "key,op,size,op_count,key_size\nA,GET,300,5,30\nB,GET,0,2,30\n", 2048);
    assert_eq!((figures(&document), document.input.footprint_bytes), ([7, 2, 2], 360));
    let notes = document.notes.join("\n");
    assert!(
        notes.contains("sum of `size` and `key_size`") && notes.contains("2 reads are for a value"),
        "{notes}"
    );
}

#[test]
fn units_in_names_are_read_and_what_is_not_used_is_named() {
    let rows = "1000,1,A,300\n2000,1,B,900\n3000,1,A,300\n64000,1,B,900\n";
    for name in ["object size (byte)", "size_in_bytes", "length", "Size[B]"] {
        let document = simulated("a.csv", &format!("# timestamp (ms),op,object id,{name}\n{rows}"), 1024);
        assert_eq!(figures(&document), [4, 4, 2], "{name}");
        assert_eq!((document.input.unit, document.input.lasts_s), (SizeUnit::Bytes, Some(63)), "{name}");
        let notes = document.notes.join("\n");
        assert!(notes.contains("Operations are numbers (1), and nothing says which are reads"), "{notes}");
    }
    let explained = format!(
        "# timestamp (ms), op type [Put:0, Get:1], object id, object size (byte)\n{rows}65000,0,B,9\n"
    );
    let document = simulated("a.csv", &explained, 4096);
    assert_eq!((figures(&document), document.input.other_operations[0].name.as_str()), ([4, 2, 2], "Put"));
    let document = simulated("a.csv", "id,weight,size_kb\na,1,1.5\na,2,1.5\n", 4096);
    assert_eq!((figures(&document), document.input.footprint_bytes), ([2, 1, 1], 1536));
    let notes = document.notes.join("\n");
    assert!(
        notes.contains("not used: `weight`.") && notes.contains("`size_kb` count 1,024 bytes each"),
        "{notes}"
    );
    let notes = simulated("a.csv", "id,weight\na,1\n", 1).notes.join("\n");
    assert!(!notes.contains("The input has no sizes") && notes.contains("name it with --columns"), "{notes}");
    assert!(
        simulated("a.csv", "id\na\n", 1)
            .notes
            .join("\n")
            .contains("The input has no sizes: caches are measured")
    );
}

#[test]
fn traces_without_names_are_read_by_what_is_given_or_by_their_form() {
    let rows = [(1, "a", 300), (2, "b", 900), (3, "a", 300), (64, "b", 900)];
    let written = |row: &dyn Fn(i32, &str, i32) -> String| -> String {
        rows.iter().map(|(at, id, size)| row(*at, id, *size) + "\n").collect()
    };
    let blanks = written(&|at, id, size| format!("{at} {id} {size}"));
    let semicolons = written(&|at, id, size| format!("{at},0;\"{id};\"\"\";{size}"));
    let form = columns("time,object,size");
    for (trace, form) in [
        (format!("\u{feff}{blanks}"), Some(&form)),
        (semicolons.clone(), Some(&form)),
        (format!("time id size\n{blanks}"), None),
        (format!("\u{feff}time;object;size\r\n{}", semicolons.replace('\n', "\r\n")), None),
    ] {
        let document = given("trace", &trace, 1024, form);
        assert_eq!((figures(&document), document.input.lasts_s), ([4, 4, 2], Some(63)), "{trace}");
        assert!(document.notes.iter().all(|note| !note.contains("could not be read")), "{trace}");
    }
    let twitter = written(&|at, id, size| format!("{at},{id},0,{size},7,get,0\n{at},{id},0,{size},7,set,60"));
    let ibm = written(&|at, id, size| {
        format!("{at}000 REST.GET.OBJECT {id} {size}\n{at}000 REST.DELETE.OBJECT {id}")
    });
    let msr = written(&|at, id, size| {
        format!(
            "{},h,0,Read,{},{size},9",
            128_166_372_000_000_000 + i64::from(at) * 10_000_000,
            id.len() + id.as_bytes()[0] as usize
        )
    });
    let spc = written(&|at, id, size| {
        format!("0,{},{size},R,{at}.5\n0,{},512,w,{at}.5", id.as_bytes()[0], at + 1000)
    });
    let tr = written(&|at, id, size| format!("{at} {} {size} 3 4", id.as_bytes()[0]));
    for (name, trace, form) in [
        ("cluster", twitter, "twitter"),
        ("IBMObjectStoreTrace000Part0", ibm, "ibm"),
        ("hm_0.csv", msr, "msr"),
        ("Financial1.spc", spc, "spc"),
        ("wiki.tr", tr, "webcachesim"),
    ] {
        let document = simulated(name, &trace, 1024);
        assert_eq!((figures(&document), document.input.lasts_s), ([4, 4, 2], Some(63)), "{name}");
        assert_eq!((document.input.format.as_str(), document.input.malformed), (form, 0), "{name}");
    }
}

#[test]
fn sizes_that_could_be_other_numbers_are_no_sizes_and_the_lines_are_shown() {
    let document =
        simulated("a.csv", "object;size\na;1.000\nb;700.5\nc;5\nd;2.500\ne;x\nf;-1\ng;1,5\n", 1024);
    assert_eq!((figures(&document), document.input.malformed), ([1, 1, 1], 6));
    let lines: Vec<_> = document.input.malformed_lines.iter().map(|line| (line.line, &*line.text)).collect();
    assert_eq!(lines, [(2, "a;1.000"), (3, "b;700.5"), (5, "d;2.500"), (6, "e;x"), (7, "f;-1")]);
    let notes = document.notes.join("\n");
    assert!(notes.contains("(`a;1.000`): `size` is no whole number of bytes"), "{notes}");
    assert!(notes.contains("(`e;x`): `size` is no number."), "{notes}");
    let said = refused("a.csv", b"id,size\na,1.000\n");
    assert!(said.contains("could not be read: 1") && said.contains("no whole number"), "{said}");
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let said = refused("trace.txt", b"1 1416 16575\n2 1695 279012\n");
    assert!(said.contains("`1 1416 16575`") && said.contains("no access log"), "{said}");
    let said = refused("a.csv", b"# time, op, kind, id, size\n1,1,A,300\n");
    assert!(said.contains("5 columns, and lines have 4"), "{said}");
    for name in ["a.csv", "access.log"] {
        let said = refused(name, b"\xff\xfet\0i\0m\0e\0\n\0");
        assert!(said.contains("UTF-16"), "{said}");
    }
    let said = refused("a.csv", b"key,op,size\na,STORE,5\n");
    assert!(said.contains("STORE 1") && said.contains("op[get:NAME]"), "{said}");
}

#[test]
fn empty_objects_are_counted_and_it_is_said_that_another_program_leaves_them_out() {
    let trace = "id,size\na,0\nb,5\na,0\n";
    let document = simulated("a.csv", trace, 1024);
    assert_eq!(figures(&document), [3, 2, 2]);
    let notes = document.notes.join("\n");
    assert!(
        notes.contains("2 requests are for objects without a body") && notes.contains("cachesim"),
        "{notes}"
    );
}

#[test]
fn traces_of_several_forms_are_read_one_after_the_other_and_sizes_must_be_in_all() {
    let files: [(&str, &[u8]); 2] = [("a.csv", b"id,size\na,5\n"), ("b.csv", b"id\na\nb\n")];
    let read = read_files(&files, None).unwrap();
    assert!(!read.requests.has_sizes && read.requests.read() == 3);
    assert!(read.notes.join("\n").contains("Not all of the traces have sizes"), "{:?}", read.notes);
}

#[test]
fn blocks_of_clouds_are_read_by_the_words_of_their_publishers() {
    // An object is what begins at an address of a volume; sizes are in bytes here, and in sectors there.
    let alibaba = "0,R,4096,4096,1577808000000626\n1,R,4096,4096,1577808000000627\n0,R,4096,4096,1577808001000626\n0,W,0,512,1577808001000627\n";
    let document = simulated("io_traces.csv", alibaba, 8192);
    assert_eq!(figures(&document), [3, 2, 2]);
    assert_eq!(document.input.lasts_s, Some(1));
    let tencent =
        "1538323200,8,8,0,1063\n1538323201,8,8,0,1064\n1538323202,8,8,0,1063\n1538323203,0,1,1,1063\n";
    let document = simulated("2018-10-01-00", tencent, 8192);
    assert_eq!(figures(&document), [3, 2, 2]);
    assert_eq!(document.input.footprint_bytes, 8192);
    let text = document.notes.concat();
    assert!(text.contains("Other operations are not among them: write 1"), "{text}");
}

#[test]
fn of_a_photo_each_size_is_an_object_and_errors_are_no_requests() {
    let id = "085abb02a06850729bb01479466420d9e102d325";
    let trace: String =
        [("164604", "5 m", 12903), ("164605", "5 l", 700), ("164606", "5 m", 12903), ("164607", "7 m", 0)]
            .map(|(time, kind, bytes)| format!("20160201{time} {id} {kind} {bytes} 1 PHONE 1\n"))
            .concat();
    let document = simulated("photo.txt", &trace, 20_000);
    assert_eq!(figures(&document), [3, 2, 2]);
    assert_eq!(document.input.lasts_s, Some(2));
}

#[test]
fn traces_of_virtual_disks_are_known_by_their_first_records() {
    let record = |command: u16, block: u64| {
        let (version, rest) = (2u16 << 8, [1u32, 4096, 1].map(u32::to_le_bytes).concat());
        let times = [block, 1_000_000 * block, 9].map(u64::to_le_bytes).concat();
        [&command.to_le_bytes()[..], &version.to_le_bytes(), &rest, &times].concat()
    };
    let trace = [record(0x28, 1), record(0x2a, 1), record(0x28, 2), record(0x28, 1)].concat();
    let read = read_files(&[("w01.bin", &trace)], None).unwrap();
    assert_eq!((read.form.as_str(), read.requests.read(), read.malformed), ("vscsi", 3, 0));
    assert_eq!(read.other_operations[0].name, "write");
    let vscsi = Form::parse("vscsi").unwrap();
    let error = read_files(&[("a.bin", &[0; 100])], Some(&vscsi)).unwrap_err();
    assert!(matches!(error, SizeError::Vscsi { .. }), "{error}");
}
