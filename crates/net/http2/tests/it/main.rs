//! Connections against each other, and against another implementation of HTTP/2.

mod against_h2;
mod both_sides;
