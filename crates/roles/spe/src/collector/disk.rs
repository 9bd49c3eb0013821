//! Recordings whose bodies are on disk, for want of memory.
//!
//! Each body is a file; heads and times stay in memory, in a bounded index. One thread executes all file operations in order, so
//! that no response waits for the disk. A recording that is requested while its file is being read is replayed once it is loaded,
//! which the recorded time to the head usually hides. If a file cannot be written or read, that recording is lost, and nothing
//! else.

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
use crate::collector::recording_store::RecordingKey;

/// Bound on the bytes that wait to be written.
const PENDING_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Files occupy whole blocks.
const BLOCK_BYTES: u64 = 4096;

type FileId = u64;

enum DiskTask {
    Write(FileId, Vec<u8>),
    /// Reads a file and removes it.
    Read(FileId, oneshot::Sender<Option<Vec<u8>>>),
    Remove(FileId),
}

#[derive(Debug)]
pub struct Disk {
    tasks: Option<Sender<DiskTask>>,
    thread: Option<JoinHandle<()>>,
    pending_bytes: Arc<AtomicU64>,
    index: Lru<RecordingKey, Vec<(Rc<Recording>, FileId)>>,
    /// Memory used by the index.
    index_bytes: u64,
    max_index_bytes: u64,
    next: FileId,
    dropped: u64,
}

impl Disk {
    /// Opens a store in a directory of its own, which is created. `max_index_bytes` bounds the memory of the index.
    pub fn open(spec: &DiskSpec, max_index_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&spec.directory)?;
        let (tasks, waiting) = channel();
        let pending_bytes: Arc<AtomicU64> = Arc::default();
        let (directory, written) = (spec.directory.clone(), Arc::clone(&pending_bytes));
        let thread = std::thread::Builder::new()
            .name("disk".into())
            .spawn(move || run_tasks(&directory, &waiting, &written))?;
        Ok(Self {
            tasks: Some(tasks),
            thread: Some(thread),
            pending_bytes,
            index: Lru::new(spec.bytes),
            index_bytes: 0,
            max_index_bytes,
            next: 0,
            dropped: 0,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.index.used_bytes()
    }

    /// Keys with recordings on disk.
    pub fn keys(&self) -> u64 {
        self.index.len() as u64
    }

    /// Keys evicted from disk.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Stores the recordings of a key. Returns the recordings that are lost: those that could not be stored, and those evicted
    /// for them.
    pub fn put(
        &mut self,
        key: RecordingKey,
        recordings: Vec<Rc<Recording>>,
    ) -> Vec<(RecordingKey, Rc<Recording>)> {
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for recording in recordings {
            let length = recording.body_bytes();
            let has_room = self.pending_bytes.load(Ordering::Relaxed) + length <= PENDING_MAX_BYTES;
            let Some(body) = has_room.then(|| recording.unload()).flatten() else {
                lost.push((Rc::clone(&key), recording));
                continue;
            };
            bytes += length.next_multiple_of(BLOCK_BYTES);
            self.pending_bytes.fetch_add(length, Ordering::Relaxed);
            self.next += 1;
            self.send(DiskTask::Write(self.next, body));
            kept.push((recording, self.next));
        }
        if kept.is_empty() {
            self.dropped += 1;
            return lost;
        }
        let overhead = Lru::<RecordingKey, Vec<(Rc<Recording>, FileId)>>::ENTRY_OVERHEAD;
        let most_bytes = self.index.bound_bytes().saturating_sub(overhead);
        if bytes > most_bytes {
            self.forget(&key, kept, &mut lost);
            return lost;
        }
        let kept_weight = weight(&key, &kept);
        self.index_bytes += kept_weight;
        while self.index_bytes > self.max_index_bytes || self.index.used_bytes() + bytes > most_bytes {
            let Some((oldest, gone)) = self.index.pop_oldest() else { break };
            self.index_bytes -= weight(&oldest, &gone);
            self.forget(&oldest, gone, &mut lost);
        }
        if self.index.insert(key, kept, bytes).is_err() {
            // Cannot happen, as there is room. The files are removed with the directory.
            self.index_bytes -= kept_weight;
        }
        lost
    }

    /// Removes the recordings of a key and loads them into memory in the background. Needs a tokio runtime that can run local
    /// tasks.
    pub fn take(&mut self, key: &[u8]) -> Vec<Rc<Recording>> {
        let Some(there) = self.index.remove(key) else { return Vec::new() };
        self.index_bytes -= weight(key, &there);
        let load = |(recording, id): (Rc<Recording>, FileId)| {
            let (sender, read) = oneshot::channel();
            self.send(DiskTask::Read(id, sender));
            let loading = Rc::clone(&recording);
            spawn_local(async move { loading.load(read.await.ok().flatten().as_deref()) });
            recording
        };
        there.into_iter().map(load).collect()
    }

    fn forget(
        &mut self,
        key: &RecordingKey,
        gone: Vec<(Rc<Recording>, FileId)>,
        lost: &mut Vec<(RecordingKey, Rc<Recording>)>,
    ) {
        self.dropped += 1;
        for (recording, id) in gone {
            self.send(DiskTask::Remove(id));
            lost.push((Rc::clone(key), recording));
        }
    }

    fn send(&self, task: DiskTask) {
        if let Some(tasks) = &self.tasks {
            // The thread ends only after this sender.
            let _ = tasks.send(task);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // The thread has removed its files; a panic message is on standard error.
            let _ = thread.join();
        }
    }
}

/// Memory still used by recordings on disk.
fn weight(key: &[u8], recordings: &[(Rc<Recording>, FileId)]) -> u64 {
    let index = recordings.iter().map(|(recording, _)| recording.weight_bytes() - recording.body_bytes());
    key.len() as u64 + index.sum::<u64>()
}

/// Executes the tasks, and finally removes the remaining files.
fn run_tasks(directory: &Path, tasks: &Receiver<DiskTask>, pending_bytes: &AtomicU64) {
    let path = |id: FileId| -> PathBuf { directory.join(format!("{id:016x}")) };
    let mut there: HashSet<FileId> = HashSet::new();
    for task in tasks {
        match task {
            DiskTask::Write(id, bytes) => {
                if std::fs::write(path(id), &bytes).is_ok() {
                    there.insert(id);
                }
                pending_bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            }
            DiskTask::Read(id, response) => {
                let bytes = there.remove(&id).then(|| std::fs::read(path(id)).ok()).flatten();
                // A file that cannot be removed does no harm; the receiver may have gone.
                let _ = std::fs::remove_file(path(id));
                let _ = response.send(bytes);
            }
            DiskTask::Remove(id) => {
                there.remove(&id);
                let _ = std::fs::remove_file(path(id));
            }
        }
    }
    for id in there {
        let _ = std::fs::remove_file(path(id));
    }
    // Fails, as intended, if the directory has other files.
    let _ = std::fs::remove_dir(directory);
}
