//! The names that are known at a place of a program.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Record, Value};
use crate::schema::Ty;
use crate::source::Span;

#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// None: of a type that does not exist.
    pub ty: Option<Ty>,
    pub value: Value,
    pub declared: Span,
    /// Something has read all of it.
    pub read: Cell<bool>,
    /// In a script: what it is depends on what is measured.
    pub uncertain: bool,
}

/// Names of one block: an object's members, and what the block declares itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub object: Option<Rc<Record>>,
    pub names: HashMap<Rc<str>, Variable>,
}
