//! The simulation, held against what must be. Held against theory, against a study's measurements, and against itself.

mod appendix_d;
mod behaviour;
mod support;
mod theory;
