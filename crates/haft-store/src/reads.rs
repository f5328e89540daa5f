//! What was in the files that a conversation read.

use crate::private_file;
use haft_core::port::{ReadHashes, ReadRecord, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt::Display,
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Remembers as long as the process lasts.
///
/// ```
/// use haft_core::port::{ReadHashes, ReadRecord};
/// let reads = haft_store::MemoryReadHashes::default();
/// let record = ReadRecord { sha256: "ab".into(), at: jiff::Timestamp::UNIX_EPOCH };
/// reads.remember("local", "c1", "/work/a.txt", &record)?;
/// assert_eq!(reads.recall("local", "c1", "/work/a.txt")?, Some(record));
/// assert_eq!(reads.recall("local", "c2", "/work/a.txt")?, None);
/// # Ok::<(), haft_core::port::StoreError>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryReadHashes(Mutex<HashMap<[String; 3], ReadRecord>>);

impl ReadHashes for MemoryReadHashes {
    fn remember(
        &self,
        tenant: &str,
        conversation: &str,
        path: &str,
        record: &ReadRecord,
    ) -> Result<(), StoreError> {
        let key = [tenant, conversation, path].map(str::to_owned);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, record.clone());
        Ok(())
    }

    fn recall(&self, tenant: &str, conversation: &str, path: &str) -> Result<Option<ReadRecord>, StoreError> {
        let key = [tenant, conversation, path].map(str::to_owned);
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned())
    }
}

/// How large the file of one conversation grows before old lines go.
const MOST_BYTES: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a conversation is remembered after its last read.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// An empty file that is as old as the last search for old conversations. Looking at every conversation whenever one
/// begins costs more with each of them.
const SEARCHED: &str = "searched";

/// Remembers in a folder, one file for each conversation, so that several processes share it.
///
/// A line that cannot be read counts as not there: the file it spoke of has to be read again before it is edited.
///
/// ```
/// use haft_core::port::{ReadHashes, ReadRecord};
/// # let folder = tempfile::tempdir()?;
/// # let state = folder.path().join("reads");
/// let record = ReadRecord { sha256: "ab".into(), at: jiff::Timestamp::UNIX_EPOCH };
/// haft_store::FileReadHashes::new(&state).remember("local", "c1", "/work/a.txt", &record)?;
/// // Another process.
/// let reads = haft_store::FileReadHashes::new(&state);
/// assert_eq!(reads.recall("local", "c1", "/work/a.txt")?, Some(record));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileReadHashes {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    sha256: Cow<'a, str>,
    at: Timestamp,
}

impl FileReadHashes {
    /// In this folder, which is made when something is remembered first.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        FileReadHashes { folder: folder.into() }
    }

    fn file(&self, tenant: &str, conversation: &str) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update((tenant.len() as u64).to_le_bytes());
        hash.update(tenant);
        hash.update(conversation);
        let name: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.jsonl"))
    }

    /// Rewrites the file with the last line of each path only.
    fn shorten(file: &mut File, path: &PathBuf) -> io::Result<()> {
        let text = fs::read_to_string(path)?;
        let mut last = BTreeMap::new();
        for (number, text) in text.lines().enumerate() {
            if let Ok(line) = serde_json::from_str::<Line<'_>>(text) {
                last.insert(line.path.into_owned(), (number, text));
            }
        }
        let mut lines: Vec<_> = last.into_values().collect();
        lines.sort_unstable();
        // The older half goes, should that not be enough: what is forgotten is read again.
        let kept: u64 = lines.iter().map(|(_, text)| text.len() as u64 + 1).sum();
        let from = if kept > MOST_BYTES / 2 { lines.len() / 2 } else { 0 };
        file.set_len(0)?;
        let text: String = lines[from..].iter().flat_map(|(_, text)| [*text, "\n"]).collect();
        file.write_all(text.as_bytes())
    }

    /// Forgets conversations that ended long ago, and says how many. haft does this once a day; `haft gc` at once.
    pub fn forget_old(&self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        // First: another process that begins a conversation meanwhile does not do the same.
        let _ = self.note_searched();
        let mut gone = 0;
        for entry in entries.flatten() {
            let is_conversation = entry.path().extension().is_some_and(|end| end == "jsonl");
            let is_old = || age(&entry.metadata()).is_some_and(|age| age > KEPT);
            if is_conversation && is_old() && fs::remove_file(entry.path()).is_ok() {
                gone += 1;
            }
        }
        gone
    }

    fn note_searched(&self) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.folder.join(SEARCHED))?.set_modified(SystemTime::now())
    }

    /// Whether old conversations were not searched for since yesterday. A date in the future is none.
    fn is_search_due(&self) -> bool {
        age(&fs::metadata(self.folder.join(SEARCHED))).is_none_or(|age| age > DAY)
    }
}

/// How long ago something was changed; nothing where that is not known, or lies ahead.
fn age(metadata: &io::Result<fs::Metadata>) -> Option<Duration> {
    metadata.as_ref().ok()?.modified().ok()?.elapsed().ok()
}

fn failed(error: impl Display) -> StoreError {
    StoreError(format!("what was read could not be remembered: {error}"))
}

impl ReadHashes for FileReadHashes {
    fn remember(
        &self,
        tenant: &str,
        conversation: &str,
        path: &str,
        record: &ReadRecord,
    ) -> Result<(), StoreError> {
        let file_path = self.file(tenant, conversation);
        if !file_path.exists() {
            private_file::create_folder(&self.folder).map_err(failed)?;
            if self.is_search_due() {
                self.forget_old();
            }
        }
        let line = Line { path: path.into(), sha256: (&*record.sha256).into(), at: record.at };
        let mut line = serde_json::to_string(&line).map_err(failed)?;
        line.push('\n');
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&file_path).map_err(failed)?;
        file.lock().map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > MOST_BYTES {
            Self::shorten(&mut file, &file_path).map_err(failed)?;
        }
        file.write_all(line.as_bytes()).map_err(failed)
    }

    fn recall(&self, tenant: &str, conversation: &str, path: &str) -> Result<Option<ReadRecord>, StoreError> {
        let file = match File::open(self.file(tenant, conversation)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        file.lock_shared().map_err(failed)?;
        let text = io::read_to_string(&file).map_err(failed)?;
        let found = text.lines().rev().find_map(|line| {
            let line: Line<'_> = serde_json::from_str(line).ok()?;
            (line.path == path).then(|| ReadRecord { sha256: line.sha256.into_owned(), at: line.at })
        });
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sha256: &str) -> ReadRecord {
        ReadRecord { sha256: sha256.to_owned(), at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn the_last_one_counts_and_conversations_are_apart() {
        let folder = tempfile::tempdir().unwrap();
        let reads = FileReadHashes::new(folder.path().join("reads"));
        assert_eq!(reads.recall("t", "c", "/a").unwrap(), None);
        reads.remember("t", "c", "/a", &record("1")).unwrap();
        reads.remember("t", "c", "/b", &record("2")).unwrap();
        reads.remember("t", "c", "/a", &record("3")).unwrap();
        assert_eq!(reads.recall("t", "c", "/a").unwrap(), Some(record("3")));
        for (tenant, conversation) in [("t", "d"), ("u", "c"), ("", "tc"), ("tc", "")] {
            assert_eq!(reads.recall(tenant, conversation, "/a").unwrap(), None, "{tenant} {conversation}");
        }
    }

    #[test]
    fn a_cut_line_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let reads = FileReadHashes::new(folder.path());
        reads.remember("t", "c", "/a", &record("1")).unwrap();
        let path = reads.file("t", "c");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(reads.recall("t", "c", "/a").unwrap(), None);
    }

    fn made_old(path: &std::path::Path, days: u32) {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - days * DAY).unwrap();
    }

    /// Beginning a conversation looked at all conversations of 30 days.
    #[test]
    fn old_conversations_are_searched_for_once_a_day_and_not_by_every_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let reads = FileReadHashes::new(folder.path());
        let old = |conversation: &str| {
            reads.remember("t", conversation, "/a", &record("1")).unwrap();
            made_old(&reads.file("t", conversation), 31);
            reads.file("t", conversation)
        };
        let (first, recent) = (old("first"), reads.file("t", "recent"));
        reads.remember("t", "recent", "/a", &record("1")).unwrap();
        assert!(first.exists(), "a search was an hour ago or less, so a new conversation makes none");
        made_old(&folder.path().join(SEARCHED), 2);
        reads.remember("t", "next day", "/a", &record("1")).unwrap();
        assert!(!first.exists() && recent.exists(), "the next day it does");
        let second = old("second");
        assert_eq!(reads.forget_old(), 1, "`haft gc` does at once");
        assert!(!second.exists() && recent.exists());
        assert!(!reads.is_search_due());
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let folder = tempfile::tempdir().unwrap();
        let reads = FileReadHashes::new(folder.path());
        for round in 0..20_000 {
            reads.remember("t", "c", &format!("/{}", round % 100), &record(&format!("{round:064}"))).unwrap();
        }
        assert!(fs::metadata(reads.file("t", "c")).unwrap().len() <= MOST_BYTES + 1000);
        for path in 0..100 {
            let expected = record(&format!("{:064}", 19_900 + path));
            assert_eq!(reads.recall("t", "c", &format!("/{path}")).unwrap(), Some(expected));
        }
    }
}
