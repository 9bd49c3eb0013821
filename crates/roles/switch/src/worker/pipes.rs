//! Pipes through which the kernel moves bytes from one socket to another without copying them to this process. Those of a worker
//! that nobody uses are kept: making one costs as much as several reads.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// Empty pipes that are kept.
const MOST_KEPT: usize = 64;
/// Room that a pipe is to have. One that the system does not let grow so far is used as it is.
const ROOM_BYTES: usize = 256 * 1024;

/// The pipes of a worker.
#[derive(Default)]
pub struct Pipes {
    empty: RefCell<Vec<Ends>>,
}

struct Ends {
    from: OwnedFd,
    to: OwnedFd,
}

/// A pipe with what is in it. If it is dropped with something in it, it is closed; an empty one goes back to the others.
pub struct Pipe {
    /// None only while it is dropped.
    ends: Option<Ends>,
    /// Bytes that went in and have not come out.
    pub filled: usize,
    pipes: Rc<Pipes>,
}

impl Pipes {
    /// An empty pipe. An error: no descriptor is left, or the user has too many pipes.
    pub fn take(self: &Rc<Self>) -> io::Result<Pipe> {
        let kept = self.empty.borrow_mut().pop();
        let ends = match kept {
            Some(ends) => ends,
            None => {
                let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // One that cannot grow is of use as it is.
                let _ = fcntl_setpipe_size(&to, ROOM_BYTES);
                Ends { from, to }
            }
        };
        Ok(Pipe { ends: Some(ends), filled: 0, pipes: Rc::clone(self) })
    }
}

impl Pipe {
    /// Where bytes come out, and where they go in.
    pub fn ends(&self) -> io::Result<(&OwnedFd, &OwnedFd)> {
        let ends = self.ends.as_ref().ok_or_else(|| io::Error::other("a pipe was used after its end"))?;
        Ok((&ends.from, &ends.to))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take().filter(|_| self.filled == 0) else { return };
        let mut empty = self.pipes.empty.borrow_mut();
        if empty.len() < MOST_KEPT {
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
