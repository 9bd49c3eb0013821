//! Sessions against each other, without sockets: what one side appends to its buffer is what the other receives.

mod pair;
mod refusals;
mod streams;
