//! Implicit conversions between types.

use std::rc::Rc;

use assay_workload::model::{Distribution, PopularityLaw};

use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::array::{Array, Item, Leaves};
use crate::value::{Random, Record, Value};

/// A value that has no conversion to the wanted type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeMismatch {
    pub expected: String,
    pub found: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The item of an array that does not fit.
    pub item: Option<Span>,
}

pub(crate) fn convert(value: Value, ty: Ty) -> Result<Value, TypeMismatch> {
    if matches!(value, Value::Undefined | Value::Broken) {
        return Ok(value);
    }
    if ty.arrays > 0 {
        return to_array(value, ty);
    }
    if ty.random {
        return to_random(value, ty);
    }
    to_single(value, ty)
}

fn mismatch(value: &Value, ty: Ty, help: Option<String>) -> TypeMismatch {
    TypeMismatch { expected: ty.name(), found: value.type_name(), help, item: None }
}

fn to_array(value: Value, ty: Ty) -> Result<Value, TypeMismatch> {
    let item_ty = Ty { arrays: 0, ..ty };
    match value {
        // No item needs a conversion, so the array is shared rather than copied.
        Value::Array(array) if array.leaves() == Leaves::None || array.leaves() == Leaves::Of(item_ty) => {
            Ok(Value::Array(array))
        }
        Value::Array(array) => Ok(Value::Array(Rc::new(items_to(&array, item_ty)?))),
        Value::Address(_) if item_ty == Ty::one(Base::Address) => {
            Ok(Value::list([value], Default::default()))
        }
        Value::Text(_) if item_ty == Ty::one(Base::Text) && value.count() > 1 => {
            Ok(Value::list([value], Default::default()))
        }
        other => {
            let fits = convert(other.clone(), item_ty).is_ok();
            Err(mismatch(&other, ty, fits.then(|| "an array of one item is written `[ item ]`".to_owned())))
        }
    }
}

/// Converts every flattened item; ranges stay ranges.
fn items_to(array: &Array, item_ty: Ty) -> Result<Array, TypeMismatch> {
    let convert_item = |item: &Item| {
        let value = match &item.value {
            Value::Array(inner) => Value::Array(Rc::new(items_to(inner, item_ty)?)),
            Value::Address(_) if item_ty == Ty::one(Base::Address) => item.value.clone(),
            Value::Text(_) if item_ty == Ty::one(Base::Text) => item.value.clone(),
            other => {
                let item_span = Some(item.span).filter(|span| *span != Span::default());
                convert(other.clone(), item_ty)
                    .map_err(|why| TypeMismatch { item: why.item.or(item_span), ..why })?
            }
        };
        Ok(Item { value, ..item.clone() })
    };
    array.items().iter().map(convert_item).collect::<Result<_, _>>().map(Array::new)
}

fn to_random(value: Value, ty: Ty) -> Result<Value, TypeMismatch> {
    match value {
        Value::Random(random) if random.kind == ty.base => Ok(Value::Random(random)),
        Value::Random(random) if random.kind == Base::Int && ty.base == Base::Float => {
            Ok(Value::Random(Rc::new(Random { kind: Base::Float, ..(*random).clone() })))
        }
        // Zero needs no unit, and no `const()`.
        Value::Int(0) => {
            let law = Distribution::Constant(0.0);
            Ok(Value::Random(Rc::new(Random { kind: ty.base, law, moment: None })))
        }
        Value::Random(random) if matches!(random.kind, Base::Int | Base::Float) => {
            let unit = match ty.base {
                Base::Time => Some("give the numbers a unit of time: `exp(2sec)`"),
                Base::Size => Some("give the numbers a unit of size: `exp(13KB)`"),
                _ => None,
            };
            Err(mismatch(&Value::Random(random), ty, unit.map(str::to_owned)))
        }
        other => {
            let constant = to_single(other.clone(), Ty::one(ty.base)).is_ok();
            let help = constant.then(|| format!("a constant must say so: `const({other})`"));
            Err(mismatch(&other, ty, help))
        }
    }
}

fn to_single(value: Value, ty: Ty) -> Result<Value, TypeMismatch> {
    if value.ty() == Some(ty) && value.count() == 1 {
        return Ok(value);
    }
    Ok(match (value, ty.base) {
        (Value::Int(x), Base::Float) => Value::Float(f64::from(x)),
        (Value::Int(x), Base::Bool) => Value::Bool(x != 0),
        (Value::Int(0), Base::Time) => Value::Time(0.0),
        (Value::Int(0), Base::Size) => Value::Size(0.0),
        (Value::Int(0), Base::Rate) => Value::Rate(0.0),
        (Value::Int(0), Base::Bandwidth) => Value::Bandwidth(0.0),
        (Value::Random(random), Base::Popularity) => match age_law(&random) {
            Some(law) => Value::Popularity(law),
            None => {
                let help =
                    "a table of ages has numbers from 0 (the newest) to 1 (the oldest): `popTable(\"file\")`";
                return Err(mismatch(&Value::Random(random), ty, Some(help.to_owned())));
            }
        },
        (Value::Record(record), Base::Record(kind)) => match (record.kind, kind) {
            (RecordKind::SingleRange | RecordKind::MultiRange, RecordKind::Range) => Value::Record(record),
            (RecordKind::Robot, RecordKind::ClientBehavior)
            | (RecordKind::ClientBehavior, RecordKind::Robot) => {
                Value::Record(Rc::new(common_fields(&record, kind)))
            }
            _ => return Err(mismatch(&Value::Record(record), ty, None)),
        },
        (other, base) => {
            let help = single_help(&other, base);
            return Err(mismatch(&other, ty, help));
        }
    })
}

/// A table of numbers from 0 to 1 as a popularity law over ages.
pub(crate) fn age_law(random: &Random) -> Option<PopularityLaw> {
    let Distribution::Table(bins) = &random.law else { return None };
    let within = bins.iter().all(|bin| bin.low >= 0.0 && bin.high <= 1.0);
    let number = matches!(random.kind, Base::Int | Base::Float) && random.moment.is_none();
    (within && number).then(|| PopularityLaw::Table(bins.clone()))
}

/// Advice on a value that does not fit a single value of another type.
fn single_help(value: &Value, wanted: Base) -> Option<String> {
    let is_number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Percent(_));
    let units = |units: &str| Some(format!("write the unit directly behind the number: {units}"));
    match (value, wanted) {
        (Value::Float(_) | Value::Percent(_), Base::Int) => {
            Some("`int(x)` cuts off what is behind the point".into())
        }
        (Value::Text(_), Base::Int) => Some("`int(x)` reads a string".into()),
        (Value::Text(_), Base::Float) => Some("`float(x)` reads a string".into()),
        (_, Base::Time) if is_number => units("`5sec`, `300msec`"),
        (_, Base::Size) if is_number => units("`13KB`, `1GB`"),
        (_, Base::Rate) if is_number => Some("a rate is a number over a time: `400/sec`".into()),
        (_, Base::Bandwidth) if is_number || matches!(value, Value::Size(_)) => {
            Some("a bandwidth is a size over a time: `100Mb/sec`".into())
        }
        (Value::Text(text), Base::Address) => Some(format!("an address stands in single quotes: '{text}'")),
        (Value::Address(address), Base::Address) if address.count() > 1 => {
            Some(format!("this stands for {} addresses; an array holds them: `addr[]`", address.count()))
        }
        (Value::Address(address), Base::Text) => {
            Some(format!("a string stands in double quotes: \"{address}\""))
        }
        (Value::Text(text), Base::Text) => {
            Some(format!("this stands for {} strings; one is wanted", text.count()))
        }
        (Value::Random(_), _) => Some("a distribution has no single value".into()),
        (Value::Array(_), _) => Some("a single value is wanted, not an array".into()),
        _ => None,
    }
}

/// An object of another type with the fields that both types have.
fn common_fields(from: &Record, kind: RecordKind) -> Record {
    let mut to = Record::new(kind);
    for (field, slot) in from.set_fields() {
        if let Some(target) = kind.field(field.name).and_then(|(index, _)| to.slot_mut(index)) {
            *target = slot.clone();
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::address::AddrRange;

    fn fits(value: Value, ty: &str) -> bool {
        let arrays = ty.matches("[]").count() as u8;
        let ty = Ty { arrays, ..Ty::named(ty.trim_end_matches("[]")).unwrap() };
        convert(value, ty).is_ok()
    }

    fn address(text: &str) -> Value {
        Value::Address(Rc::new(AddrRange::parse(text).unwrap()))
    }

    #[test]
    fn only_a_plain_zero_has_every_unit() {
        for ty in ["time", "size", "rate", "bwidth", "time_distr", "int_distr", "float"] {
            assert!(fits(Value::Int(0), ty), "{ty}");
            assert_eq!(fits(Value::Int(1), ty), ty == "float", "{ty}");
        }
        assert!(!fits(Value::Float(0.0), "time"));
    }

    #[test]
    fn numbers_widen_and_never_narrow() {
        assert!(fits(Value::Int(3), "float") && fits(Value::Int(3), "bool"));
        assert!(!fits(Value::Float(3.0), "int") && !fits(Value::text("3"), "int"));
    }

    #[test]
    fn a_constant_is_no_distribution_but_says_how_to_become_one() {
        let why = convert(Value::Time(5.0), Ty::random(Base::Time)).unwrap_err();
        assert_eq!(why.help.as_deref(), Some("a constant must say so: `const(5sec)`"));
    }

    #[test]
    fn ranges_of_addresses_fit_arrays_and_not_single_addresses() {
        assert!(fits(address("10.0.0.1-4"), "addr[]") && !fits(address("10.0.0.1-4"), "addr"));
        assert!(fits(address("10.0.0.1"), "addr") && fits(address("10.0.0.1"), "addr[]"));
        assert!(!fits(Value::text("10.0.0.1"), "addr") && !fits(address("10.0.0.1"), "string"));
    }

    #[test]
    fn robots_and_client_behaviour_share_their_common_fields() {
        let mut robot = Record::new(RecordKind::Robot);
        let (index, _) = RecordKind::Robot.field("recurrence").unwrap();
        robot.slot_mut(index).unwrap().value = Value::Float(0.5);
        let behaviour = common_fields(&robot, RecordKind::ClientBehavior);
        assert!(matches!(behaviour.get("recurrence").unwrap().value, Value::Float(0.5)));
    }
}
