//! The robots: who sends what, when, and is the answer right?
