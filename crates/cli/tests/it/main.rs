//! The `assay` binary as people use it, and the house as its plan says it is.

mod adapting;
mod architecture;
mod by_hand;
mod circles;
mod clusters;
mod comparing;
mod documentation;
mod experiments;
mod machine;
mod matrix;
mod mistakes;
mod newcomers;
mod overriding;
mod peak;
mod recount;
mod replaying;
mod requirements;
mod retrying;
mod runs;
mod simulate;
mod support;
mod switch;
mod taking_along;
mod terms;
mod watching;
mod workloads;
