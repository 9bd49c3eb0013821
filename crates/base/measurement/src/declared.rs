//! Declaration of measurements: once, with their names, their meanings, how they merge and what reports them.
//!
//! [`counts!`](macro@crate::counts) declares counters, which add up, and [`series!`](macro@crate::series) what is measured in an
//! interval. Both generate the struct, with each field's meaning as its documentation, and [`Described::FIELDS`]. The tables
//! of the run directory, the metrics and the reference pages iterate over it, and the JSON document takes the structs that
//! [`counts!`](macro@crate::counts) generates for it, so that a declaration is the only place to change.
//!
//! A field's unit is part of its name (`_bytes`, `_us`, `_ms`, `_ns`), as columns are named.

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Uint,
    /// An unsigned number, or nothing.
    OptionalUint,
    /// A number with a fraction.
    Float,
    Text,
}

/// A value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Uint(u64),
    /// A number with a fraction.
    Float(f64),
    Text(&'a str),
    None,
}

impl Value<'_> {
    /// The unsigned number; none: it is something else.
    pub fn uint(self) -> Option<u64> {
        if let Value::Uint(number) = self { Some(number) } else { None }
    }
}

/// A type that a declared field can have.
pub trait Measure {
    /// Type of its column.
    const KIND: Kind;

    fn value(&self) -> Value<'_>;

    /// Takes a value; false: it is of another kind, or out of range.
    fn set(&mut self, value: Value<'_>) -> bool;
}

macro_rules! measure_uint {
    ($($type:ty),+) => { $(
        impl Measure for $type {
            const KIND: Kind = Kind::Uint;

            fn value(&self) -> Value<'_> {
                Value::Uint((*self).into())
            }

            fn set(&mut self, value: Value<'_>) -> bool {
                value.uint().and_then(|number| number.try_into().ok()).map(|number| *self = number).is_some()
            }
        }

        impl Measure for Option<$type> {
            const KIND: Kind = Kind::OptionalUint;

            fn value(&self) -> Value<'_> {
                self.map_or(Value::None, |number| Value::Uint(number.into()))
            }

            fn set(&mut self, value: Value<'_>) -> bool {
                if value == Value::None {
                    *self = None;
                    return true;
                }
                self.get_or_insert_default().set(value)
            }
        }
    )+ };
}

measure_uint!(u64, u32, u16);

impl Measure for f64 {
    const KIND: Kind = Kind::Float;

    fn value(&self) -> Value<'_> {
        Value::Float(*self)
    }

    fn set(&mut self, value: Value<'_>) -> bool {
        if let Value::Float(number) = value {
            *self = number;
        }
        matches!(value, Value::Float(_))
    }
}

impl Measure for String {
    const KIND: Kind = Kind::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }

    fn set(&mut self, value: Value<'_>) -> bool {
        if let Value::Text(text) = value {
            text.clone_into(self);
        }
        matches!(value, Value::Text(_))
    }
}

/// Difference of each number since `before`.
pub fn since<T: Described>(now: &T, before: &T) -> T {
    let mut added = T::default();
    for field in T::FIELDS {
        if let (Value::Uint(now), Value::Uint(before)) = ((field.get)(now), (field.get)(before)) {
            (field.set)(&mut added, Value::Uint(now.saturating_sub(before)));
        }
    }
    added
}

/// Unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldUnit {
    Count,
    Bytes,
    Microseconds,
    Milliseconds,
    Nanoseconds,
}

/// A field of `T`.
#[derive(Debug)]
pub struct DeclaredField<T: 'static> {
    /// Name of the field, of its column and of its field in the journal.
    pub name: &'static str,
    /// Meaning: a phrase, without a capital letter or a full stop.
    pub meaning: &'static str,
    pub kind: Kind,
    /// The metric that shows it while a run goes on; none: no metric does.
    pub metric: Option<Metric>,
    pub get: fn(&T) -> Value<'_>,
    /// Sets it; false: the value is of another kind, or out of range.
    pub set: fn(&mut T, Value<'_>) -> bool,
}

impl<T> DeclaredField<T> {
    pub fn unit(&self) -> FieldUnit {
        match self.name.rsplit('_').next() {
            _ if self.name.split('_').any(|part| part == "bytes") => FieldUnit::Bytes,
            Some("us") => FieldUnit::Microseconds,
            Some("ms") => FieldUnit::Milliseconds,
            Some("ns") => FieldUnit::Nanoseconds,
            _ => FieldUnit::Count,
        }
    }
}

/// A type that was declared.
pub trait Described: Default + 'static {
    /// Fields in the order of their columns.
    const FIELDS: &'static [DeclaredField<Self>];
}

/// Names and values of all numbers.
pub fn named<T: Described>(item: &T) -> impl Iterator<Item = (&'static str, u64)> {
    T::FIELDS.iter().filter_map(|field| Some((field.name, (field.get)(item).uint()?)))
}

/// Adds to the number of this name; false: there is no such number.
pub fn add<T: Described>(item: &mut T, name: &str, more: u64) -> bool {
    let field = T::FIELDS.iter().find(|field| field.name == name);
    field.is_some_and(|field| {
        let sum = (field.get)(item).uint().map(|number| number.saturating_add(more));
        sum.is_some_and(|sum| (field.set)(item, Value::Uint(sum)))
    })
}

/// Addition to a value of the same type.
pub trait Merge {
    fn merge(&mut self, from: &Self);
}

impl<K: Ord + Clone> Merge for std::collections::BTreeMap<K, u64> {
    fn merge(&mut self, from: &Self) {
        for (key, count) in from {
            *self.entry(key.clone()).or_default() += count;
        }
    }
}

/// A metric, or one series of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name without `assay_`, unit and `_total`.
    pub stem: &'static str,
    /// True: it goes up and down; else it only grows.
    pub gauge: bool,
    /// Name and value of the label that tells it from others of the metric.
    pub label: Option<(&'static str, &'static str)>,
    /// Meaning of the metric, a sentence; none: that of its field.
    pub help: Option<&'static str>,
}

impl Metric {
    pub const fn counter(stem: &'static str) -> Self {
        Self { stem, gauge: false, label: None, help: None }
    }

    pub const fn gauge(stem: &'static str) -> Self {
        Self { stem, gauge: true, label: None, help: None }
    }

    /// One of several series of a metric, which means `help`.
    pub const fn with(self, name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self { label: Some((name, value)), help: Some(help), ..self }
    }
}

/// Declares counters: numbers that add up when intervals, phases or processes are put together.
///
/// ```
/// assay_measurement::counts! {
///     /// What a till took.
///     pub struct Till {
///         customers: "customers who paid", metric Metric::counter("customers");
///         receipts: wrapping "sum of the digests of all receipts";
///     }
/// }
/// use assay_measurement::declared::Metric;
///
/// let mut sum = Till { customers: 1, receipts: 2 };
/// sum.merge(&Till { customers: 1, receipts: u64::MAX });
/// assert_eq!(sum, Till { customers: 2, receipts: 1 });
/// ```
///
/// After the meaning may stand, in this order: `metric`, an expression; `json NAME`, its field in the struct that
/// `json STRUCT` after the declaration generates, for the JSON document; `special GROUP HEAD`, its column in the table of
/// requests that are more than a plain GET, and its field in the struct that `special STRUCT` generates. What stands in
/// `beside` is merged, and is in no table of fields.
#[macro_export]
macro_rules! counts {
    (
        $(#[$attr:meta])* pub struct $name:ident $fields:tt
        $(beside $beside:tt)?
        $(json $json:ident)?
        $(special $special:ident)?
    ) => {
        $crate::counts!(@struct { $(#[$attr])* } $name $fields $($beside)?);
        $($crate::counts!(@json $json, $name $fields);)?
        $($crate::counts!(@special $special, $name $fields);)?
    };
    (
        @struct { $($attr:tt)* } $name:ident {
            $(
                $field:ident: $($rule:ident)? $meaning:literal
                $(, metric $metric:expr)?
                $(, json $(#[$json_attr:meta])* $json:ident)?
                $(, special $group:literal $head:literal)?;
            )+
        } $({ $($(#[$beside_attr:meta])* $beside:ident: $type:ty,)* })?
    ) => {
        $($attr)*
        #[derive(Debug, Clone, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: u64,)+
            $($($(#[$beside_attr])* pub $beside: $type,)*)?
        }

        impl $name {
            pub fn merge(&mut self, from: &Self) {
                $($crate::counts!(@add self.$field, from.$field $(, $rule)?);)+
                $($($crate::declared::Merge::merge(&mut self.$beside, &from.$beside);)*)?
            }
        }

        impl $crate::declared::Merge for $name {
            fn merge(&mut self, from: &Self) {
                $name::merge(self, from);
            }
        }

        $crate::series!(@fields $name $($field $meaning u64 [$($metric)?])+);
    };
    (@add $into:expr, $from:expr) => { $into = $into.saturating_add($from) };
    (@add $into:expr, $from:expr, wrapping) => { $into = $into.wrapping_add($from) };
    (
        @json $figures:ident, $name:ident {
            $(
                $field:ident: $($rule:ident)? $meaning:literal
                $(, metric $metric:expr)?
                $(, json $(#[$json_attr:meta])* $json:ident)?
                $(, special $group:literal $head:literal)?;
            )+
        }
    ) => {
        #[doc = concat!("What the JSON document says of [`", stringify!($name), "`].")]
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        pub struct $figures {
            $($(#[doc = $meaning] $(#[$json_attr])* pub $json: u64,)?)+
        }

        impl From<&$name> for $figures {
            fn from(counts: &$name) -> Self {
                Self { $($($json: counts.$field,)?)+ }
            }
        }
    };
    (
        @special $special:ident, $name:ident {
            $(
                $field:ident: $($rule:ident)? $meaning:literal
                $(, metric $metric:expr)?
                $(, json $(#[$json_attr:meta])* $json:ident)?
                $(, special $group:literal $head:literal)?;
            )+
        }
    ) => {
        #[doc = concat!("Requests that are more than a plain GET, of [`", stringify!($name), "`].")]
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        #[serde(default)]
        pub struct $special {
            $($(#[doc = $meaning] pub $field: $crate::counts!(@u64 $head),)?)+
        }

        impl $special {
            /// The group and the head of each column of the table, and what it shows.
            pub const COLUMNS: &'static [(&'static str, &'static str, fn(&Self) -> u64)] =
                &[$($(($group, $head, |special| special.$field),)?)+];
        }

        impl From<&$name> for $special {
            fn from(counts: &$name) -> Self {
                Self { $($($field: $crate::counts!(@first counts.$field, $head),)?)+ }
            }
        }
    };
    // Both repeat for those fields that have a column.
    (@u64 $head:literal) => { u64 };
    (@first $value:expr, $head:literal) => { $value };
}

/// Declares what is measured of an interval, or at an instant: a struct whose fields are columns.
///
/// ```
/// assay_measurement::series! {
///     /// What a till did in an interval.
///     #[derive(Eq)]
///     pub struct TillInterval {
///         cashier: String = "who sat there";
///         customers: u64 = "customers who paid";
///         sheep: Option<u32> = "sheep among them; null: nobody looked";
///     }
/// }
/// use assay_measurement::declared::{Described, Value};
///
/// let one = TillInterval { customers: 3, ..TillInterval::default() };
/// let values: Vec<Value> = TillInterval::FIELDS.iter().map(|field| (field.get)(&one)).collect();
/// assert_eq!(values, [Value::Text(""), Value::Uint(3), Value::None]);
/// ```
///
/// After the meaning may stand `metric` and an expression. What stands in `beside` is in other tables.
#[macro_export]
macro_rules! series {
    (
        $(#[$attr:meta])* pub struct $name:ident {
            $($field:ident: $type:ty = $meaning:literal $(, metric $metric:expr)?;)+
        } $(beside { $($(#[$beside_attr:meta])* $beside:ident: $beside_type:ty,)* })?
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: $type,)+
            $($($(#[$beside_attr])* pub $beside: $beside_type,)*)?
        }

        $crate::series!(@fields $name $($field $meaning $type [$($metric)?])+);
    };
    (@fields $name:ident $($field:ident $meaning:literal $type:ty [$($metric:expr)?])+) => {
        impl $crate::declared::Described for $name {
            const FIELDS: &'static [$crate::declared::DeclaredField<Self>] = &[$($crate::declared::DeclaredField {
                name: stringify!($field),
                meaning: $meaning,
                kind: <$type as $crate::declared::Measure>::KIND,
                metric: $crate::series!(@option $($metric)?),
                get: |item| $crate::declared::Measure::value(&item.$field),
                set: |item, value| $crate::declared::Measure::set(&mut item.$field, value),
            }),+];
        }
    };
    (@option) => { None };
    (@option $metric:expr) => { Some($metric) };
}
