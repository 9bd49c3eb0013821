//! What depends on how long a client may take with a request (5 s) and a collector with a response (3 s). Needs a
//! machine on which no thread waits that long for a processor.

#[path = "../../it/serve/client.rs"]
mod client;
#[path = "../../it/serve/collector.rs"]
mod collector;
mod requested;
mod sent;
#[path = "../../it/serve/watched.rs"]
mod watched;
