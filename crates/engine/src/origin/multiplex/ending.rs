//! How an origin ends a connection of HTTP/2: for how many requests it was, and when it has been idle for too long.

use std::io;
use std::rc::Rc;

use assay_http2::ErrorCode;
use assay_plane::arrival::is_delivered;
use assay_plane::clock::monotonic_ns;

use super::{Multiplex, Stage};
use crate::origin::closing::Closing;
use crate::origin::local::Due;

impl Multiplex {
    /// Ends a connection that has carried as many requests as it may. A client that has had several under way at once may have sent others by
    /// now: they are taken. One that has one at a time may look for the end only when it has the next request, as httpd does, and
    /// must not find the connection open then.
    pub(super) fn retire_if_used_up(&mut self) {
        if self.uses_left > 0 || self.wire.is_closing() {
            return;
        }
        match self.is_shared {
            true => self.wire.retire(),
            false => self.wire.go_away(ErrorCode::NO_ERROR),
        }
    }

    /// Says that nothing more comes, and reads on until the client has ended its side as well.
    pub(super) fn linger(&mut self) -> io::Result<()> {
        self.transport.say_end();
        socket2::SockRef::from(self.transport.socket()).shutdown(std::net::Shutdown::Write)?;
        if let Some((_, ticket)) = self.idle.take() {
            self.local.timer.cancel(ticket);
        }
        self.alarm.take_idle();
        let (closing, first_ns) = Closing::begin(monotonic_ns());
        self.closing = Some(closing);
        self.look_at(first_ns);
        Ok(())
    }

    /// The client was waited for for long enough.
    pub(super) fn has_lingered(&mut self) -> bool {
        let is_delivered = is_delivered(self.transport.socket());
        let next_ns = self.closing.as_mut().and_then(|closing| closing.look(is_delivered, monotonic_ns()));
        if let Some(next_ns) = next_ns {
            self.look_at(next_ns);
        }
        next_ns.is_none()
    }

    /// Has the alarm ring at a time.
    fn look_at(&mut self, at_ns: u64) {
        let due = Due::Idle(Rc::clone(&self.alarm));
        self.idle = Some((0, self.local.timer.schedule(at_ns, due)));
    }

    /// Gives up the requests that are under way.
    pub(super) fn abandon(&mut self) {
        for served in std::mem::take(&mut self.served).into_iter().flatten() {
            self.wire.reset(served.stream, ErrorCode::CANCEL);
            self.local.tally.borrow_mut().here().counts.broken += 1;
        }
        self.load = 0;
    }

    /// No request has been under way for as long as an idle connection is kept, or none but those whose bodies do not come; if not, the alarm
    /// rings when that may be.
    pub(super) fn is_idle_for_too_long(&mut self) -> bool {
        let Some((idle_ns, ticket)) = &mut self.idle else { return false };
        let mut under_way = self.served.iter().flatten();
        let used_ns = if self.load > 0 { self.used_ns.max(self.read_ns) } else { self.used_ns };
        let end_ns = used_ns.saturating_add(*idle_ns);
        let now_ns = monotonic_ns();
        if now_ns >= end_ns && under_way.all(|served| matches!(served.stage, Stage::Body(..))) {
            return true;
        }
        let next_ns = end_ns.max(now_ns.saturating_add(*idle_ns / 2));
        *ticket = self.local.timer.schedule(next_ns, Due::Idle(Rc::clone(&self.alarm)));
        false
    }
}
