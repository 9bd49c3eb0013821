//! HTTP on the wire: heads, bodies, dates
