//! The vocabulary of several machines: how an agent and a coordinator talk, and what is known of their clocks.
//!
//! A *fleet* is the agents that are connected to one NATS server. An agent runs roles of a run on its machine; the
//! coordinator is the command that makes the run. [`subject`] names where they meet, [`message`] is what they say there,
//! [`clock`] turns short exchanges into the offset of an agent's clock with a bound, and [`share`] divides robots and origins among machines.
//!
//! *Does not:* connect to anything, start a process, or read a clock (that is `assay-lab`). Bytes and instants are arguments.

pub mod clock;
pub mod message;
pub mod name;
pub mod share;
pub mod subject;
