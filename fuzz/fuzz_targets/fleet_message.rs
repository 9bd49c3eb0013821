//! Whatever bytes arrive as a message between agents and coordinators: they are one, of this protocol, or are refused. What is
//! one is the same after it was written again.
#![no_main]

use assay_fleet::message::{Hello, Order, Question, Reading, Response, Spoken, read, read_plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(hello) = read::<Hello>(bytes) {
        assert_eq!(read::<Hello>(&serde_json::to_vec(&hello).expect("it can be written")), Ok(hello));
    }
    if let Ok(order) = read::<Order>(bytes) {
        assert!(serde_json::to_vec(&order).is_ok());
    }
    let _ = read_plain::<Spoken>(bytes);
    let _ = read_plain::<Response>(bytes);
    let _ = read_plain::<Question>(bytes);
    let _ = read_plain::<Reading>(bytes);
});
