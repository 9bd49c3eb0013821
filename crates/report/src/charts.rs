//! What the charts show.
