//! Content types, life cycles and client behaviour.

use super::types::{
    ADDRESS, Base, FLOAT, FLOATS, INT, INTS, RecordKind, RecordType, SIZE, SIZES, Support, TEXT, TEXTS,
    TIMES, Ty, full, ignored, object, partial,
};

const CONTENTS: Ty = object(RecordKind::Content).array();
const FIXED_NAMES: &str = "names stay as they are";

pub(super) const CONTENT: RecordType = RecordType {
    name: "Content",
    support: Support::Full,
    groups: &[&[
        full("kind", TEXT),
        full("mime", object(RecordKind::Mime)),
        full("size", SIZES),
        full("obj_life_cycle", object(RecordKind::ObjLifeCycle)),
        full("cachable", FLOAT),
        full("checksum", FLOAT),
        full("unique", FLOAT),
        full("may_contain", CONTENTS),
        full("embedded_obj_cnt", INTS),
        ignored("choice_space", INT, "nothing; it has had no meaning for long"),
        full("client_behavior", object(RecordKind::ClientBehavior)),
        partial(
            "generator",
            TEXT,
            "as in Web Polygraph, \"random_text\" unless it says \"random_data\"; \"words\" is Assay's own: text that \
             codings make about three times smaller. Pages are text, whatever it says",
        ),
        partial(
            "content_db",
            TEXT,
            "any file, or directory of files, each an entry; not the format of polygraph-cdb",
        ),
        full("document_root", TEXT),
        full("inject_object", TEXT),
        full("inject_db", TEXT),
        full("inject_gap", SIZES),
        full("infect_prob", FLOAT),
        full("encodings", TEXTS),
        full("mime_headers", object(RecordKind::MimeHeader).array()),
    ]],
};

pub(super) const MIME: RecordType = RecordType {
    name: "Mime",
    support: Support::Full,
    groups: &[&[full("type", TEXT), full("extensions", TEXTS), full("prefixes", TEXTS)]],
};

pub(super) const MIME_HEADER: RecordType = RecordType {
    name: "MimeHeader",
    support: Support::Full,
    groups: &[&[full("name", TEXT), full("value", TEXT)]],
};

pub(super) const OBJ_LIFE_CYCLE: RecordType = RecordType {
    name: "ObjLifeCycle",
    support: Support::Full,
    groups: &[&[
        ignored("birthday", TIMES, "an object's first change falls anywhere in its cycle"),
        full("length", TIMES),
        full("variance", FLOAT),
        full("with_lmt", FLOAT),
        full("expires", TIMES.array()),
    ]],
};

pub(super) const CLIENT_BEHAVIOR: RecordType = RecordType {
    name: "ClientBehavior",
    support: Support::Full,
    groups: &[&[
        full("pop_model", object(RecordKind::PopModel)),
        full("recurrence", FLOAT),
        full("req_types", TEXTS),
        full("req_methods", TEXTS),
        full("ranges", object(RecordKind::Range).array()),
    ]],
};

pub(super) const POP_MODEL: RecordType = RecordType {
    name: "PopModel",
    support: Support::Full,
    groups: &[&[
        partial(
            "pop_distr",
            Ty::one(Base::Popularity),
            "`popTable(...)` and `table(...)` of ages from 0 (the newest) to 1 are Assay's own",
        ),
        full("hot_set_frac", FLOAT),
        full("hot_set_prob", FLOAT),
        full("bhr_discrimination", FLOAT),
    ]],
};

pub(super) const DYNAMIC_NAME: RecordType = RecordType {
    name: "DynamicName",
    support: Support::Ignored(FIXED_NAMES),
    groups: &[&[ignored("name", ADDRESS, FIXED_NAMES), ignored("new_prob", FLOAT, FIXED_NAMES)]],
};

pub(super) const RANGE: RecordType = RecordType { name: "Range", support: Support::Full, groups: &[] };

pub(super) const SINGLE_RANGE: RecordType = RecordType {
    name: "SingleRange",
    support: Support::Full,
    groups: &[&[
        full("first_byte_pos_absolute", SIZE),
        full("first_byte_pos_relative", FLOAT),
        full("last_byte_pos_absolute", SIZE),
        full("last_byte_pos_relative", FLOAT),
        full("suffix_length_absolute", SIZE),
        full("suffix_length_relative", FLOAT),
    ]],
};

pub(super) const MULTI_RANGE: RecordType = RecordType {
    name: "MultiRange",
    support: Support::Full,
    groups: &[&[
        full("first_range_start_absolute", SIZES),
        full("first_range_start_relative", FLOATS),
        full("range_length_absolute", SIZES),
        full("range_length_relative", FLOATS),
        full("range_count", INTS),
    ]],
};
