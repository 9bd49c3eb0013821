//! Pipes through which the kernel moves bytes between sockets without copying them to this process. A worker keeps its unused
//! pipes: creating one costs as much as several reads.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

const POOL_MAX: usize = 64;
/// Capacity to request for a pipe. A pipe that the system does not let grow is used as it is.
const CAPACITY_BYTES: usize = 256 * 1024;

#[derive(Default)]
pub struct Pipes {
    empty: RefCell<Vec<Ends>>,
}

struct Ends {
    from: OwnedFd,
    to: OwnedFd,
}

/// A pipe and its fill level. On drop, an empty pipe returns to the pool; a filled one is closed.
pub struct Pipe {
    /// `None` only during drop.
    ends: Option<Ends>,
    /// Bytes that went in and have not come out.
    pub filled: usize,
    pipes: Rc<Pipes>,
}

impl Pipes {
    /// Takes an empty pipe. An error: no descriptor is left, or the user has too many pipes.
    pub fn take(self: &Rc<Self>) -> io::Result<Pipe> {
        let pooled = self.empty.borrow_mut().pop();
        let ends = match pooled {
            Some(ends) => ends,
            None => {
                let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // A pipe that cannot grow is usable as it is.
                let _ = fcntl_setpipe_size(&to, CAPACITY_BYTES);
                Ends { from, to }
            }
        };
        Ok(Pipe { ends: Some(ends), filled: 0, pipes: Rc::clone(self) })
    }
}

impl Pipe {
    /// Read end and write end.
    pub fn ends(&self) -> io::Result<(&OwnedFd, &OwnedFd)> {
        let ends = self.ends.as_ref().ok_or_else(|| io::Error::other("a pipe was used after its end"))?;
        Ok((&ends.from, &ends.to))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take().filter(|_| self.filled == 0) else { return };
        let mut empty = self.pipes.empty.borrow_mut();
        if empty.len() < POOL_MAX {
            empty.push(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_used_again_and_one_with_bytes_in_it_is_not() {
        let pipes: Rc<Pipes> = Rc::default();
        let kept = || pipes.empty.borrow().len();
        let mut one = pipes.take().expect("a pipe");
        let two = pipes.take().expect("a pipe");
        one.filled = 1;
        drop(one);
        assert_eq!(kept(), 0, "the next connection would get what is in it");
        drop(two);
        assert_eq!(kept(), 1);
        let again = pipes.take().expect("a pipe");
        assert_eq!((kept(), again.filled), (0, 0));
    }
}
