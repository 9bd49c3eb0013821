//! What does `Cache-Control` allow?
