//! Table of functions, and those that return neither distributions nor addresses of a bench.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::rc::Rc;

use assay_workload::model::ScriptExpr;

use super::expression::too_many_items;
use super::script::runtime;
use super::{ErrorReported, EvalResult, Interpreter, arithmetic, distributions, schemes};
use crate::ast::{Call, Operator};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, Ty};
use crate::source::Span;
use crate::value::Value;
use crate::value::address::AddrRange;
use crate::value::array::{Array, Item, MAX_ITEMS};
use crate::value::pattern::{Pattern, PatternPart};
use assay_base::settings::suggest::nearest;

/// An argument of a call.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    pub value: Value,
    pub span: Span,
}

pub(crate) struct Function {
    pub name: &'static str,
    /// Parameters, as messages show them.
    pub arguments: &'static str,
    count: RangeInclusive<usize>,
    run: fn(&mut Interpreter<'_>, &Call, &[Argument]) -> EvalResult<Value>,
}

const MANY: usize = usize::MAX;

const fn function(
    name: &'static str,
    arguments: &'static str,
    count: RangeInclusive<usize>,
    run: fn(&mut Interpreter<'_>, &Call, &[Argument]) -> EvalResult<Value>,
) -> Function {
    Function { name, arguments, count, run }
}

pub(crate) const FUNCTIONS: [Function; 37] = [
    function("int", "x", 1..=1, int),
    function("float", "x", 1..=1, float),
    function("undef", "", 0..=0, |_, _, _| Ok(Value::Undefined)),
    function("count", "container", 1..=1, count),
    function("min", "a, b, ...", 1..=MANY, |i, call, a| i.extreme(call, a, Operator::Less)),
    function("max", "a, b, ...", 1..=MANY, |i, call, a| i.extreme(call, a, Operator::Greater)),
    function("select", "array, n", 2..=2, select),
    function("setAddrPort", "addresses, port", 2..=2, set_port),
    function("robotAddrs", "scheme, bench", 2..=2, schemes::robots),
    function("serverAddrs", "scheme, bench", 2..=2, schemes::servers),
    function("proxyAddrs", "scheme, bench", 2..=2, schemes::proxies),
    function("clientHostCount", "bench", 1..=1, schemes::client_hosts),
    function("ipsToNames", "addresses, zone", 2..=2, ips_to_names),
    function("zoneDomains", "file, addresses", 2..=2, super::zone::zone_domains),
    function("tracedHosts", "file", 1..=1, super::table::traced_hosts),
    function("dynamicName", "address, probability", 2..=2, dynamic),
    function("dynamize", "addresses, probability", 2..=2, dynamic),
    function("credentials", "n, realm", 2..=2, credentials),
    function("anyOf", "array", 1..=1, any_of),
    function("uniqId", "", 0..=0, |i, _, _| {
        i.ids += 1;
        Ok(Value::Id(i.ids))
    }),
    function("system", "command", 1..=1, system),
    function("Worker", "", 0..=0, |_, _, _| Ok(Value::Int(1))),
    function("const", "x", 1..=1, distributions::constant),
    function("unif", "low, high", 2..=2, distributions::uniform),
    function("exp", "mean", 1..=1, distributions::exponential),
    function("norm", "mean, deviation", 2..=2, distributions::normal),
    function("logn", "mean, deviation", 2..=2, distributions::log_normal),
    function("zipf", "n", 1..=1, distributions::zipf),
    function("seq", "first", 1..=1, distributions::sequence),
    function("table", "file, type", 1..=2, super::table::table),
    function("popUnif", "", 0..=0, distributions::popularity_uniform),
    function("popZipf", "skew", 1..=1, distributions::popularity_zipf),
    function("popTable", "file or float_distr", 1..=1, super::table::popularity),
    function("currentLoadFactor", "", 0..=0, |i, call, _| i.current_factor(call, ScriptExpr::LoadFactor)),
    function("currentPopulusFactor", "", 0..=0, |i, call, _| {
        i.current_factor(call, ScriptExpr::PopulationFactor)
    }),
    function("currentSample", "", 0..=0, |i, call, _| i.current_statistics(call, false)),
    function("currentPhase", "", 0..=0, |i, call, _| i.current_statistics(call, true)),
];

impl Interpreter<'_> {
    pub(super) fn call_function(&mut self, call: &Call) -> EvalResult<Value> {
        let name = &*call.name.text;
        let arguments = self.arguments(call);
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            let procedure = super::procedures::is_procedure(name);
            let known = FUNCTIONS.iter().map(|function| function.name);
            let meant = if procedure { None } else { nearest(name, known) };
            let message = if procedure {
                format!("`{name}()` does something, but gives no value")
            } else {
                format!("there is no function `{name}`")
            };
            return self.fail(
                Diagnostic::error(Code::UnknownFunction, call.name.span, message)
                    .label("expected the name of a function")
                    .suggest(meant),
            );
        };
        self.check_count(call, &function.count, function.arguments)?;
        (function.run)(self, call, &arguments?)
    }

    /// Evaluates the arguments of a call: all of them, even after an error in one.
    pub(super) fn arguments(&mut self, call: &Call) -> EvalResult<Vec<Argument>> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let mut complete = true;
        for expr in &call.arguments {
            match self.value(expr) {
                Ok(Value::Undefined) => {
                    complete = false;
                    self.diagnostics.add(
                        Diagnostic::error(Code::NoValue, expr.span, "an argument must have a value")
                            .label("`undef()` is none"),
                    );
                }
                Ok(value) => arguments.push(Argument { value, span: expr.span }),
                Err(ErrorReported) => complete = false,
            }
        }
        if complete { Ok(arguments) } else { Err(ErrorReported) }
    }

    /// Reports too few or too many arguments.
    pub(super) fn check_count(
        &mut self,
        call: &Call,
        count: &RangeInclusive<usize>,
        shape: &str,
    ) -> EvalResult<()> {
        let given = call.arguments.len();
        if count.contains(&given) {
            return Ok(());
        }
        let name = &call.name.text;
        let plural = if given == 1 { "argument" } else { "arguments" };
        self.fail(
            Diagnostic::error(
                Code::Arguments,
                call.span,
                format!("`{name}()` does not take {given} {plural}"),
            )
            .label(format!("expected `{name}({shape})`")),
        )
    }

    pub(super) fn argument(&mut self, argument: &Argument, base: Base) -> EvalResult<Value> {
        self.fit(argument.value.clone(), Ty::one(base), argument.span)
    }

    /// An argument as an array; a range of addresses or strings is one.
    fn container(&mut self, argument: &Argument) -> EvalResult<Rc<Array>> {
        match &argument.value {
            Value::Array(array) => Ok(array.clone()),
            value @ (Value::Address(_) | Value::Text(_)) => {
                Ok(Rc::new(Array::new(vec![Item::plain(value.clone(), argument.span)])))
            }
            other => {
                let found = other.type_name();
                self.fail(
                    Diagnostic::error(
                        Code::TypeMismatch,
                        argument.span,
                        format!("expected an array, found {found}"),
                    )
                    .label(format!("this is {found}")),
                )
            }
        }
    }

    /// An argument as an array of addresses.
    pub(super) fn addresses(&mut self, argument: &Argument) -> EvalResult<Rc<Array>> {
        let ty = Ty::one(Base::Address).array();
        match self.fit(argument.value.clone(), ty, argument.span)? {
            Value::Array(array) => Ok(array),
            _ => Err(ErrorReported),
        }
    }

    /// Applies `f` to every range of addresses in an array.
    fn map_ranges(&mut self, array: &Array, f: &dyn Fn(&AddrRange) -> AddrRange) -> Value {
        let items = array.items().iter().map(|item| {
            let value = match &item.value {
                Value::Array(inner) => self.map_ranges(inner, f),
                Value::Address(range) => Value::Address(Rc::new(f(range))),
                other => other.clone(),
            };
            Item { value, ..item.clone() }
        });
        Value::array(items.collect())
    }

    fn extreme(&mut self, call: &Call, arguments: &[Argument], wanted: Operator) -> EvalResult<Value> {
        if arguments.iter().any(|argument| matches!(argument.value, Value::RuntimeNumber(_))) {
            return self.runtime_extreme(call, arguments, wanted);
        }
        let mut best: Option<&Argument> = None;
        for argument in arguments {
            let Some(before) = best else {
                best = Some(argument);
                continue;
            };
            let spans = (before.span, argument.span);
            let value = arithmetic::zero_like(&argument.value, &before.value);
            match arithmetic::binary(&value, wanted, &before.value, spans) {
                Ok(Value::Bool(true)) => best = Some(argument),
                Ok(_) => {}
                Err(_) => {
                    let kinds = format!("{} and {}", before.value.type_name(), argument.value.type_name());
                    let message = format!("`{}()` cannot compare {kinds}", call.name.text);
                    return self.fail(
                        Diagnostic::error(Code::Arguments, argument.span, message)
                            .label(format!("expected {}", before.value.type_name())),
                    );
                }
            }
        }
        best.map(|argument| argument.value.clone()).ok_or(ErrorReported)
    }
}

impl Interpreter<'_> {
    /// `min` or `max` with a number that is known only while the phase runs.
    fn runtime_extreme(
        &mut self,
        call: &Call,
        arguments: &[Argument],
        wanted: Operator,
    ) -> EvalResult<Value> {
        let unit = arguments.iter().find_map(|argument| runtime::unit(&argument.value));
        let plain = |argument: &Argument| {
            let value = runtime::in_unit_of(unit, &argument.value, argument.span);
            Argument { value, ..argument.clone() }
        };
        let arguments: Vec<Argument> = arguments.iter().map(plain).collect();
        let first = arguments.first().ok_or(ErrorReported)?;
        let mut base = None;
        for argument in &arguments {
            let spans = (first.span, argument.span);
            let fits =
                |a: &Argument, b: &Argument| arithmetic::binary(&a.value, wanted, &b.value, spans).is_ok();
            let kind = argument.value.ty().and_then(runtime::number_base);
            // Either order may fit: a plain zero needs no unit, but only as the right operand.
            if !(fits(argument, first) || fits(first, argument)) || kind.is_none() {
                let kinds = format!("{} and {}", first.value.type_name(), argument.value.type_name());
                let message = format!("`{}()` cannot compare {kinds}", call.name.text);
                return self.fail(
                    Diagnostic::error(Code::Arguments, argument.span, message)
                        .label(format!("expected {}", first.value.type_name())),
                );
            }
            base = if base == Some(Base::Int) || base.is_none() { kind } else { base };
        }
        let of: Vec<ScriptExpr> = arguments.iter().filter_map(|a| runtime::script_expr(&a.value)).collect();
        let greatest = wanted == Operator::Greater;
        Ok(runtime::runtime_value(ScriptExpr::Extreme { greatest, of }, base.ok_or(ErrorReported)?, unit))
    }
}

fn int(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    if let Value::RuntimeNumber(number) = &argument.value
        && matches!(number.base, Base::Int | Base::Float | Base::Bool)
    {
        return Ok(runtime::runtime_value(runtime::truncate(number.expr.clone()), Base::Int, number.unit));
    }
    if let Value::Text(text) = &argument.value {
        let text = text.to_string();
        return match text.trim().parse() {
            Ok(x) => Ok(Value::Int(x)),
            Err(_) => not_a_number(interpreter, argument, "an integer"),
        };
    }
    match interpreter.argument(argument, Base::Float)?.float() {
        Some(x) if x.abs() <= f64::from(i32::MAX) => Ok(Value::Int(x.trunc() as i32)),
        _ => interpreter.fail(
            Diagnostic::error(Code::Arithmetic, argument.span, "the number does not fit an integer")
                .label(format!("this is {}; the largest integer is {}", argument.value, i32::MAX)),
        ),
    }
}

fn float(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    if let Some(value) = interpreter.runtime_value_as(&argument.value, Ty::one(Base::Float)) {
        return Ok(value);
    }
    if let Value::Text(text) = &argument.value {
        let text = text.to_string();
        return match text.trim().parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Value::Float(x)),
            _ => not_a_number(interpreter, argument, "a number"),
        };
    }
    interpreter.argument(argument, Base::Float)
}

fn not_a_number(interpreter: &mut Interpreter<'_>, argument: &Argument, wanted: &str) -> EvalResult<Value> {
    interpreter.fail(
        Diagnostic::error(Code::Arguments, argument.span, format!("\"{}\" is not {wanted}", argument.value))
            .label(format!("expected {wanted} in the string")),
    )
}

fn count(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let items = interpreter.container(argument)?.count();
    match i32::try_from(items) {
        Ok(items) => Ok(Value::Int(items)),
        Err(_) => interpreter.fail(
            Diagnostic::error(Code::Arithmetic, argument.span, "there are too many items to count")
                .label("the number does not fit an integer"),
        ),
    }
}

fn select(interpreter: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [from, n] = arguments else { return Err(ErrorReported) };
    let array = interpreter.container(from)?;
    let Value::Int(wanted) = interpreter.argument(n, Base::Int)? else { return Err(ErrorReported) };
    let total = array.count();
    let Some(wanted) = u64::try_from(wanted).ok().filter(|wanted| *wanted <= MAX_ITEMS) else {
        return interpreter.fail(
            Diagnostic::error(Code::Arguments, n.span, "that many items cannot be selected")
                .label(format!("expected 0 to {MAX_ITEMS}")),
        );
    };
    if wanted > total {
        if total == 0 {
            return interpreter.fail(
                Diagnostic::error(Code::Arguments, from.span, "nothing can be selected from an empty array")
                    .label("expected items"),
            );
        }
        interpreter.diagnostics.add(
            Diagnostic::warning(
                Code::Arguments,
                call.span,
                format!("{wanted} items are selected from {total}"),
            )
            .label("some are taken more than once"),
        );
    }
    let mut distinct = HashSet::new();
    let mut indices = Vec::new();
    while (indices.len() as u64) < wanted {
        let index = interpreter.generator.below(total);
        if distinct.len() as u64 >= total || distinct.insert(index) {
            indices.push(index);
        }
    }
    match items_at(&array, &indices) {
        Some(values) => Ok(Value::list(values, call.span)),
        None => interpreter.fail(too_many_items(from.span)),
    }
}

/// The flattened items at these indices; none if the array is too large.
fn items_at(array: &Array, indices: &[u64]) -> Option<Vec<Value>> {
    let runs = array.runs()?;
    let mut starts = Vec::with_capacity(runs.len());
    let mut start = 0_u64;
    for run in &runs {
        starts.push(start);
        start = start.saturating_add(run.value.count().saturating_mul(run.times));
    }
    let item = |index: &u64| {
        let run_index = starts.partition_point(|start| start <= index).checked_sub(1)?;
        let run = runs.get(run_index)?;
        Some(run.value.nth((index - starts[run_index]) % run.value.count().max(1)))
    };
    indices.iter().map(item).collect()
}

fn set_port(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [from, port] = arguments else { return Err(ErrorReported) };
    let array = interpreter.addresses(from)?;
    let Value::Int(number) = interpreter.argument(port, Base::Int)? else { return Err(ErrorReported) };
    let new = match (number, u16::try_from(number)) {
        (-1, _) => None,
        (_, Ok(number)) => Some(number),
        _ => {
            return interpreter.fail(
                Diagnostic::error(Code::OutOfRange, port.span, format!("{number} is not a port"))
                    .label("expected 0 to 65535, or -1 for none"),
            );
        }
    };
    Ok(interpreter.map_ranges(&array, &|range| range.with_port(new)))
}

fn ips_to_names(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [from, zone] = arguments else { return Err(ErrorReported) };
    let array = interpreter.addresses(from)?;
    let zone = interpreter.argument(zone, Base::Text)?.to_string();
    let Some(all) = array.flatten() else { return interpreter.fail(too_many_items(from.span)) };
    let mut names = Vec::with_capacity(all.len());
    for value in &all {
        let name = match value {
            Value::Address(address) => host_name(address, &zone),
            _ => None,
        };
        let Some(name) = name.and_then(|name| AddrRange::parse(&name).ok()) else {
            return interpreter.fail(
                Diagnostic::error(Code::BadAddress, from.span, format!("no name can be made for {value}"))
                    .label("expected IPv4 addresses, and a zone or template that gives a domain name"),
            );
        };
        let port = match value {
            Value::Address(address) => address.port(),
            _ => None,
        };
        names.push(Value::Address(Rc::new(name.with_port(port))));
    }
    Ok(Value::list(names, from.span))
}

/// The host name of an address: from a template, or made of its octets.
fn host_name(address: &AddrRange, zone: &str) -> Option<String> {
    let [a, b, c, d] = address.octets()?.map(u32::from);
    if !zone.contains('$') {
        return Some(format!("w{}.h{}o{}s{}.{zone}", 1000 + d, 1000 + c, 1000 + b, 1000 + a));
    }
    let port = address.port().map_or(String::new(), |port| port.to_string());
    let name = zone.replace("${dashed_ip}", &format!("{a}-{b}-{c}-{d}")).replace("${port}", &port);
    Some(name.replace("${worker}", "1"))
}

/// `dynamicName()` and `dynamize()`: return their argument, with a warning.
fn dynamic(interpreter: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [from, probability] = arguments else { return Err(ErrorReported) };
    interpreter.argument(probability, Base::Float)?;
    let array = interpreter.addresses(from)?;
    let name = &call.name.text;
    interpreter.diagnostics.add_once(
        format!("function {name}"),
        Diagnostic::warning(
            Code::Unsupported,
            call.span,
            format!("`{name}()` is accepted, but has no effect"),
        )
        .label("names stay as they are"),
    );
    Ok(if &**name == "dynamize" { Value::Array(array) } else { from.value.clone() })
}

/// `credentials(n, realm)`: generated users, as a pattern rather than a list.
fn credentials(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [n, realm] = arguments else { return Err(ErrorReported) };
    let Value::Int(users) = interpreter.argument(n, Base::Int)? else { return Err(ErrorReported) };
    let realm = interpreter.argument(realm, Base::Text)?.to_string();
    let Some(high) = u64::try_from(users).ok().filter(|users| *users > 0) else {
        return interpreter.fail(
            Diagnostic::error(Code::OutOfRange, n.span, "there must be at least one user")
                .label("expected 1 or more"),
        );
    };
    let users = Pattern::new(vec![PatternPart::Users { low: 1, high, realm }]);
    Ok(Value::list([Value::Text(Rc::new(users))], n.span))
}

fn any_of(interpreter: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let ty = Ty::one(Base::Regex).array();
    let Value::Array(array) = interpreter.fit(argument.value.clone(), ty, argument.span)? else {
        return Err(ErrorReported);
    };
    let Some(all) = array.flatten() else { return interpreter.fail(too_many_items(argument.span)) };
    let parts: Vec<String> = all.iter().map(Value::to_string).collect();
    Ok(Value::Regex(format!("({})", parts.join(" || ")).into()))
}

fn system(interpreter: &mut Interpreter<'_>, call: &Call, _: &[Argument]) -> EvalResult<Value> {
    interpreter.fail(
        Diagnostic::error(Code::Refused, call.span, "shell commands in a workload are not run")
            .label("its output would be a value here")
            .help(
                "run the command yourself and write what it prints as a string: a workload must mean the same on \
                 every machine, and reading one must be safe",
            ),
    )
}
