//! Recordings that memory has no room for.
//!
//! Their bodies go into files, one for each; heads and times stay in memory, in an index of its own bounds. One thread does
//! what has to do with files, in order, so that no response waits for a disk: what is requested while it is read is replayed
//! from when it is there, which the recorded time to the head usually hides. A file that cannot be written or read is a
//! recording less, and nothing else.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::spec::DiskSpec;
use assay_cache::lru::Lru;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::collector::recording::Recording;
use crate::collector::shelf::Key;

/// Most bytes that wait to be written.
const MOST_PENDING_BYTES: u64 = 64 * 1024 * 1024;
/// A file takes whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// Number of a file.
type Id = u64;

enum Task {
    Write(Id, Vec<u8>),
    /// Reads a file and removes it.
    Read(Id, oneshot::Sender<Option<Vec<u8>>>),
    Remove(Id),
}

/// Recordings whose bodies are in files.
#[derive(Debug)]
pub struct Disk {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
    pending_bytes: Arc<AtomicU64>,
    index: Lru<Key, Vec<(Rc<Recording>, Id)>>,
    /// Memory that the index takes, and may take.
    index_bytes: u64,
    most_index_bytes: u64,
    next: Id,
    dropped: u64,
}

impl Disk {
    /// In a directory of its own, which is made; its index takes at most so much memory.
    pub fn open(spec: &DiskSpec, most_index_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&spec.directory)?;
        let (tasks, waiting) = channel();
        let pending_bytes: Arc<AtomicU64> = Arc::default();
        let (directory, written) = (spec.directory.clone(), Arc::clone(&pending_bytes));
        let thread = std::thread::Builder::new()
            .name("disk".into())
            .spawn(move || work(&directory, &waiting, &written))?;
        Ok(Self {
            tasks: Some(tasks),
            thread: Some(thread),
            pending_bytes,
            index: Lru::new(spec.bytes),
            index_bytes: 0,
            most_index_bytes,
            next: 0,
            dropped: 0,
        })
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.index.used_bytes()
    }

    /// Keys under which something is on disk.
    pub fn keys(&self) -> u64 {
        self.index.len() as u64
    }

    /// Keys that had to go for want of room here too.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes what was under a key in memory. What cannot be taken, and what has to go for it, is lost, and returned.
    pub fn put(&mut self, key: Key, recordings: Vec<Rc<Recording>>) -> Vec<(Key, Rc<Recording>)> {
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for recording in recordings {
            let length = recording.body_bytes();
            let has_room = self.pending_bytes.load(Ordering::Relaxed) + length <= MOST_PENDING_BYTES;
            let Some(body) = has_room.then(|| recording.unload()).flatten() else {
                lost.push((Rc::clone(&key), recording));
                continue;
            };
            bytes += length.next_multiple_of(BLOCK_BYTES);
            self.pending_bytes.fetch_add(length, Ordering::Relaxed);
            self.next += 1;
            self.send(Task::Write(self.next, body));
            kept.push((recording, self.next));
        }
        if kept.is_empty() {
            self.dropped += 1;
            return lost;
        }
        let overhead = Lru::<Key, Vec<(Rc<Recording>, Id)>>::ENTRY_OVERHEAD;
        let most_bytes = self.index.bound_bytes().saturating_sub(overhead);
        if bytes > most_bytes {
            self.forget(&key, kept, &mut lost);
            return lost;
        }
        let kept_weight = weight(&key, &kept);
        self.index_bytes += kept_weight;
        while self.index_bytes > self.most_index_bytes || self.index.used_bytes() + bytes > most_bytes {
            let Some((oldest, gone)) = self.index.pop_oldest() else { break };
            self.index_bytes -= weight(&oldest, &gone);
            self.forget(&oldest, gone, &mut lost);
        }
        if self.index.insert(key, kept, bytes).is_err() {
            // Cannot be: there is room. Its files go with the directory.
            self.index_bytes -= kept_weight;
        }
        lost
    }

    /// What there is under a key, on its way back into memory. Needs a tokio runtime that can run local tasks.
    pub fn take(&mut self, key: &[u8]) -> Vec<Rc<Recording>> {
        let Some(there) = self.index.remove(key) else { return Vec::new() };
        self.index_bytes -= weight(key, &there);
        let load = |(recording, id): (Rc<Recording>, Id)| {
            let (sender, read) = oneshot::channel();
            self.send(Task::Read(id, sender));
            let loading = Rc::clone(&recording);
            spawn_local(async move { loading.load(read.await.ok().flatten().as_deref()) });
            recording
        };
        there.into_iter().map(load).collect()
    }

    fn forget(&mut self, key: &Key, gone: Vec<(Rc<Recording>, Id)>, lost: &mut Vec<(Key, Rc<Recording>)>) {
        self.dropped += 1;
        for (recording, id) in gone {
            self.send(Task::Remove(id));
            lost.push((Rc::clone(key), recording));
        }
    }

    fn send(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            // The thread lives as long as this.
            let _ = tasks.send(task);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // It has removed its files; what it panicked about is on standard error.
            let _ = thread.join();
        }
    }
}

/// Memory that stays in use for what is on disk.
fn weight(key: &[u8], recordings: &[(Rc<Recording>, Id)]) -> u64 {
    let index = recordings.iter().map(|(recording, _)| recording.weight_bytes() - recording.body_bytes());
    key.len() as u64 + index.sum::<u64>()
}

/// Carries out the tasks, and in the end removes what is left.
fn work(directory: &Path, tasks: &Receiver<Task>, pending_bytes: &AtomicU64) {
    let path = |id: Id| -> PathBuf { directory.join(format!("{id:016x}")) };
    let mut there: HashSet<Id> = HashSet::new();
    for task in tasks {
        match task {
            Task::Write(id, bytes) => {
                if std::fs::write(path(id), &bytes).is_ok() {
                    there.insert(id);
                }
                pending_bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            }
            Task::Read(id, response) => {
                let bytes = there.remove(&id).then(|| std::fs::read(path(id)).ok()).flatten();
                // A file that cannot be removed does no harm; the receiver may have gone.
                let _ = std::fs::remove_file(path(id));
                let _ = response.send(bytes);
            }
            Task::Remove(id) => {
                there.remove(&id);
                let _ = std::fs::remove_file(path(id));
            }
        }
    }
    for id in there {
        let _ = std::fs::remove_file(path(id));
    }
    // If somebody else has put something there, it stays.
    let _ = std::fs::remove_dir(directory);
}
