//! Tasks, what wakes them, and in which order they run.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn tasks_wake_each_other_and_end_with_the_first() {
    let pending: Rc<RefCell<Vec<u32>>> = Rc::default();
    let notes = Rc::clone(&pending);
    let ended = run(async move {
        let notify = Rc::new(tokio::sync::Notify::new());
        for number in [1, 2] {
            let (notify, notes) = (Rc::clone(&notify), Rc::clone(&notes));
            spawn(async move {
                notes.borrow_mut().push(number);
                notify.notify_one();
            });
        }
        spawn(std::future::pending());
        notify.notified().await;
        notify.notified().await;
        7
    });
    assert_eq!(ended.expect("runs"), 7);
    assert_eq!(*pending.borrow(), [1, 2]);
}

#[test]
fn another_thread_wakes_the_first_task_and_ticks_come_by_themselves() {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let ticked = run(async move {
        let (tick_sender, mut tick_receiver) = tokio::sync::mpsc::unbounded_channel();
        spawn(async move {
            tick(TICK_NS).await;
            tick(TICK_NS).await;
            std::thread::spawn(move || sender.send(5));
            let _ = tick_sender.send(());
        });
        tick_receiver.recv().await;
        receiver.recv().await
    });
    assert_eq!(ticked.expect("runs"), Some(5));
}

#[test]
fn a_task_is_not_woken_on_another_thread() {
    let woken = run(async {
        let (give, mut given) = tokio::sync::mpsc::unbounded_channel();
        let task = spawn(poll_fn(move |cx| {
            let _ = give.send(cx.waker().clone());
            Poll::Pending
        }));
        let waker = given.recv().await.expect("is given");
        let woken = std::thread::spawn(move || waker.wake()).join();
        task.abort();
        woken
    });
    assert!(woken.expect("runs").is_err());
}

#[test]
fn a_task_that_has_used_its_share_waits_for_the_next_look_at_sockets_whoever_wakes_it() {
    let ended = run(async {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let woken: Rc<RefCell<Option<Waker>>> = Rc::default();
        let waking = Rc::clone(&woken);
        spawn(poll_fn(move |cx| {
            let mut bytes = 0;
            while has_budget() {
                bytes += 1000;
                consume_budget(1000);
            }
            let _ = sender.send((polls(), bytes));
            *waking.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }));
        // It has work from another one all the time.
        let waking = spawn(poll_fn(move |cx| {
            woken.borrow().iter().for_each(Waker::wake_by_ref);
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let mut seen = Vec::new();
        while seen.len() < 4 {
            seen.extend(receiver.recv().await);
        }
        waking.abort();
        seen
    });
    let seen = ended.expect("runs");
    let first = seen[0].0;
    let bytes = 1000 * BUDGET_BYTES.div_ceil(MIN_COST);
    let expected: Vec<(u64, u32)> = (0..4).map(|number| (first + number, bytes)).collect();
    assert_eq!(seen, expected, "once for each look, and small reads count for more");
}

#[test]
fn a_task_that_is_ended_goes_and_its_place_is_used_again() {
    let kept = Rc::new(());
    let ended = run(async {
        let held = Rc::clone(&kept);
        let task = spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        task.abort();
        let count = Rc::strong_count(&kept);
        let runtime = current().expect("runs");
        (count, runtime.tasks.borrow().free.len())
    });
    assert_eq!(ended.expect("runs"), (1, 1));
}

/// A socket that the worker is told of, and its other side.
fn pair() -> (OwnedFd, UnixStream, Registration) {
    let (own, other) = UnixStream::pair().expect("sockets");
    let own = OwnedFd::from(own);
    let registration = Registration::new(own.as_fd(), 0, false).expect("a place");
    (own, other, registration)
}

/// How many bytes have come to, as far as is known.
fn readable_count(pairs: &[(OwnedFd, UnixStream, Registration)]) -> usize {
    pairs.iter().filter(|(_, _, registration)| registration.source.flags.get() & READABLE != 0).count()
}

#[test]
fn slow_sockets_are_looked_at_once_a_tick_and_a_few_at_a_time_while_others_are_looked_at_always() {
    let seen = run(async {
        let reactor = current().expect("runs").reactor();
        let slow: Vec<_> = (0..20).map(|_| pair()).collect();
        let usual = [pair()];
        for (socket, other, registration) in &slow {
            registration.set_slow(socket.as_fd(), true);
            (&*other).write_all(b"x").expect("is open");
        }
        let mut looks = Vec::new();
        for look in 0..6 {
            if look == 2 {
                reactor.tick();
            }
            (&usual[0].1).write_all(b"x").expect("is open");
            let happened = reactor.poll(false, |_| Ok(())).expect("looks");
            looks.push((happened, readable_count(&slow), reactor.is_slow_due()));
        }
        looks
    });
    let expected =
        [(1, 0, false), (1, 0, false), (1, 8, true), (1, 16, true), (1, 20, false), (1, 20, false)];
    assert_eq!(seen.expect("runs"), expected);
}

#[test]
fn a_socket_that_is_not_slow_any_more_is_looked_at_with_the_usual_ones_and_misses_nothing() {
    let seen = run(async {
        let reactor = current().expect("runs").reactor();
        let pairs = [pair(), pair()];
        let poll = |expected: u32| {
            assert_eq!(reactor.poll(false, |_| Ok(())).expect("looks"), expected);
        };
        // There is room for bytes to go.
        poll(2);
        pairs.iter().for_each(|(socket, _, registration)| registration.set_slow(socket.as_fd(), true));
        let [(first, other, registration), (_, gone, _)] = &pairs;
        (&*other).write_all(b"x").expect("is open");
        gone.shutdown(std::net::Shutdown::Both).expect("is open");
        poll(0);
        registration.set_slow(first.as_fd(), false);
        poll(1);
        let came = readable_count(&pairs);
        reactor.tick();
        poll(0);
        let flags = pairs[1].2.source.flags.get();
        let [(first, other, registration), _] = pairs;
        registration.deregister(first.as_fd());
        (&other).write_all(b"x").expect("is open");
        poll(0);
        (came, flags & ENDED)
    });
    assert_eq!(seen.expect("runs"), (1, ENDED));
}

#[test]
fn many_that_are_slow_have_a_part_of_a_worker_that_has_much_to_do() {
    let seen = run(async {
        let reactor = current().expect("runs").reactor();
        let slow: Vec<_> = (0..200).map(|_| pair()).collect();
        let usual: Vec<_> = (0..256).map(|_| pair()).collect();
        for (socket, other, registration) in &slow {
            registration.set_slow(socket.as_fd(), true);
            (&*other).write_all(b"x").expect("is open");
        }
        reactor.tick();
        reactor.poll(false, |_| Ok(())).expect("looks");
        (readable_count(&slow), usual.len())
    });
    assert_eq!(seen.expect("runs"), (72, 256), "eight, and eight for each 32 of others");
}
