//! Content types, how they change, and how robots ask for them.

use super::{
    ADDRESS, Base, Effect, FLOAT, FLOATS, INT, INTS, RecordKind, RecordType, SIZE, SIZES, TEXT, TEXTS, TIMES,
    Ty, full, none, object, part,
};

const CONTENTS: Ty = object(RecordKind::Content).array();
/// For all that fills bodies from files.
const OWN_BODIES: &str = "bodies are the engine's own random bytes";
/// For all that asks for parts of objects.
const NO_RANGES: &str = "no ranges are requested";

pub(super) const CONTENT: RecordType = RecordType {
    name: "Content",
    effect: Effect::Full,
    groups: &[&[
        full("kind", TEXT),
        full("mime", object(RecordKind::Mime)),
        full("size", SIZES),
        full("obj_life_cycle", object(RecordKind::ObjLifeCycle)),
        full("cachable", FLOAT),
        none("checksum", FLOAT, "no Content-MD5 is sent; every byte of every body is compared"),
        none("unique", FLOAT, "the body of every object is unique"),
        full("may_contain", CONTENTS),
        full("embedded_obj_cnt", INTS),
        none("choice_space", INT, "nothing; it has had no meaning for long"),
        full("client_behavior", object(RecordKind::ClientBehavior)),
        none("generator", TEXT, OWN_BODIES),
        none("content_db", TEXT, OWN_BODIES),
        none("document_root", TEXT, OWN_BODIES),
        none("inject_object", TEXT, "nothing is injected into bodies"),
        none("inject_db", TEXT, "nothing is injected into bodies"),
        none("inject_gap", SIZES, "nothing is injected into bodies"),
        none("infect_prob", FLOAT, "nothing is injected into bodies"),
        none("encodings", TEXTS, "bodies are sent as they are"),
        none("mime_headers", object(RecordKind::MimeHeader).array(), "no header is added"),
    ]],
};

pub(super) const MIME: RecordType = RecordType {
    name: "Mime",
    effect: Effect::Full,
    groups: &[&[full("type", TEXT), full("extensions", TEXTS), full("prefixes", TEXTS)]],
};

pub(super) const MIME_HEADER: RecordType = RecordType {
    name: "MimeHeader",
    effect: Effect::None("no header is added"),
    groups: &[&[none("name", TEXT, "no header is added"), none("value", TEXT, "no header is added")]],
};

pub(super) const OBJ_LIFE_CYCLE: RecordType = RecordType {
    name: "ObjLifeCycle",
    effect: Effect::Full,
    groups: &[&[
        none("birthday", TIMES, "an object's first change falls anywhere in its cycle"),
        full("length", TIMES),
        full("variance", FLOAT),
        full("with_lmt", FLOAT),
        full("expires", TIMES.array()),
    ]],
};

pub(super) const CLIENT_BEHAVIOR: RecordType = RecordType {
    name: "ClientBehavior",
    effect: Effect::Full,
    groups: &[&[
        full("pop_model", object(RecordKind::PopModel)),
        full("recurrence", FLOAT),
        part("req_types", TEXTS, "\"Range\" and \"Upload\" are sent as \"Basic\""),
        part("req_methods", TEXTS, "\"PUT\" is sent as \"GET\""),
        none("ranges", object(RecordKind::Range).array(), NO_RANGES),
    ]],
};

pub(super) const POP_MODEL: RecordType = RecordType {
    name: "PopModel",
    effect: Effect::Full,
    groups: &[&[
        full("pop_distr", Ty::one(Base::Popularity)),
        full("hot_set_frac", FLOAT),
        full("hot_set_prob", FLOAT),
        none("bhr_discrimination", FLOAT, "revisits do not prefer small objects"),
    ]],
};

pub(super) const DYNAMIC_NAME: RecordType = RecordType {
    name: "DynamicName",
    effect: Effect::None("names stay as they are"),
    groups: &[&[
        none("name", ADDRESS, "names stay as they are"),
        none("new_prob", FLOAT, "names stay as they are"),
    ]],
};

pub(super) const RANGE: RecordType =
    RecordType { name: "Range", effect: Effect::None(NO_RANGES), groups: &[] };

pub(super) const SINGLE_RANGE: RecordType = RecordType {
    name: "SingleRange",
    effect: Effect::None(NO_RANGES),
    groups: &[&[
        none("first_byte_pos_absolute", SIZE, NO_RANGES),
        none("first_byte_pos_relative", FLOAT, NO_RANGES),
        none("last_byte_pos_absolute", SIZE, NO_RANGES),
        none("last_byte_pos_relative", FLOAT, NO_RANGES),
        none("suffix_length_absolute", SIZE, NO_RANGES),
        none("suffix_length_relative", FLOAT, NO_RANGES),
    ]],
};

pub(super) const MULTI_RANGE: RecordType = RecordType {
    name: "MultiRange",
    effect: Effect::None(NO_RANGES),
    groups: &[&[
        none("first_range_start_absolute", SIZES, NO_RANGES),
        none("first_range_start_relative", FLOATS, NO_RANGES),
        none("range_length_absolute", SIZES, NO_RANGES),
        none("range_length_relative", FLOATS, NO_RANGES),
        none("range_count", INTS, NO_RANGES),
    ]],
};
