//! What a tool runs: the digest over its program and its files.

use crate::ToolDefinition;
use haft_guard::payload_digest;
use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// More than this is no tool, but a disk.
const MOST_FILES: usize = 10_000;
const MOST_BYTES: u64 = 1 << 30;

/// What definitions run, and what that was when it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The programs and files, in the order of the definitions.
    places: Vec<PathBuf>,
    /// Over all of them; `None` where nothing is run that stands in a file of the tool's own. A program that is found
    /// in PATH is the system's.
    pub digest: Option<String>,
}

impl Payload {
    /// Of definitions whose paths are absolute.
    pub fn of(definitions: &[ToolDefinition]) -> io::Result<Self> {
        let commands = definitions.iter().filter_map(|definition| definition.command.as_deref());
        let mut places: Vec<PathBuf> = commands
            .flat_map(|command| std::iter::once(&command.program).chain(&command.files))
            .filter(|path| path.contains('/'))
            .map(PathBuf::from)
            .collect();
        // All tools of a server have the same program: once is enough.
        let servers = definitions.iter().filter_map(|definition| definition.mcp.as_deref());
        let own = servers.flat_map(|server| server.program.iter().chain(&server.files));
        for path in own.filter(|path| path.contains('/')).map(PathBuf::from) {
            if !places.contains(&path) {
                places.push(path);
            }
        }
        let digest = digest(&places)?;
        Ok(Payload { places, digest })
    }

    /// Whether everything is as it was.
    pub fn is_unchanged(&self) -> bool {
        digest(&self.places).is_ok_and(|now| now == self.digest)
    }
}

fn digest(places: &[PathBuf]) -> io::Result<Option<String>> {
    if places.is_empty() {
        return Ok(None);
    }
    let mut list = List::default();
    for (index, place) in places.iter().enumerate() {
        list.add(place, &format!("{index}"))?;
    }
    Ok(Some(payload_digest(list.text.as_bytes())))
}

/// Files with their digests, one on each line.
#[derive(Default)]
struct List {
    text: String,
    files: usize,
    bytes: u64,
}

impl List {
    /// A file, or a folder with everything in it. Where it stands is in the definition; here it is a number.
    fn add(&mut self, place: &Path, name: &str) -> io::Result<()> {
        let metadata = fs::metadata(place)?;
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(io::Error::other("a tool has more files than can be signed"));
        }
        if metadata.is_dir() {
            return self.add_folder(place, name);
        }
        if !metadata.is_file() {
            return Err(io::Error::other(format!("{} is neither a file nor a folder", place.display())));
        }
        self.bytes += metadata.len();
        if self.bytes > MOST_BYTES {
            return Err(io::Error::other("the files of a tool are larger than can be signed"));
        }
        self.line(&payload_digest(&fs::read(place)?), name);
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path, name: &str) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        self.line("folder", name);
        for entry in entries {
            let below = format!("{name}/{}", entry.file_name().to_string_lossy());
            match entry.file_type()?.is_symlink() {
                // Where it leads is what was signed. What is there is looked at through no link.
                true => self.line(&format!("link {}", fs::read_link(entry.path())?.display()), &below),
                false => self.add(&entry.path(), &below)?,
            }
        }
        Ok(())
    }

    fn line(&mut self, what: &str, name: &str) {
        // Writing to a string cannot fail. Quoted, so that no name runs into another line.
        let _ = writeln!(self.text, "{what:?} {name:?}");
    }
}
