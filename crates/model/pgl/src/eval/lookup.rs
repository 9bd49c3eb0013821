//! Name resolution of the interpreter: paths to variables and fields, read or assigned.

use std::rc::Rc;

use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::{Name, Path};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, REMOVED_FIELDS, RecordKind, Ty};
use crate::source::Span;
use crate::value::{Record, Value};
use assay_base::settings::suggest::nearest;

/// The variable or field that a path designates.
pub(super) struct AssignmentTarget {
    pub root: TargetRoot,
    /// Indices of the fields below the root, outermost first.
    pub fields: Vec<usize>,
    pub ty: Ty,
}

/// The variable or field that the first name of a path designates.
pub(super) enum TargetRoot {
    /// A field of the object of a frame.
    Member {
        frame: usize,
        field: usize,
    },
    Local {
        frame: usize,
        name: Rc<str>,
    },
}

impl Interpreter<'_> {
    /// Resolves the first name of a path. The type is none for a variable that was declared with an unknown type.
    pub(super) fn root(&self, name: &str) -> Option<(TargetRoot, Option<Ty>)> {
        for (frame, scope) in self.frames.iter().enumerate().rev() {
            if let Some((field, definition)) =
                scope.object.as_ref().and_then(|object| object.kind.field(name))
            {
                return Some((TargetRoot::Member { frame, field }, Some(definition.ty)));
            }
            if let Some((name, variable)) = scope.names.get_key_value(name) {
                return Some((TargetRoot::Local { frame, name: name.clone() }, variable.ty));
            }
        }
        None
    }

    pub(super) fn assignment_target(&mut self, path: &Path) -> EvalResult<AssignmentTarget> {
        let Some((root, ty)) = self.root(&path.first.text) else {
            return self.report_unknown_name(&path.first, true);
        };
        let mut ty = ty.ok_or(ErrorReported)?;
        let mut fields = Vec::new();
        for name in &path.rest {
            let Some(kind) = ty.record() else {
                return self.report_no_fields(name, ty);
            };
            let (index, field) = self.field(kind, name)?;
            fields.push(index);
            ty = field.ty;
        }
        Ok(AssignmentTarget { root, fields, ty })
    }

    fn report_no_fields<T>(&mut self, name: &Name, ty: Ty) -> EvalResult<T> {
        let help = match ty {
            Ty { base: Base::Address, arrays: 0, .. } => Some(
                "an address cannot be changed in part; `setAddrPort(addresses, port)` makes new ones"
                    .to_owned(),
            ),
            _ => None,
        };
        self.fail(
            Diagnostic::error(Code::UnknownField, name.span, format!("`{}` has no fields", ty.name()))
                .label("expected `=`")
                .maybe_help(help),
        )
    }

    fn field(&mut self, kind: RecordKind, name: &Name) -> EvalResult<(usize, &'static crate::schema::Field)> {
        match kind.field(&name.text) {
            Some(found) => Ok(found),
            None => self.report_unknown_field(kind, name),
        }
    }

    fn report_unknown_field<T>(&mut self, kind: RecordKind, name: &Name) -> EvalResult<T> {
        let removed_field_help = removed_field_help(kind, &name.text).map(str::to_owned);
        let known = || kind.fields().map(|field| field.name);
        let meant = nearest(&name.text, known()).filter(|_| removed_field_help.is_none());
        let help = removed_field_help.or_else(|| {
            let all: Vec<&str> = known().collect();
            (!all.is_empty() && all.len() <= 12).then(|| format!("its fields are {}", all.join(", ")))
        });
        self.fail(
            Diagnostic::error(
                Code::UnknownField,
                name.span,
                format!("`{}` has no field `{}`", kind.name(), name.text),
            )
            .label("expected the name of a field")
            .maybe_help(help)
            .suggest(meant),
        )
    }

    /// Reports an undeclared name, with the name that was probably meant.
    fn report_unknown_name<T>(&mut self, name: &Name, is_assigned: bool) -> EvalResult<T> {
        if self.skipped.contains(&name.text) {
            return Err(ErrorReported);
        }
        // The error would only be counted: no need for a suggestion.
        if self.diagnostics.is_full() {
            return self.fail(Diagnostic::error(Code::UnknownName, name.span, "this name is not declared"));
        }
        // In the block of an object, a field was most likely meant.
        let object = self.frames.last().and_then(|frame| frame.object.as_ref()).map(|object| object.kind);
        if let Some(kind) = object.filter(|_| is_assigned) {
            let near_field = nearest(&name.text, kind.fields().map(|field| field.name)).is_some();
            let known = near_field || removed_field_help(kind, &name.text).is_some();
            let near_name = !known && self.nearest_declared(name).is_some();
            if !near_name {
                return self.report_unknown_field(kind, name);
            }
        }
        let units = crate::units::bare_names().filter(|_| !is_assigned);
        let others = object.into_iter().flat_map(RecordKind::fields).map(|field| field.name).chain(units);
        let meant = self.nearest_declared(name).or_else(|| nearest(&name.text, others).map(str::to_owned));
        self.fail(
            Diagnostic::error(Code::UnknownName, name.span, format!("`{}` is not declared", name.text))
                .label("expected a name that was declared before")
                .suggest(meant.as_deref()),
        )
    }

    /// The declared name closest to a misspelt one.
    fn nearest_declared(&mut self, name: &Name) -> Option<String> {
        let declared: usize = self.frames.iter().map(|frame| frame.names.len()).sum();
        self.comparisons_left = self.comparisons_left.checked_sub(declared)?;
        let names = self.frames.iter().flat_map(|frame| frame.names.keys()).map(|name| &**name);
        nearest(&name.text, names).map(str::to_owned)
    }

    pub(super) fn read_target(&self, target: &AssignmentTarget) -> Value {
        let mut value = match &target.root {
            TargetRoot::Member { frame, field } => {
                let object = self.frames.get(*frame).and_then(|frame| frame.object.as_ref());
                object.and_then(|object| object.slot(*field)).map(|slot| slot.value.clone())
            }
            TargetRoot::Local { frame, name } => self
                .frames
                .get(*frame)
                .and_then(|frame| frame.names.get(name))
                .map(|variable| variable.value.clone()),
        };
        for field in &target.fields {
            value = match value {
                Some(Value::Record(record)) => record.slot(*field).map(|slot| slot.value.clone()),
                other => other.filter(Value::is_broken),
            };
        }
        value.unwrap_or(Value::Undefined)
    }

    /// Assigns a value; objects on the path that do not exist yet are created.
    pub(super) fn write_target(&mut self, target: &AssignmentTarget, value: Value, span: Span) {
        if value.depth() > crate::value::array::MAX_DEPTH {
            self.diagnostics.add(
                Diagnostic::error(Code::TooDeep, span, "arrays and objects are nested too deeply")
                    .label(format!("at most {} levels", crate::value::array::MAX_DEPTH)),
            );
            return;
        }
        match &target.root {
            TargetRoot::Member { frame, field } => {
                let Some(object) = self.frames.get_mut(*frame).and_then(|frame| frame.object.as_mut()) else {
                    return;
                };
                write_field(object, *field, &target.fields, value, span);
            }
            TargetRoot::Local { frame, name } => {
                let Some(variable) = self.frames.get_mut(*frame).and_then(|frame| frame.names.get_mut(name))
                else {
                    return;
                };
                match target.fields.split_first() {
                    None => variable.value = value,
                    Some((first, rest)) => {
                        if let Some(object) = variable.ty.and_then(|ty| object_in(&mut variable.value, ty)) {
                            write_field(object, *first, rest, value, span);
                        }
                    }
                }
            }
        }
    }

    /// The value of a path.
    pub(super) fn read(&mut self, path: &Path) -> EvalResult<Value> {
        let Some((root, ty)) = self.root(&path.first.text) else {
            return self.report_unknown_name(&path.first, false);
        };
        let ty = ty.ok_or(ErrorReported)?;
        let is_member = matches!(root, TargetRoot::Member { .. });
        self.note_read(&root, path)?;
        let mut value = self.read_target(&AssignmentTarget { root, fields: vec![], ty });
        if let Value::Sample(number) = value
            && !path.rest.is_empty()
        {
            return self.statistic(number, path);
        }
        let mut owner: Option<RecordKind> = None;
        let mut last = &path.first;
        for name in &path.rest {
            value = match &value {
                Value::Record(record) => {
                    let (index, _) = self.field(record.kind, name)?;
                    owner = Some(record.kind);
                    record.slot(index).map_or(Value::Undefined, |slot| slot.value.clone())
                }
                Value::Address(address) => self.address_member(address, name)?,
                Value::Broken => return Err(ErrorReported),
                Value::Undefined => return self.report_no_value(last, owner, is_member),
                other => {
                    let found = other.type_name();
                    return self.fail(
                        Diagnostic::error(Code::UnknownField, name.span, format!("{found} has no fields"))
                            .label("expected the end of the name"),
                    );
                }
            };
            last = name;
        }
        match value {
            Value::Broken => Err(ErrorReported),
            Value::Undefined => self.report_no_value(last, owner, is_member && path.rest.is_empty()),
            value => Ok(value),
        }
    }

    /// Marks a variable as read. In a script, its value must not depend on a measured condition.
    fn note_read(&mut self, root: &TargetRoot, path: &Path) -> EvalResult<()> {
        let TargetRoot::Local { frame, name } = root else { return Ok(()) };
        let Some(variable) = self.frames.get(*frame).and_then(|frame| frame.names.get(name)) else {
            return Ok(());
        };
        // A robot that reads the addresses of a server does not make the server part of the workload.
        let agent = matches!(variable.ty, Some(Ty { base: Base::Record(kind), .. }) if kind.is_agent());
        if path.rest.is_empty() || !agent {
            variable.read.set(true);
        }
        if variable.uncertain {
            return self.fail(super::script::uncertain_name(&path.first));
        }
        Ok(())
    }

    fn report_no_value<T>(
        &mut self,
        name: &Name,
        owner: Option<RecordKind>,
        is_member: bool,
    ) -> EvalResult<T> {
        let outside = self.frames.iter().any(|frame| frame.names.contains_key(&name.text));
        let help = match owner {
            Some(kind) => {
                Some(format!("set the field `{}` of this `{}` before it is read", name.text, kind.name()))
            }
            None if is_member && outside => Some(format!(
                "inside this block `{0}` is the object's own field; give the outer `{0}` another name",
                name.text
            )),
            None => Some("give it a value before it is read".to_owned()),
        };
        self.fail(
            Diagnostic::error(Code::NoValue, name.span, format!("`{}` has no value yet", name.text))
                .label("expected something that was set before")
                .maybe_help(help),
        )
    }

    fn address_member(
        &mut self,
        address: &crate::value::address::AddrRange,
        name: &Name,
    ) -> EvalResult<Value> {
        if address.count() > 1 {
            return self.fail(
                Diagnostic::error(Code::TypeMismatch, name.span, "a range of addresses has no members")
                    .label("expected a single address"),
            );
        }
        let value = match &*name.text {
            "host" => Some(Value::text(address.host())),
            "port" => address.port().map(|port| Value::Int(i32::from(port))),
            "if_name" => address.interface.as_ref().map(|name| Value::text(&**name)),
            "subnet" => address.subnet.map(|bits| Value::Int(i32::from(bits))),
            _ => {
                return self.fail(
                    Diagnostic::error(
                        Code::UnknownField,
                        name.span,
                        format!("an address has no `{}`", name.text),
                    )
                    .label("expected host, port, if_name or subnet"),
                );
            }
        };
        match value {
            Some(value) => Ok(value),
            None => self.report_no_value(name, None, false),
        }
    }
}

/// Advice on a field that older versions of the language had.
fn removed_field_help(kind: RecordKind, name: &str) -> Option<&'static str> {
    REMOVED_FIELDS.iter().find(|(of, field, _)| *of == kind && *field == name).map(|(.., why)| *why)
}

/// The object in a value of an object type, created if the value is undefined.
fn object_in(value: &mut Value, ty: Ty) -> Option<&mut Rc<Record>> {
    if matches!(value, Value::Undefined) {
        *value = Value::Record(Rc::new(Record::new(ty.record()?)));
    }
    match value {
        Value::Record(record) => Some(record),
        _ => None,
    }
}

fn write_field(object: &mut Rc<Record>, field: usize, rest: &[usize], value: Value, span: Span) {
    let ty = object.kind.fields().nth(field).map(|field| field.ty);
    // Objects have value semantics: another holder of this one keeps its fields.
    let Some(slot) = Rc::make_mut(object).slot_mut(field) else {
        return;
    };
    match rest.split_first() {
        None => *slot = crate::value::Slot { value, span },
        Some((first, rest)) => {
            // The object is created by this assignment, so messages about it point here.
            if matches!(slot.value, Value::Undefined) {
                slot.span = span;
            }
            if let Some(inner) = ty.and_then(|ty| object_in(&mut slot.value, ty)) {
                write_field(inner, *first, rest, value, span);
            }
        }
    }
}
