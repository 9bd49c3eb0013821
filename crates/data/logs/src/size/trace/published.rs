//! Published traces whose lines name no columns, by what their lines look like.

use super::number::{decimal, digits};
use super::operation;
use super::separator::Separator;

/// The form of a published trace.
#[derive(Debug)]
pub struct PublishedTrace {
    pub name: &'static str,
    aliases: &'static [&'static str],
    /// Names of its columns, for each number of them that there is.
    columns: &'static [&'static str],
    separator: Separator,
    /// The columns that every line has; none: all of them.
    least: Option<usize>,
    /// Lines have further columns, whose number is not known.
    pub has_more: bool,
    /// Predicate on the fields of a line.
    fits: fn(&[&[u8]]) -> bool,
    /// Predicate on the name of the file, where such lines could be those of something else.
    is_called: fn(&str) -> bool,
}

const COMMA: Separator = Separator::Byte(b',');
const TAB: Separator = Separator::Byte(b'\t');

pub static PUBLISHED_TRACES: [PublishedTrace; 11] = [
    PublishedTrace {
        name: "twitter",
        aliases: &["twemcache"],
        columns: &["timestamp (s),key,key size,value size,client id,op,ttl (s)"],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: is_twitter,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "ibm",
        aliases: &["ibm-object-store"],
        columns: &["timestamp (ms),op,object,size (bytes),range start,range end"],
        separator: Separator::Blanks,
        least: Some(3),
        has_more: false,
        fits: |fields| matches!(fields, [time, op, _, ..] if digits(time).is_some() && op.starts_with(b"REST.")),
        is_called: |_| true,
    },
    PublishedTrace {
        name: "cachelib",
        aliases: &["meta-kv"],
        columns: &[
            "key,op,size,op_count,key_size",
            "key,op,size,op_count,key_size,ttl",
            "op_time,key,key_size,op,op_count,size,cache_hits,ttl",
            "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase",
        ],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: is_cachelib,
        is_called: |file| file.contains("kvcache"),
    },
    PublishedTrace {
        name: "meta-cdn",
        aliases: &[],
        columns: &[
            "timestamp,cacheKey,OpType[get:1],objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,\
                    SamplingRate,cache_hit,item_value,RequestHandler,cdn_content_type_id,vip_type",
        ],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: |_| false,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "wikimedia",
        aliases: &["wikipedia"],
        columns: &[
            "relative_unix,hashed_host_path_query,response_size,time_firstbyte",
            "relative_unix,hashed_path_query,image_type,response_size,time_firstbyte",
            "hashed_host_and_path,uri_query,content_type,response_size,time_firstbyte,x_cache",
        ],
        separator: TAB,
        least: None,
        has_more: false,
        fits: |_| false,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "msr",
        aliases: &["msr-cambridge"],
        columns: &["timestamp (filetime),hostname,disk number,op,offset,size (bytes),response time"],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: is_msr,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "spc",
        aliases: &[],
        columns: &["asu,lba,size (bytes),op,timestamp (s)"],
        separator: COMMA,
        least: Some(5),
        has_more: true,
        fits: is_spc,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "alibaba-block",
        aliases: &["alibaba"],
        columns: &["device_id,opcode,offset,length,timestamp (us)"],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: is_alibaba_block,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "tencent-cbs",
        aliases: &["tencent-block"],
        columns: &["timestamp (s),offset,size (sectors),iotype[read:0,write:1],volumeid"],
        separator: COMMA,
        least: None,
        has_more: false,
        fits: is_tencent_cbs,
        // Files are called after their hour.
        is_called: |file| file.starts_with("2018-10-") || file.contains("tencent"),
    },
    PublishedTrace {
        name: "tencent-photo",
        aliases: &["qqphoto"],
        // Of a photo there are several sizes, each an object of its own; other formats than 0 and 5 are errors.
        columns: &[
            "timestamp,photo id,op[get:0,get:5],photo id,return size (bytes),cache hit,terminal type,response time (ms)",
        ],
        separator: Separator::Blanks,
        least: None,
        has_more: false,
        fits: is_tencent_photo,
        is_called: |_| true,
    },
    PublishedTrace {
        name: "webcachesim",
        aliases: &["lrb"],
        columns: &["time,id,size"],
        separator: Separator::Blanks,
        least: Some(3),
        has_more: true,
        fits: is_webcachesim,
        is_called: |file| file.ends_with(".tr"),
    },
];

impl PublishedTrace {
    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PUBLISHED_TRACES.iter().find(|known| known.name == name || known.aliases.contains(&name))
    }

    /// The one that a line is of; `file`: its name, in lower case and without what says how it is compressed.
    pub fn of_line(line: &[u8], file: &str) -> Option<&'static Self> {
        PUBLISHED_TRACES.iter().find(|known| (known.is_called)(file) && known.fits(line))
    }

    /// True if a line could be one of it.
    pub fn fits(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = self.separator.fields(line).collect();
        (self.fits)(&fields.iter().map(|field| &**field).collect::<Vec<_>>())
    }

    pub fn separator(&self) -> Separator {
        self.separator
    }

    /// Names of the columns of lines that have `number` of them.
    pub fn columns(&self, number: usize) -> Vec<String> {
        let names: Vec<Vec<String>> = self.columns.iter().map(|columns| COMMA.names(columns)).collect();
        names.iter().find(|columns| columns.len() == number).or(names.first()).cloned().unwrap_or_default()
    }

    /// The columns that every line has, of so many that are named.
    pub fn least(&self, named: usize) -> usize {
        self.least.unwrap_or(named)
    }
}

fn are_digits<'f>(fields: impl IntoIterator<Item = &'f &'f [u8]>) -> bool {
    fields.into_iter().all(|field| digits(field).is_some())
}

fn is_operation(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(operation::is_known)
}

fn is_twitter(fields: &[&[u8]]) -> bool {
    match fields {
        [time, _, key_size, value_size, client, operation, ttl] => {
            // Methods of HTTP are in capitals.
            let is_lower = operation.iter().all(u8::is_ascii_lowercase);
            are_digits([time, key_size, value_size, client, ttl]) && is_lower && is_operation(operation)
        }
        _ => false,
    }
}

fn is_cachelib(fields: &[&[u8]]) -> bool {
    match fields {
        [_, operation, size, count, key_size] | [_, operation, size, count, key_size, _] => {
            // Those of disks are single letters.
            operation.len() > 1 && is_operation(operation) && are_digits([size, count, key_size])
        }
        [time, _, key_size, operation, count, size, hits, _, ..] => {
            is_operation(operation) && are_digits([time, key_size, count, size, hits])
        }
        _ => false,
    }
}

fn is_msr(fields: &[&[u8]]) -> bool {
    match fields {
        [time, _, disk, kind, offset, size, response] => {
            are_digits([time, disk, offset, size, response])
                && time.len() >= 17
                && [&b"read"[..], b"write"].iter().any(|word| kind.eq_ignore_ascii_case(word))
        }
        _ => false,
    }
}

fn is_alibaba_block(fields: &[&[u8]]) -> bool {
    match fields {
        [device, b"R" | b"W", offset, length, time] => {
            are_digits([device, offset, length, time]) && time.len() == 16
        }
        _ => false,
    }
}

fn is_tencent_cbs(fields: &[&[u8]]) -> bool {
    match fields {
        [time, offset, size, b"0" | b"1", volume] => {
            are_digits([time, offset, size, volume]) && time.len() == 10
        }
        _ => false,
    }
}

fn is_tencent_photo(fields: &[&[u8]]) -> bool {
    match fields {
        [time, photo, format, size, sent, b"0" | b"1", b"PHONE" | b"PC", response] => {
            are_digits([time, format, sent, response])
                && time.len() == 14
                && photo.iter().all(u8::is_ascii_hexdigit)
                && matches!(size, [b'l' | b'a' | b'o' | b'm' | b'c' | b'b'])
        }
        _ => false,
    }
}

fn is_webcachesim(fields: &[&[u8]]) -> bool {
    match fields {
        [time, _, size, features @ ..] => {
            let are_numbers = [time].into_iter().chain(features).all(|field| decimal(field, false).is_some());
            are_numbers && digits(size).is_some()
        }
        _ => false,
    }
}

fn is_spc(fields: &[&[u8]]) -> bool {
    match fields {
        [asu, lba, size, kind, time, ..] => {
            are_digits([asu, lba, size])
                && [&b"r"[..], b"w"].iter().any(|word| kind.eq_ignore_ascii_case(word))
                && decimal(time, false).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_its_lines_and_no_line_is_of_two() {
        for (line, file, name) in [
            ("0,q:q:1:8WTfjZU14ee,17,213,4,get,0", "cluster052", Some("twitter")),
            ("1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056", "part0", Some("ibm")),
            ("1221974 REST.DELETE.OBJECT 39d177fb735ac5df", "part0", Some("ibm")),
            ("1668757755,SET,82,1,40", "kvcache.csv", Some("cachelib")),
            ("1668757755,GET,200,1,40", "export.csv", None),
            ("0,/a,17,213,4,GET,0", "export.csv", None),
            ("177706276,GET,9,1,79,0", "kvcache.csv", Some("cachelib")),
            ("564726470,798057486,83,GET,1,62,1,0", "kvcache.csv", Some("cachelib")),
            (
                "604038471,82131353f9ddc8c6,48,GET_LEASE,1,87,1,0,366387042,3003229276",
                "kvcache",
                Some("cachelib"),
            ),
            ("128166372003061629,hm,0,Write,7014912,4096,26", "hm_0.csv", Some("msr")),
            ("0,20941264,8192,W,0.551706", "Financial1.spc", Some("spc")),
            ("0,R,126703644672,4096,1577808000000626", "io_traces.csv", Some("alibaba-block")),
            ("1538323200,12910952,128,0,1063", "2018-10-01-00", Some("tencent-cbs")),
            ("1538323200,12910952,128,0,1063", "export.csv", None),
            (
                "20160201164604 085abb02a06850729bb01479466420d9e102d325 5 m 12903 1 PHONE 1",
                "photo",
                Some("tencent-photo"),
            ),
            ("1 1416 16575", "wiki.tr", Some("webcachesim")),
            ("1 1416 16575 0 3", "wiki.tr", Some("webcachesim")),
            ("1 1416 16575", "wiki.txt", None),
            ("time,id,size", "a.csv", None),
            ("1,a,5", "a.csv", None),
        ] {
            let fitting = PUBLISHED_TRACES.iter().filter(|known| known.fits(line.as_bytes())).count();
            assert!(fitting <= 1, "{line}");
            assert_eq!(
                PublishedTrace::of_line(line.as_bytes(), file).map(|known| known.name),
                name,
                "{line}"
            );
        }
        assert_eq!(PublishedTrace::named("lrb").map(|known| known.name), Some("webcachesim"));
        assert_eq!(PublishedTrace::named("cachelib").unwrap().columns(8)[3], "op");
    }
}
