//! The server as editors meet it: whole messages in, whole messages out.

mod broken;
