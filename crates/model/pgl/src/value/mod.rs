//! Values of the interpreter. Assignment copies; sharing behind that is not visible.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use assay_workload::model::{Distribution, ExpiryBase, PopularityLaw, ScriptExpr};

use crate::ast::Block;
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;

pub(crate) mod address;
pub(crate) mod array;
mod display;
pub(crate) mod pattern;

use address::AddrRange;
use array::{Array, Item};
use pattern::Pattern;

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Not set, or `undef()`.
    Undefined,
    /// Result of an error that was reported; operations on it report nothing more.
    Broken,
    Bool(bool),
    Int(i32),
    Float(f64),
    /// A real number written with `%`, not divided: 5 for `5%`.
    Percent(f64),
    /// Seconds.
    Time(f64),
    /// Bytes.
    Size(f64),
    /// Per second.
    Rate(f64),
    /// Bytes per second.
    Bandwidth(f64),
    /// Seconds since 1970.
    Date(f64),
    Text(Rc<Pattern>),
    Address(Rc<AddrRange>),
    Regex(Rc<str>),
    Id(u32),
    Random(Rc<Random>),
    Popularity(PopularityLaw),
    /// `now`, `lmt` or `nmt`, before it qualifies a distribution.
    Moment(ExpiryBase),
    Array(Rc<Array>),
    Record(Rc<Record>),
    /// A script, which is compiled after the program has run.
    Code(Rc<ScriptCode>),
    /// In a script: a number known only while a phase runs.
    RuntimeNumber(Rc<RuntimeNumber>),
    /// In a script: a request for statistics, before it is assigned.
    SampleRequest {
        /// Of the phase so far, rather than of the sample of the enclosing `every`.
        whole_phase: bool,
    },
    /// In a script: taken statistics, by number.
    Sample(u16),
}

/// A script, with the scopes around it besides that of the program.
#[derive(Debug)]
pub(crate) struct ScriptCode {
    pub block: Rc<Block>,
    pub frames: Vec<Frame>,
}

#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// None for a type that does not exist.
    pub ty: Option<Ty>,
    pub value: Value,
    pub declared: Span,
    /// Set when the variable is read as a whole.
    pub read: Cell<bool>,
    /// In a script: the value depends on a measured condition.
    pub uncertain: bool,
}

/// The scope of a block: fields of the object that it fills, and variables that it declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub object: Option<Rc<Record>>,
    pub names: HashMap<Rc<str>, Variable>,
}

/// A number known only while a phase runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuntimeNumber {
    pub expr: ScriptExpr,
    pub base: Base,
    /// Unit of a plain number, if it is known.
    pub unit: Option<NumberUnit>,
}

/// Units of the statistics that are plain numbers, as in Web Polygraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberUnit {
    Percents,
    Milliseconds,
    Bytes,
    PerSecond,
}

/// A distribution, in the base unit of its type: seconds, bytes or per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Random {
    pub kind: Base,
    pub law: Distribution,
    pub moment: Option<ExpiryBase>,
}

#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub kind: RecordKind,
    slots: Vec<Slot>,
}

/// The value of a field, with the place of its assignment.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub value: Value,
    pub span: Span,
}

impl Record {
    /// An object with no field set.
    pub fn new(kind: RecordKind) -> Self {
        let empty = Slot { value: Value::Undefined, span: Span::default() };
        Self { kind, slots: vec![empty; kind.fields().count()] }
    }

    /// The field at an index of its type's table.
    pub fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    pub fn slot_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.slots.get_mut(index)
    }

    /// A field by name; none if it is not set.
    pub fn get(&self, field: &str) -> Option<&Slot> {
        let found = self.kind.field(field);
        debug_assert!(found.is_some(), "{} has no field {field}", self.kind.name());
        self.slots.get(found?.0).filter(|slot| !matches!(slot.value, Value::Undefined))
    }

    /// The fields that are set.
    pub fn set_fields(&self) -> impl Iterator<Item = (&'static crate::schema::Field, &Slot)> {
        self.kind.fields().zip(&self.slots).filter(|(_, slot)| !matches!(slot.value, Value::Undefined))
    }

    fn depth(&self) -> u16 {
        self.slots.iter().map(|slot| slot.value.depth()).max().unwrap_or(0).saturating_add(1)
    }

    /// A hash that is equal for equal objects.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.kind.name().hash(&mut hasher);
        self.slots.iter().for_each(|slot| slot.value.hash_into(&mut hasher));
        hasher.finish()
    }
}

impl Value {
    /// A real number, with `%` or without.
    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Float(x) => Some(*x),
            Value::Percent(x) => Some(x / 100.0),
            _ => None,
        }
    }

    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(Rc::new(Pattern::plain(text)))
    }

    pub fn array(items: Vec<Item>) -> Value {
        Value::Array(Rc::new(Array::new(items)))
    }

    /// An array of values without probabilities, all from one place of the source.
    pub fn list(values: impl IntoIterator<Item = Value>, span: Span) -> Value {
        Value::array(values.into_iter().map(|value| Item::plain(value, span)).collect())
    }

    /// Number of items that the value is in a flattened array.
    pub fn count(&self) -> u64 {
        match self {
            Value::Array(array) => array.count(),
            Value::Address(range) => range.count(),
            Value::Text(pattern) => pattern.count(),
            _ => 1,
        }
    }

    /// The value at an index below `count()` of a range; any other value itself.
    pub fn nth(&self, index: u64) -> Value {
        match self {
            Value::Address(range) => Value::Address(Rc::new(range.nth(index))),
            Value::Text(pattern) => Value::Text(Rc::new(pattern.nth(index))),
            other => other.clone(),
        }
    }

    /// Nesting depth of arrays and objects.
    pub fn depth(&self) -> u16 {
        match self {
            Value::Array(array) => array.depth(),
            Value::Record(record) => record.depth(),
            _ => 0,
        }
    }

    /// Name of the type in messages.
    pub fn type_name(&self) -> String {
        match self {
            Value::Undefined => "an undefined value".into(),
            Value::Broken => "a broken value".into(),
            Value::Date(_) => "a date".into(),
            Value::Moment(_) => "a qualifier".into(),
            Value::RuntimeNumber(number) => format!("a measured {}", number.base.name()),
            Value::Random(random) => format!("{}_distr", random.kind.name()),
            Value::Array(array) => {
                let first = array.items().first().map(|item| item.value.type_name());
                first.map_or("an empty array".into(), |of| {
                    format!("array of {}", of.trim_start_matches("array of "))
                })
            }
            Value::Address(range) if range.count() > 1 => "range of addresses".into(),
            Value::Text(text) if text.count() > 1 => "range of strings".into(),
            other => other.ty().map_or("value".into(), |ty| ty.name()),
        }
    }

    /// The declared type of such a value; none for arrays and values that no variable can hold.
    pub fn ty(&self) -> Option<Ty> {
        let base = match self {
            Value::Bool(_) => Base::Bool,
            Value::Int(_) => Base::Int,
            Value::Float(_) | Value::Percent(_) => Base::Float,
            Value::Time(_) | Value::Date(_) => Base::Time,
            Value::Size(_) => Base::Size,
            Value::Rate(_) => Base::Rate,
            Value::Bandwidth(_) => Base::Bandwidth,
            Value::Text(_) => Base::Text,
            Value::Address(_) => Base::Address,
            Value::Regex(_) => Base::Regex,
            Value::Id(_) => Base::Id,
            Value::Popularity(_) => Base::Popularity,
            Value::Record(record) => Base::Record(record.kind),
            Value::Code(_) => Base::Code,
            Value::Random(random) => return Some(Ty::random(random.kind)),
            Value::RuntimeNumber(number) => number.base,
            Value::SampleRequest { .. } | Value::Sample(_) => Base::Record(RecordKind::StatSample),
            Value::Undefined | Value::Broken | Value::Moment(_) | Value::Array(_) => return None,
        };
        Some(Ty::one(base))
    }

    /// True for a value, or an array with an item, whose error was reported.
    pub fn is_broken(&self) -> bool {
        match self {
            Value::Broken => true,
            Value::Array(array) => array.items().iter().any(|item| matches!(item.value, Value::Broken)),
            _ => false,
        }
    }

    /// Hashes the value. Equal values have equal hashes, however they are written.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        // `5%` and `0.05` are the same number.
        if let Value::Percent(x) = self {
            return Value::Float(x / 100.0).hash_into(hasher);
        }
        std::mem::discriminant(self).hash(hasher);
        match self {
            Value::Undefined | Value::Broken | Value::Percent(_) => {}
            Value::Bool(x) => x.hash(hasher),
            Value::Int(x) => x.hash(hasher),
            Value::Float(x)
            | Value::Time(x)
            | Value::Size(x)
            | Value::Rate(x)
            | Value::Bandwidth(x)
            | Value::Date(x) => x.to_bits().hash(hasher),
            Value::Text(x) => x.hash(hasher),
            Value::Address(x) => x.hash(hasher),
            Value::Regex(x) => x.hash(hasher),
            Value::Id(x) => x.hash(hasher),
            Value::Random(x) => {
                (x.kind, x.moment.map(|moment| moment as u8)).hash(hasher);
                hash_distribution(&x.law, hasher);
            }
            Value::Popularity(x) => format!("{x:?}").hash(hasher),
            Value::Moment(x) => format!("{x:?}").hash(hasher),
            Value::Array(x) => x.fingerprint().hash(hasher),
            Value::Record(x) => x.fingerprint().hash(hasher),
            Value::Code(x) => (Rc::as_ptr(x) as usize).hash(hasher),
            Value::RuntimeNumber(x) => format!("{x:?}").hash(hasher),
            Value::SampleRequest { whole_phase } => whole_phase.hash(hasher),
            Value::Sample(x) => x.hash(hasher),
        }
    }

    /// A hash that is equal for equal values.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash_into(&mut hasher);
        hasher.finish()
    }
}

fn hash_distribution(law: &Distribution, hasher: &mut impl Hasher) {
    std::mem::discriminant(law).hash(hasher);
    let mut add = |numbers: &[f64]| numbers.iter().for_each(|x| x.to_bits().hash(hasher));
    match law {
        Distribution::Constant(x)
        | Distribution::Exponential { mean: x }
        | Distribution::Zipf { n: x }
        | Distribution::Sequence { first: x } => add(&[*x]),
        Distribution::Uniform { low, high } => add(&[*low, *high]),
        Distribution::Normal { mean, deviation } | Distribution::LogNormal { mean, deviation } => {
            add(&[*mean, *deviation]);
        }
        Distribution::Table(bins) => bins.iter().for_each(|bin| add(&[bin.low, bin.high, bin.weight])),
    }
}
