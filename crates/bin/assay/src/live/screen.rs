//! The terminal that the live view takes, and gives back. On every way out.
//!
//! The terminal stays in its usual mode, so that Ctrl-C stays a signal; only the echo of typed keys is off, and keys come
//! one by one, without anybody having to wait for them.

use std::io::{self, BufWriter, Stderr, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::{cursor, execute, terminal};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// True while the alternate screen is up, for the panic hook.
static UP: AtomicBool = AtomicBool::new(false);

/// The alternate screen; dropping it brings the usual one back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    /// Terminal settings to bring back; none when standard input is not the terminal.
    before: Option<Termios>,
}

impl Screen {
    /// Puts the alternate screen up.
    pub fn open() -> io::Result<Self> {
        restore_when_panicking();
        let mut out = BufWriter::new(io::stderr());
        execute!(out, terminal::EnterAlternateScreen, cursor::Hide)?;
        UP.store(true, Ordering::SeqCst);
        let terminal = match Terminal::new(CrosstermBackend::new(out)) {
            Ok(terminal) => terminal,
            Err(error) => {
                leave();
                return Err(error);
            }
        };
        Ok(Self { terminal, before: echo_off() })
    }

    /// True when keys can be read from standard input.
    pub fn has_keys(&self) -> bool {
        self.before.is_some()
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        if let Some(before) = &self.before {
            // Keys typed meanwhile are dropped (Flush): they were not meant for the shell.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}

/// Turns the echo of typed keys off; gives what was before. Who runs in the background leaves the terminal alone.
fn echo_off() -> Option<Termios> {
    if tcgetpgrp(io::stdin()).ok()? != getpgrp() {
        return None;
    }
    let before = tcgetattr(io::stdin()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    // A read gives what there is, also when that is nothing.
    quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
    quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(io::stdin(), OptionalActions::Now, &quiet).ok()?;
    Some(before)
}

/// Brings the usual screen back, once.
fn leave() {
    if UP.swap(false, Ordering::SeqCst) {
        let mut out = io::stderr();
        let _ = execute!(out, terminal::LeaveAlternateScreen, cursor::Show);
        let _ = out.flush();
    }
}

/// A panic's message must not vanish with the alternate screen.
fn restore_when_panicking() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            usual(panic);
        }));
    });
}
