//! Checks of the sizes that a Parquet file claims, before the library that decodes it trusts them.
//!
//! A few bytes can claim any number of rows or of list elements, and the library takes time or memory for each; most of all for the path
//! to each column and for nested columns, into which it recurses without a bound. Other damage is left to the library, which names it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::table::error::Claim;
use crate::table::format::{footer_admits, page_admits};
use crate::table::thrift::{self, ThriftError, Visitor};
use crate::table::{FileError, ROWS_PER_GROUP};

/// Bytes behind the footer: its length (four bytes) and the magic number.
const TAIL_BYTES: u64 = 8;
/// Bytes of a page that are read to find the end of its head: at first, and about at most. Heads have some hundred bytes.
const HEAD_BYTES: std::ops::RangeInclusive<usize> = 512..=1 << 20;
/// Upper bound on the bytes of a footer. A column in a row group takes a hundred or more, so that a table of forty columns has a
/// billion rows by then.
const MAX_FOOTER_BYTES: u64 = 64 << 20;
/// Upper bound on the entries of a footer: columns, row groups, columns in these, texts about the file. The library takes 400
/// bytes for each, and the file as little as three. Tables of forty columns reach it at 800 million rows.
const MAX_ENTRIES: u64 = 512 << 10;
/// Upper bound on columns. The longest rows of Assay have fewer than a quarter of that.
const MAX_COLUMNS: u64 = 1024;
/// Depth of entries in nested lists: a row group, and a column in it.
const LISTS_OF_ENTRIES: usize = 2;

/// Field numbers in parquet.thrift: the columns in `FileMetaData`, with the table itself before them, and the columns within one
/// in `SchemaElement`.
const SCHEMA: i64 = 2;
const NUM_CHILDREN: i64 = 5;
/// Field number in `PageHeader`: bytes of the page behind its head.
const COMPRESSED_PAGE_SIZE: i64 = 3;

/// Sizes that a footer claims.
#[derive(Default)]
struct FooterClaims {
    entries: u64,
    /// Elements of the schema so far.
    elements: u64,
    /// Columns of the table itself.
    columns: i64,
    /// Some column is nested.
    is_nested: bool,
}

impl Visitor for FooterClaims {
    fn integer(&mut self, path: &[i64], value: i64) {
        match path {
            [SCHEMA, NUM_CHILDREN] if self.elements == 1 => self.columns = value,
            [SCHEMA, NUM_CHILDREN] => self.is_nested |= value != 0,
            _ => {}
        }
    }

    fn admits(&mut self, path: &[i64], kind: u8) -> bool {
        footer_admits(path, kind)
    }

    fn element(&mut self, path: &[i64]) {
        self.elements += u64::from(path == [SCHEMA]);
        self.entries += u64::from(path.len() <= LISTS_OF_ENTRIES);
    }
}

/// Length of a page according to its head; none: not stated.
#[derive(Default)]
struct PageHead {
    page_bytes: Option<i64>,
}

impl Visitor for PageHead {
    fn integer(&mut self, path: &[i64], value: i64) {
        if path == [COMPRESSED_PAGE_SIZE] {
            self.page_bytes = Some(value);
        }
    }

    fn admits(&mut self, path: &[i64], kind: u8) -> bool {
        page_admits(path, kind)
    }
}

/// Refuses a footer that claims more than a table of Assay has.
pub fn check_footer(path: &Path, file: &File) -> Result<(), FileError> {
    let cannot = |error| FileError::read(path, error);
    let length = file.metadata().map_err(cannot)?.len();
    let mut tail = [0; TAIL_BYTES as usize];
    let Some(tail_at) = length.checked_sub(TAIL_BYTES) else { return Ok(()) };
    file.read_exact_at(&mut tail, tail_at).map_err(cannot)?;
    let [a, b, c, d, ..] = tail;
    let footer_bytes = u32::from_le_bytes([a, b, c, d]);
    let Some(footer_at) = tail_at.checked_sub(u64::from(footer_bytes)) else { return Ok(()) };
    Claim::Bytes.check(path, footer_bytes.into(), MAX_FOOTER_BYTES)?;
    let mut footer = vec![0; footer_bytes as usize];
    file.read_exact_at(&mut footer, footer_at).map_err(cannot)?;
    check_claims(path, &footer)
}

fn check_claims(path: &Path, footer: &[u8]) -> Result<(), FileError> {
    let mut claimed = FooterClaims::default();
    check(path, thrift::walk(footer, &mut claimed))?;
    // A footer that ends too soon is decoded up to there, too. The first element is the table itself.
    let columns = claimed.elements.saturating_sub(1).max(claimed.columns.unsigned_abs());
    Claim::Columns.check(path, columns, MAX_COLUMNS)?;
    Claim::Entries.check(path, claimed.entries, MAX_ENTRIES)?;
    match claimed.is_nested {
        true => Err(FileError::damaged(path, "it has columns within columns, which no table of Assay has")),
        false => Ok(()),
    }
}

/// Refuses a row group that claims more rows than Assay writes, or has a page with an impossible head.
pub fn check_group(path: &Path, file: &File, group: &RowGroupMetaData) -> Result<(), FileError> {
    let rows = group.num_rows();
    if !(0..=ROWS_PER_GROUP as i64).contains(&rows) {
        let detail =
            format!("a group of rows claims {rows} of them, where Assay writes up to {ROWS_PER_GROUP}");
        return Err(FileError::damaged(path, detail));
    }
    group.columns().iter().try_for_each(|column| check_pages(path, file, group, column))
}

fn check_pages(
    path: &Path,
    file: &File,
    group: &RowGroupMetaData,
    column: &ColumnChunkMetaData,
) -> Result<(), FileError> {
    let begin = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (Ok(mut at), Ok(bytes)) = (u64::try_from(begin), u64::try_from(column.compressed_size())) else {
        return Ok(());
    };
    let end = at.saturating_add(bytes);
    // Each page has a row, but for a dictionary.
    let mut pages_left = group.num_rows().max(0) + 1;
    while at < end {
        if pages_left == 0 {
            return Err(FileError::damaged(path, "a column has more pages than rows"));
        }
        pages_left -= 1;
        let mut head = PageHead::default();
        let walked = walk_at(file, at, &mut head).map_err(|error| FileError::read(path, error))?;
        check(path, walked)?;
        // Where the head is damaged in another way, nothing behind it will be found.
        let page_bytes = head.page_bytes.and_then(|bytes| u64::try_from(bytes).ok());
        let (Ok(head_bytes), Some(page_bytes)) = (walked, page_bytes) else { return Ok(()) };
        at = at.saturating_add(head_bytes as u64).saturating_add(page_bytes);
    }
    Ok(())
}

/// Walks through the struct at `at`. The end of its column does not bound it: the library reads on, too.
fn walk_at(file: &File, at: u64, head: &mut PageHead) -> io::Result<Result<usize, ThriftError>> {
    let mut room = *HEAD_BYTES.start();
    loop {
        let mut bytes = vec![0; room];
        let read = read_up_to(file, &mut bytes, at)?;
        let walked = thrift::walk(&bytes[..read], head);
        // A list may have more elements than the bytes read so far, and no more than there are.
        if walked.is_ok() || read < room {
            return Ok(walked);
        }
        if room >= *HEAD_BYTES.end() {
            // What lies behind could claim anything.
            return Ok(Err(ThriftError::Impossible));
        }
        room *= 8;
    }
}

fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

fn check(path: &Path, walked: Result<usize, ThriftError>) -> Result<(), FileError> {
    match walked {
        Err(ThriftError::Impossible) => {
            let detail = "it claims a list with more elements than it has bytes, or a structure that Parquet does not have, or that is \
                          far too large";
            Err(FileError::damaged(path, detail))
        }
        Ok(_) | Err(ThriftError::Truncated) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use crate::table::{Cell, Column, ColumnKind, Table, TableWriter, columns_of};

    /// A field of a struct: a list of 2<sup>31</sup> booleans.
    const MANY: [u8; 7] = [0x19, 0xf1, 0x80, 0x80, 0x80, 0x80, 0x08];

    fn refused(path: &Path) -> String {
        Table::read(path, &["number"]).err().expect("it is damaged").to_string()
    }

    /// Where the footer of a file begins.
    fn footer_at(file: &[u8]) -> usize {
        let length = file[file.len() - 8..].first_chunk().unwrap();
        file.len() - 8 - u32::from_le_bytes(*length) as usize
    }

    #[test]
    fn a_footer_that_claims_more_elements_than_it_has_bytes_is_not_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        // In the library, each of these thousand lists takes seconds.
        // They are fields that it does not know, behind one with the number 100.
        let footer = [&[0x05, 0xc8, 0x01, 0][..], &MANY.repeat(1000), &[0]].concat();
        let length = (footer.len() as u32).to_le_bytes();
        std::fs::write(&path, [b"PAR1", &footer[..], &length, b"PAR1"].concat()).unwrap();
        assert!(refused(&path).contains("more elements than it has bytes"), "{}", refused(&path));
        assert!(columns_of(&path).is_err_and(|error| error.to_string().contains("t.parquet")));
    }

    /// A field behind the one before it, or the first: `1` to `15` more, and its type.
    fn field(more: u8, kind: u8) -> u8 {
        more << 4 | kind
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn integer(value: i64) -> Vec<u8> {
        varint((value << 1 ^ value >> 63).cast_unsigned())
    }

    /// A list of structs.
    fn list(elements: &[Vec<u8>]) -> Vec<u8> {
        [&[0xfc][..], &varint(elements.len() as u64), &elements.concat()].concat()
    }

    /// `1: i32` INT64 unless there are columns in it, `3: i32` REQUIRED, `4: binary` its name, `5: i32` the number of columns in it.
    fn element(children: i64) -> Vec<u8> {
        let name = [field(1, 8), 1, b'c'];
        match children {
            0 => [&[field(1, 5), 4, field(2, 5), 0][..], &name, &[0]].concat(),
            _ => [&[field(3, 5), 0][..], &name, &[field(1, 5)], &integer(children), &[0]].concat(),
        }
    }

    /// The footer of a file with these elements of its schema, and groups of rows, and nothing else.
    fn footer(schema: &[Vec<u8>], groups: &[Vec<u8>]) -> Vec<u8> {
        let (schema, groups) = (list(schema), list(groups));
        [&[field(1, 5), 2, field(1, 9)][..], &schema, &[field(1, 6), 0, field(1, 9)], &groups, &[0]].concat()
    }

    /// A table with nothing but a footer.
    fn file(footer: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let length = (footer.len() as u32).to_le_bytes();
        std::fs::write(file.path(), [b"PAR1", footer, &length, b"PAR1"].concat()).unwrap();
        file
    }

    fn flat(columns: usize) -> Vec<Vec<u8>> {
        [vec![element(columns as i64)], vec![element(0); columns]].concat()
    }

    /// A group of rows: `1: list` of columns, whose only `2: i64` is all that the walk needs.
    fn group(columns: usize) -> Vec<u8> {
        let column = vec![field(2, 6), 0, 0];
        [&[field(1, 9)][..], &list(&vec![column; columns]), &[field(1, 6), 0, field(1, 6), 0, 0]].concat()
    }

    #[test]
    fn a_footer_has_so_many_bytes_columns_and_entries_and_is_not_decoded_with_more() {
        let path = Path::new("t.parquet");
        let told = |footer: &[u8]| match check_claims(path, footer) {
            Err(FileError::Footer { claim, seen, .. }) => Some((claim, seen)),
            other => {
                other.unwrap();
                None
            }
        };
        let most = MAX_COLUMNS as usize;
        assert_eq!(told(&footer(&flat(most), &[])), None);
        assert_eq!(told(&footer(&flat(most + 1), &[])), Some((Claim::Columns, MAX_COLUMNS + 1)));
        // As many, and the table says that it has one.
        let more = [vec![element(1)], vec![element(0); most + 1]].concat();
        assert_eq!(told(&footer(&more, &[])), Some((Claim::Columns, MAX_COLUMNS + 1)));
        // None of them is there: room is made for them before that is seen.
        let claimed = footer(&[element(i32::MAX.into())], &[]);
        assert_eq!(told(&claimed), Some((Claim::Columns, i32::MAX as u64)));
        let negative = footer(&[element(i32::MIN.into())], &[]);
        assert_eq!(told(&negative), Some((Claim::Columns, 1 << 31)));
        // Two elements of the schema, and two entries for each group.
        let groups = (MAX_ENTRIES as usize - 2) / 2;
        assert_eq!(told(&footer(&flat(1), &vec![group(1); groups])), None);
        let (many, seen) = (footer(&flat(1), &vec![group(1); groups + 1]), MAX_ENTRIES + 2);
        assert_eq!(told(&many), Some((Claim::Entries, seen)));
        let said = refused(file(&many).path());
        assert!(said.contains(&format!("{seen} entries")) && said.contains("524288 at most"), "{said}");
        // It is told before anything of it is read: the file has no more than its end.
        let long = tempfile::NamedTempFile::new().unwrap();
        let bytes = MAX_FOOTER_BYTES + 1;
        long.as_file().set_len(bytes).unwrap();
        let tail = [&(bytes as u32).to_le_bytes()[..], b"PAR1"].concat();
        long.as_file().write_all_at(&tail, bytes).unwrap();
        assert!(refused(long.path()).contains("67108865 bytes"), "{}", refused(long.path()));
        assert!(columns_of(long.path()).is_err_and(|error| error.to_string().contains("67108865 bytes")));
    }

    /// A field of each type, by the types of the protocol, and bytes that are one of that type.
    const FIELDS: [(u8, &[u8]); 11] = [
        (1, &[]),
        (3, &[0]),
        (4, &[0]),
        (5, &[0]),
        (6, &[0]),
        (7, &[0; 8]),
        (8, &[0]),
        (9, &[0]),
        (10, &[0]),
        (11, &[0]),
        (12, &[0]),
    ];

    #[test]
    fn a_field_that_the_library_knows_has_no_other_type_than_the_library_takes_it_for() {
        // `2: binary` of 28 bytes; to the library a list of one element, whose `4: binary` is its name and whose `5: i32` is 2^31-1.
        let hidden =
            [&[0x28, 0x1c, 0x48, 0x01, 0x63, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f][..], &[0; 20]].concat();
        assert_eq!(hidden.len(), 31);
        assert!(refused(file(&hidden).path()).contains("structure that Parquet does not have"));
        for field in 1..=7u8 {
            let admitted: Vec<u8> = FIELDS
                .into_iter()
                .filter(|(kind, bytes)| {
                    let footer = [&[field << 4 | kind][..], bytes, &[0]].concat();
                    check_claims(Path::new("t"), &footer).is_ok()
                })
                .map(|(kind, _)| kind)
                .collect();
            let expected: &[u8] = match field {
                1 | 3 => &[4, 5, 6],
                6 => &[8],
                _ => &[9],
            };
            assert_eq!(admitted, expected, "{field}");
        }
        // The union of logical types: STRING as a binary, INTEGER with a width of 32 bits; both as they are.
        let logical = |bytes: &[u8]| {
            let element = [&[field(4, 8), 1, b'c', field(6, 12)][..], bytes, &[0, 0]].concat();
            check_claims(Path::new("t"), &footer(&[element], &[]))
        };
        assert!(
            logical(&[field(1, 8), 0]).is_err()
                && logical(&[field(10, 12), field(1, 5), 8, 0x11, 0]).is_err()
        );
        logical(&[field(1, 12), 0]).unwrap();
        logical(&[field(10, 12), field(1, 3), 64, field(1, 1), 0]).unwrap();
        // A column in a group of rows: `3: struct`, its `5: i64`, and these as what they are not.
        let column = |bytes: &[u8]| {
            let columns = list(&[[bytes, &[0]].concat()]);
            let group = [&[field(1, 9)][..], &columns, &[0]].concat();
            check_claims(Path::new("t"), &footer(&flat(1), &[group]))
        };
        column(&[field(3, 12), field(5, 6), 0, 0]).unwrap();
        assert!(
            column(&[field(3, 8), 1, 0]).is_err() && column(&[field(3, 12), field(5, 8), 1, 0, 0]).is_err()
        );
    }

    #[test]
    fn columns_within_columns_are_not_decoded() {
        // A chain of columns, each within the one before it, would end the process: the library goes down into each.
        let chain = [vec![element(1); MAX_COLUMNS as usize - 1], vec![element(0)]].concat();
        for schema in [chain, vec![element(1), element(1), element(0)], vec![element(1), element(-1)]] {
            let said = refused(file(&footer(&schema, &[])).path());
            assert!(said.contains("columns within columns"), "{said}");
        }
        assert!(check_claims(Path::new("t"), &footer(&flat(3), &[])).is_ok());
    }

    #[test]
    fn a_page_that_claims_more_elements_than_it_has_bytes_is_not_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer =
            TableWriter::create(&path, vec![Column::new("number", ColumnKind::Uint, "")]).unwrap();
        for number in 0..100_000 {
            writer.push(&[Cell::Uint(number * number)]).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(Table::read(&path, &["number"]).unwrap().rows(), 100_000);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let column = footer.row_group(1).column(0);
        let page_at = column.dictionary_page_offset().unwrap_or(column.data_page_offset()) as u64;
        let mut whole = [0; MANY.len()];
        file.read_exact_at(&mut whole, page_at).unwrap();
        file.write_all_at(&MANY, page_at).unwrap();
        assert!(refused(&path).contains("more elements than it has bytes"), "{}", refused(&path));
        // The same, behind a text that is longer than any head: `1: binary`, 3 MB of it.
        let after = [&[0x18, 0x80, 0x80, 0xb8, 0x01][..], &vec![b'x'; 3 << 20], &MANY].concat();
        let length = file.metadata().unwrap().len();
        let footer_and_all = std::fs::read(&path).unwrap();
        file.write_all_at(&after, page_at).unwrap();
        file.write_all_at(&footer_and_all[footer_at(&footer_and_all)..], page_at + after.len() as u64)
            .unwrap();
        assert!(length < file.metadata().unwrap().len());
        assert!(refused(&path).contains("far too large"), "{}", refused(&path));
        std::fs::write(&path, footer_and_all).unwrap();
        // Heads that say nothing of a page end the search for others.
        file.write_all_at(&[0; MANY.len()], page_at).unwrap();
        assert!(refused(&path).contains("t.parquet"));
        // `1: i32 0; 3: i32 0`: pages without bytes, and more of them than rows.
        let bytes = column.compressed_size() as usize;
        file.write_all_at(&[0x15, 0, 0x25, 0, 0].repeat(bytes / 5), page_at).unwrap();
        assert!(bytes / 5 > 34_465);
        assert!(refused(&path).contains("more pages than rows"), "{}", refused(&path));
    }
}
