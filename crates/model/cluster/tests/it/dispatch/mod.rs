//! What every policy must keep, whatever happens to it.

mod rules;
