//! `assay lsp`: the language server of workloads, on standard input and output.
//!
//! A thread reads, so that what has come in the meantime is seen before anything is said about a text that has changed since.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::anyhow;
use assay_pgl::lsp::{FrameError, Frames, Host, Server, framed};
use assay_pgl::{FileError, Files, Listing, ResolvedFiles};
use clap::Args;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::source::FileSystem;

const EXAMPLES: &str = "\
Examples:
  assay lsp                  what an editor starts, to speak with it
  assay lsp -I ~/workloads   included files are looked for there, too";

/// Flags of `assay lsp`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LspArgs {
    /// Look for included files in DIR too; may be repeated
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Passed by editors; standard input and output are used in any case
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// Serves one editor until it says goodbye.
pub fn lsp(args: &LspArgs) -> Result<Exit, Failure> {
    if io::stdin().is_terminal() {
        let hint = "let an editor start it; the manual says how (how to edit workloads)";
        return Err(Failure::usage(anyhow!(
            "assay lsp speaks the Language Server Protocol on standard input, and this is a terminal"
        ))
        .hint(hint));
    }
    let include = args.include.iter().map(|directory| directory.display().to_string()).collect();
    let mut server = Server::new(ThisMachine { files: FileSystem::new() }, include);
    let (sender, messages) = mpsc::channel();
    std::thread::spawn(move || read(io::stdin().lock(), &sender));
    serve(&mut server, &messages, &mut io::stdout().lock())
}

/// Passes on what comes, message by message; ends with the stream.
fn read(mut from: impl Read, sender: &Sender<Result<Vec<u8>, FrameError>>) {
    let mut frames = Frames::default();
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => frames.push(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        loop {
            match frames.next_message() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    if sender.send(Ok(message)).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    // Nothing after it can be read either.
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
    }
}

fn serve(
    server: &mut Server<ThisMachine>,
    messages: &Receiver<Result<Vec<u8>, FrameError>>,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    while let Ok(first) = messages.recv() {
        // All that has come already, before something is said on its own account.
        for message in std::iter::once(first).chain(messages.try_iter()) {
            let message = message.map_err(|error| Failure::failed(anyhow!(error)))?;
            let responses = server.receive(&message);
            if write(out, &responses).is_err() || server.has_exited() {
                return Ok(if server.was_shut_down() { Exit::Fine } else { Exit::Failed });
            }
        }
        if write(out, &server.publish()).is_err() {
            break;
        }
    }
    // The editor has gone.
    Ok(if server.was_shut_down() { Exit::Fine } else { Exit::Failed })
}

fn write(out: &mut impl Write, messages: &[Value]) -> io::Result<()> {
    for message in messages {
        out.write_all(&framed(message))?;
    }
    out.flush()
}

/// The files of this machine, as far as an editor needs them.
struct ThisMachine {
    files: FileSystem,
}

impl Files for ThisMachine {
    fn text(&self, path: &str) -> Result<Option<String>, FileError> {
        // Standard input is the editor's.
        if path == "-" { Ok(None) } else { self.files.text(path) }
    }

    fn list(&self, path: &str) -> Result<Option<Listing>, FileError> {
        self.files.list(path)
    }

    /// Only how a file begins: what bodies are made of is not read whenever a key is pressed.
    fn bytes(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        assay_base::files::open(path)?.take(ResolvedFiles::START as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Host for ThisMachine {
    fn bundled_path(&self, base_name: &str) -> Option<String> {
        let text = assay_pgl::bundled(base_name)?;
        let directory = cache()?.join("assay").join(env!("CARGO_PKG_VERSION"));
        let path = directory.join(base_name);
        if assay_base::files::text(&path, assay_base::files::SOURCE_MAX).ok().as_deref() != Some(text) {
            std::fs::create_dir_all(&directory).ok()?;
            std::fs::write(&path, text).ok()?;
        }
        path.to_str().map(str::to_owned)
    }

    fn absolute(&self, path: &str) -> String {
        let whole =
            std::path::absolute(path).ok().and_then(|whole| whole.into_os_string().into_string().ok());
        whole.unwrap_or_else(|| path.to_owned())
    }
}

/// Directory for files that can be made again (XDG Base Directory Specification).
fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}
