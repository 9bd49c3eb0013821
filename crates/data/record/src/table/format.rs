//! Types of the fields that the library reads, in the footer of a Parquet file and in the head of a page.
//!
//! The library reads a field that it knows as what it must be, whatever type the field says that it has, and skips one that it does not know by
//! that type. A footer with another type for a known field would be two different ones to the library and to the walk ([`crate::table::thrift`]).
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use crate::table::thrift::{BINARY, BYTE, DOUBLE, INTEGERS, LIST, STRUCT};

/// Whether a field of a footer may have a type. A path is the number of each field on the way.
pub fn footer_admits(path: &[i64], kind: u8) -> bool {
    match path {
        // FileMetaData
        [1 | 3] => is_integer(kind),
        [2 | 4 | 5 | 7] => kind == LIST,
        [6] => kind == BINARY,
        [2, field @ ..] => element_admits(field, kind),
        [4, field @ ..] => group_admits(field, kind),
        // KeyValue
        [5, 1 | 2] => kind == BINARY,
        // ColumnOrder, whose members are structs without fields.
        [7, _] => kind == STRUCT,
        _ => true,
    }
}

/// SchemaElement.
fn element_admits(path: &[i64], kind: u8) -> bool {
    match path {
        [1..=3 | 5..=9] => is_integer(kind),
        [4] => kind == BINARY,
        // LogicalType, whose members are structs.
        [10] | [10, _] => kind == STRUCT,
        // DecimalType
        [10, 5, 1 | 2] => is_integer(kind),
        // TimeType and TimestampType, with a TimeUnit, whose members are structs without fields.
        [10, 7 | 8, 2] | [10, 7 | 8, 2, _] => kind == STRUCT,
        // IntType and VariantType
        [10, 10 | 16, 1] => kind == BYTE,
        // GeometryType and GeographyType
        [10, 17 | 18, 1] => kind == BINARY,
        [10, 18, 2] => is_integer(kind),
        _ => true,
    }
}

/// RowGroup.
fn group_admits(path: &[i64], kind: u8) -> bool {
    match path {
        [1 | 4] => kind == LIST,
        [2 | 3 | 5 | 7] => is_integer(kind),
        // SortingColumn
        [4, 1] => is_integer(kind),
        // ColumnChunk
        [1, 1] => kind == BINARY,
        [1, 2 | 4..=7] => is_integer(kind),
        [1, 3] => kind == STRUCT,
        [1, 3, field @ ..] => column_admits(field, kind),
        _ => true,
    }
}

/// ColumnMetaData.
fn column_admits(path: &[i64], kind: u8) -> bool {
    match path {
        [1 | 4..=7 | 9..=11 | 14 | 15] => is_integer(kind),
        [2 | 3 | 8 | 13] => kind == LIST,
        [12 | 16 | 17] => kind == STRUCT,
        [12, field] => statistics_admit(*field, kind),
        // PageEncodingStats
        [13, 1..=3] => is_integer(kind),
        // SizeStatistics
        [16, 1] => is_integer(kind),
        [16, 2 | 3] => kind == LIST,
        // GeospatialStatistics, with a BoundingBox
        [17, 1] => kind == STRUCT,
        [17, 2] => kind == LIST,
        [17, 1, 1..=8] => kind == DOUBLE,
        _ => true,
    }
}

fn statistics_admit(field: i64, kind: u8) -> bool {
    match field {
        1 | 2 | 5 | 6 => kind == BINARY,
        3 | 4 | 9 => is_integer(kind),
        _ => true,
    }
}

/// The same for the head of a page: PageHeader.
pub fn page_admits(path: &[i64], kind: u8) -> bool {
    match path {
        [1..=4] => is_integer(kind),
        [5..=8] => kind == STRUCT,
        // DataPageHeader
        [5, 1..=4] => is_integer(kind),
        // DictionaryPageHeader
        [7, 1 | 2] => is_integer(kind),
        // DataPageHeaderV2
        [8, 1..=6] => is_integer(kind),
        [5, 5] | [8, 8] => kind == STRUCT,
        [5, 5, field] | [8, 8, field] => statistics_admit(*field, kind),
        _ => true,
    }
}

/// Integers of every width have the same encoding.
fn is_integer(kind: u8) -> bool {
    INTEGERS.contains(&kind)
}
