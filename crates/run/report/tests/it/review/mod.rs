//! Reports of made-up evaluations, as their readers see them.

mod made;
mod spe;
