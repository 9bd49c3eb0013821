//! Who has the machine: a run that is judged by its times has it alone, others share it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So many runs share the machine: most of a run is waiting.
const SHARED: usize = 3;

/// A place on the machine, until it is dropped.
pub struct Place {
    alone: bool,
}

#[derive(Default)]
struct Machine {
    shared: usize,
    alone: bool,
    /// Runs that wait to have it alone; no other begins before them.
    waiting: usize,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine { shared: 0, alone: false, waiting: 0 });
static CHANGED: Condvar = Condvar::new();

fn machine() -> MutexGuard<'static, Machine> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn when(
    machine: MutexGuard<'static, Machine>,
    is_so: impl Fn(&Machine) -> bool,
) -> MutexGuard<'static, Machine> {
    CHANGED.wait_while(machine, |machine| !is_so(machine)).unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no other run is going on.
pub fn alone() -> Place {
    let mut machine = machine();
    machine.waiting += 1;
    let mut machine = when(machine, |machine| !machine.alone && machine.shared == 0);
    machine.waiting -= 1;
    machine.alone = true;
    Place { alone: true }
}

/// Waits until there is room beside others.
pub fn shared() -> Place {
    let room = |machine: &Machine| !machine.alone && machine.waiting == 0 && machine.shared < SHARED;
    when(machine(), room).shared += 1;
    Place { alone: false }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut machine = machine();
        if self.alone {
            machine.alone = false;
        } else {
            machine.shared -= 1;
        }
        CHANGED.notify_all();
    }
}

/// Does something with each, side by side; how many runs that makes at once is for [`shared`] to say.
pub fn side_by_side<T: Sync, R: Send>(all: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let each = &each;
    std::thread::scope(|scope| {
        let going: Vec<_> = all.iter().map(|one| scope.spawn(move || each(one))).collect();
        going
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
