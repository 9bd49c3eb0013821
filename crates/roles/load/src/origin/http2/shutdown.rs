//! End of an HTTP/2 connection of an origin: after its last request, or when it has been idle for too long.

use std::io;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_http2::ErrorCode;
use assay_net::rx_timestamps::is_delivered;

use super::{Http2Connection, StreamStage};
use crate::origin::lingering_close::LingeringClose;
use crate::origin::worker_state::OriginTimerEvent;

impl Http2Connection {
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
        self.transport.send_close_notify();
        socket2::SockRef::from(self.transport.socket()).shutdown(std::net::Shutdown::Write)?;
        if let Some((_, ticket)) = self.idle.take() {
            self.worker.timer.cancel(ticket);
        }
        self.alarm.take_idle();
        let (closing, first_ns) = LingeringClose::begin(monotonic_ns());
        self.closing = Some(closing);
        self.set_alarm(first_ns);
        Ok(())
    }

    /// True once the client was waited for for long enough.
    pub(super) fn is_linger_over(&mut self) -> bool {
        let is_delivered = is_delivered(self.transport.socket());
        let next_ns = self.closing.as_mut().and_then(|closing| closing.check(is_delivered, monotonic_ns()));
        if let Some(next_ns) = next_ns {
            self.set_alarm(next_ns);
        }
        next_ns.is_none()
    }

    /// Has the alarm ring at a time.
    fn set_alarm(&mut self, at_ns: u64) {
        let due = OriginTimerEvent::Idle(Rc::clone(&self.alarm));
        self.idle = Some((0, self.worker.timer.schedule(at_ns, due)));
    }

    /// Gives up the requests that are under way.
    pub(super) fn abandon(&mut self) {
        for stream_request in std::mem::take(&mut self.streams).into_iter().flatten() {
            self.wire.reset(stream_request.stream, ErrorCode::CANCEL);
            self.worker.tally.borrow_mut().current_recorder().counts.broken += 1;
        }
        self.load = 0;
    }

    /// No request, or none but such whose bodies do not come, has been under way for as long as an idle connection is kept; if not, the alarm
    /// rings when that may be.
    pub(super) fn is_idle_for_too_long(&mut self) -> bool {
        let Some((idle_ns, ticket)) = &mut self.idle else { return false };
        let mut under_way = self.streams.iter().flatten();
        let used_ns = if self.load > 0 { self.used_ns.max(self.read_ns) } else { self.used_ns };
        let end_ns = used_ns.saturating_add(*idle_ns);
        let now_ns = monotonic_ns();
        if now_ns >= end_ns
            && under_way.all(|stream_request| matches!(stream_request.stage, StreamStage::Body(..)))
        {
            return true;
        }
        let next_ns = end_ns.max(now_ns.saturating_add(*idle_ns / 2));
        *ticket = self.worker.timer.schedule(next_ns, OriginTimerEvent::Idle(Rc::clone(&self.alarm)));
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::task::Poll;
    use std::time::Duration;

    use assay_http2::{Config, Connection as Client, RequestHead};
    use assay_workload::model::{HttpVersion, Weighted};
    use tokio::net::TcpListener;

    use super::*;
    use crate::origin::testing::{shared_of, workload};
    use crate::origin::worker_state::WorkerState;

    const HEAD: RequestHead<'_> =
        RequestHead { method: b"POST", scheme: b"http", authority: b"a.test:80", path: b"/assay/health" };

    /// Does what can be done now; whether it has ended.
    async fn turn(connection: &mut Http2Connection) -> bool {
        poll_fn(|context| Poll::Ready(connection.poll(context).is_ready())).await
    }

    /// An upload has begun, and the alarm rings as late as that of a thread that did not run meanwhile: whether the request goes on, and whether
    /// the connection is about to end.
    async fn rung_late(has_more: bool) -> (bool, bool) {
        let mut workload = workload();
        workload.servers[0].http_versions = Weighted::one(HttpVersion::Http2);
        workload.servers[0].idle_timeout = Some(Duration::from_secs(3600));
        let worker = Rc::new(WorkerState::new(shared_of(workload).into(), 0).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let transport = worker.shared.accept(listener.accept().await.unwrap().0, 0).unwrap();
        let mut connection = Http2Connection::new(worker, transport, 0);
        let mut client = Client::client(Config::default());
        let stream = client.request(&HEAD, std::iter::empty(), false).unwrap();
        socket.write_all(client.output()).unwrap();
        client.wrote(client.output().len());
        while connection.load == 0 {
            assert!(!turn(&mut connection).await);
            tokio::task::yield_now().await;
        }
        if has_more {
            assert!(!turn(&mut connection).await, "all is read");
            client.data(stream, b"more", false).unwrap();
            socket.write_all(client.output()).unwrap();
            connection.transport.socket().readable().await.unwrap();
        }
        // As long as the machine has run, and that is over.
        (connection.used_ns, connection.read_ns) = (0, 0);
        connection.idle.as_mut().unwrap().0 = monotonic_ns();
        connection.alarm.fire_idle();
        turn(&mut connection).await;
        (connection.load == 1, connection.wire.is_closing())
    }

    #[test]
    fn what_lies_unread_when_the_alarm_rings_late_has_come_in_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(rung_late(true)), (true, false));
        assert_eq!(runtime.block_on(rung_late(false)), (false, true));
    }
}
