//! The Multiplier and the Collector over real sockets.
