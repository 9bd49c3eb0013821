//! What a Parquet file claims to hold, looked at before the library that decodes it believes that.
//!
//! A few bytes can claim any number of rows or of list elements, and the library takes time or memory for each. What is damaged in another
//! way is left to the library, which says what.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::thrift::{self, Wrong};
use crate::{FileError, ROWS_PER_GROUP};

/// Behind the footer: its length in four bytes, and the magic number.
const TAIL_BYTES: u64 = 8;
/// So much of a page is read at first to find where its head ends, and about as much at most: heads have some hundred bytes.
const HEAD_BYTES: std::ops::RangeInclusive<usize> = 512..=1 << 20;
/// In the head of a page (`PageHeader` in parquet.thrift): the bytes of what follows it.
const COMPRESSED_PAGE_SIZE: i64 = 3;

/// Refuses a footer that claims what cannot be there.
pub fn check_footer(path: &Path, file: &File) -> Result<(), FileError> {
    let cannot = |error| FileError::read(path, error);
    let length = file.metadata().map_err(cannot)?.len();
    let mut tail = [0; TAIL_BYTES as usize];
    let Some(tail_at) = length.checked_sub(TAIL_BYTES) else { return Ok(()) };
    file.read_exact_at(&mut tail, tail_at).map_err(cannot)?;
    let [a, b, c, d, ..] = tail;
    let footer_bytes = u32::from_le_bytes([a, b, c, d]);
    let Some(footer_at) = tail_at.checked_sub(u64::from(footer_bytes)) else { return Ok(()) };
    let mut footer = vec![0; footer_bytes as usize];
    file.read_exact_at(&mut footer, footer_at).map_err(cannot)?;
    check(path, thrift::walk(&footer, &mut |_, _| ()))
}

/// Refuses a group of rows that claims more of them than Assay writes, or one of whose pages claims what cannot be there.
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
        let mut page_bytes = -1;
        let mut take = |field, value| {
            if field == COMPRESSED_PAGE_SIZE {
                page_bytes = value;
            }
        };
        let head = walk_at(file, at, &mut take).map_err(|error| FileError::read(path, error))?;
        check(path, head)?;
        // Where the head is damaged in another way, nothing behind it will be found.
        let (Ok(head_bytes), Ok(page_bytes)) = (head, u64::try_from(page_bytes)) else { return Ok(()) };
        at = at.saturating_add(head_bytes as u64).saturating_add(page_bytes);
    }
    Ok(())
}

/// Walks through the struct at `at`. The end of its column does not bound it: the library reads on, too.
fn walk_at(file: &File, at: u64, take: &mut dyn FnMut(i64, i64)) -> io::Result<Result<usize, Wrong>> {
    let mut room = *HEAD_BYTES.start();
    loop {
        let mut bytes = vec![0; room];
        let read = read_up_to(file, &mut bytes, at)?;
        let walked = thrift::walk(&bytes[..read], take);
        // A list may have more elements than the bytes read so far, and no more than there are.
        if walked.is_ok() || read < room {
            return Ok(walked);
        }
        if room >= *HEAD_BYTES.end() {
            // What lies behind could claim anything.
            return Ok(Err(Wrong::Impossible));
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

fn check(path: &Path, walked: Result<usize, Wrong>) -> Result<(), FileError> {
    match walked {
        Err(Wrong::Impossible) => {
            let detail = "it claims a list with more elements than it has bytes, or a structure that Parquet does not have, or that is \
                          far too large";
            Err(FileError::damaged(path, detail))
        }
        Ok(_) | Err(Wrong::Truncated) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use crate::{Cell, Column, Kind, Table, TableWriter, columns_of};

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
        let footer = [MANY.repeat(1000), vec![0]].concat();
        let length = (footer.len() as u32).to_le_bytes();
        std::fs::write(&path, [b"PAR1", &footer[..], &length, b"PAR1"].concat()).unwrap();
        assert!(refused(&path).contains("more elements than it has bytes"), "{}", refused(&path));
        assert!(columns_of(&path).is_err_and(|error| error.to_string().contains("t.parquet")));
    }

    #[test]
    fn a_page_that_claims_more_elements_than_it_has_bytes_is_not_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create(&path, vec![Column::new("number", Kind::Uint, "")]).unwrap();
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
