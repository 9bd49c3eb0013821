//! Whatever bytes arrive as a message between agents and coordinators: they are one, of this protocol, or are refused. What is
//! one is the same after it was written again.
#![no_main]

use assay_lab::machines::fleet::message::{AgentInfo, Order, ClockRequest, Reading, Response, Report, read, read_plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(info) = read::<AgentInfo>(bytes) {
        assert_eq!(read::<AgentInfo>(&serde_json::to_vec(&info).expect("it can be written")), Ok(info));
    }
    if let Ok(order) = read::<Order>(bytes) {
        assert!(serde_json::to_vec(&order).is_ok());
    }
    let _ = read_plain::<Report>(bytes);
    let _ = read_plain::<Response>(bytes);
    let _ = read_plain::<ClockRequest>(bytes);
    let _ = read_plain::<Reading>(bytes);
});
