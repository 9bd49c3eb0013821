//! Ctrl-C. The first requests a clean end of the run, the second ends it now.

use std::io;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::output;

/// SIGINT and SIGTERM, which mean the same here.
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Takes the signals over. Must be called on a runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// For work that runs on no runtime of ours: turns true with the first interrupt; the second ends the process at once.
pub fn noticed() -> io::Result<watch::Receiver<bool>> {
    let (sender, noticed) = watch::channel(false);
    beside(async move |mut interrupts| {
        interrupts.next().await;
        // Nobody looks any more when the work has just ended.
        let _ = sender.send(true);
        interrupts.next().await;
        "quit at once\n"
    })?;
    Ok(noticed)
}

/// For work of which nothing can be kept: an interrupt ends the process with these words.
pub fn ends_with(words: &'static str) -> io::Result<()> {
    beside(async move |mut interrupts| {
        interrupts.next().await;
        words
    })
}

/// Waits in a thread beside the work; the process ends when `wait` does, with the words that it gives.
fn beside(wait: impl AsyncFnOnce(Interrupts) -> &'static str + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    // Here rather than in the thread: from now on none is missed.
    let interrupts = Interrupts::listen()?;
    drop(guard);
    std::thread::Builder::new().name("interrupts".into()).spawn(move || {
        let words = runtime.block_on(wait(interrupts));
        output::eprint(words);
        std::process::exit(Exit::Interrupted as i32);
    })?;
    Ok(())
}

/// Waits until an interrupt was noticed.
pub async fn requested(noticed: &mut watch::Receiver<bool>) {
    if noticed.wait_for(|requested| *requested).await.is_err() {
        // No request can come any more.
        std::future::pending().await
    }
}
