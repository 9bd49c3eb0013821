//! What time is it, and when did the run start?
