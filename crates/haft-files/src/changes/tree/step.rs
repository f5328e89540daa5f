//! The steps of a set of trees, and their list on disk.

use crate::tree::Known;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Seek as _, SeekFrom, Write as _},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

const STEPS: &str = "steps.jsonl";
/// The longest line of the list that is read.
const LONGEST: u64 = 1 << 20;

/// A path of any bytes: JSON has only Unicode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Raw(pub(crate) PathBuf);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(self.0.as_os_str().as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Raw(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => std::ffi::OsString::from_vec(bytes).into(),
        }))
    }
}

/// A place of haft's own where something is before it comes, or after it went.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Spot {
    /// Among what the record keeps.
    Kept { name: String },
    /// Among what another record keeps, which is made: its name.
    Other { record: String, name: String },
    /// In the layer of a command.
    Layer { layer: Raw, path: Raw },
    /// In a folder of haft's own below a root, where neither of those is on the same file system.
    Area { root: usize, name: String },
}

/// One step. Paths are below the root of that number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum TreeStep {
    /// What is at a path goes, and something else comes.
    Put {
        root: usize,
        path: Raw,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Old>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<New>,
    },
    /// A folder is made.
    Make { root: usize, path: Raw, meta: Meta },
    /// A folder is removed, unless something is in it.
    Unmake { root: usize, path: Raw, meta: Meta },
    /// What is at a path gets other permissions, another owner, another time.
    Meta { root: usize, path: Raw, number: u64, before: Meta, after: Meta },
}

/// What goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Old {
    /// Its number in the file system.
    pub(crate) number: u64,
    /// Where it goes.
    pub(crate) to: Spot,
    /// The name under which the record has a copy, where it does not go there itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copy: Option<String>,
    /// When it changed last, of what is no folder: somebody who changes it meanwhile is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<(i64, u32)>,
    /// Whether it is, or holds, something protected: undoing does not change that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) protected: bool,
}

/// What comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct New {
    /// Its number in the file system.
    pub(crate) number: u64,
    /// Where it comes from.
    pub(crate) from: Spot,
    /// What it is, with all that is in it; absent where later steps change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// Whether marks of an overlay are to be taken off it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) strip: bool,
    /// Whether the layer needs its mark again should it come back: as root makes it, or as others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opaque: Option<Marked>,
}

/// Which attributes mark a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Marked {
    Trusted,
    User,
}

/// What belongs to something beside its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meta {
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) modified: (i64, u32),
    /// Extended attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Meta {
    pub(crate) fn of(known: &Known, others: BTreeMap<Vec<u8>, Vec<u8>>) -> Self {
        let others = others.into_iter().collect();
        Meta { mode: known.mode, owner: known.owner, modified: known.modified, others }
    }
}

impl TreeStep {
    /// The same, to be kept.
    pub(crate) fn place_of(&self) -> (usize, PathBuf) {
        let (root, path) = self.place();
        (root, path.to_path_buf())
    }

    pub(crate) fn place(&self) -> (usize, &Path) {
        match self {
            TreeStep::Put { root, path, .. }
            | TreeStep::Make { root, path, .. }
            | TreeStep::Unmake { root, path, .. }
            | TreeStep::Meta { root, path, .. } => (*root, &path.0),
        }
    }
}

/// Writes steps to the list of a record.
pub(crate) struct StepWriter {
    file: io::BufWriter<File>,
    count: u64,
}

impl StepWriter {
    pub(crate) fn create(record: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(record.join(STEPS))?;
        Ok(StepWriter { file: io::BufWriter::new(file), count: 0 })
    }

    pub(crate) fn add(&mut self, step: &TreeStep) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, step)?;
        self.file.write_all(b"\n")?;
        self.count += 1;
        Ok(())
    }

    /// How many there are, when all of them are on disk.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok(self.count)
    }
}

/// The steps of a record, one in memory at a time.
pub(crate) struct StepList {
    file: BufReader<File>,
    /// Where each begins, when they were counted.
    starts: Vec<u64>,
}

impl StepList {
    pub(crate) fn open(record: &Path) -> io::Result<Self> {
        Ok(StepList { file: BufReader::new(File::open(record.join(STEPS))?), starts: Vec::new() })
    }

    pub(crate) fn next_step(&mut self) -> io::Result<Option<TreeStep>> {
        let mut line = Vec::new();
        io::Read::take(&mut self.file, LONGEST).read_until(b'\n', &mut line)?;
        match line.is_empty() {
            true => Ok(None),
            false => Ok(Some(serde_json::from_slice(&line)?)),
        }
    }

    /// How many there are.
    pub(crate) fn count(&mut self) -> io::Result<usize> {
        self.file.rewind()?;
        self.starts.clear();
        let (mut at, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = io::Read::take(&mut self.file, LONGEST).read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(self.starts.len());
            }
            self.starts.push(at);
            at += length as u64;
        }
    }

    /// One of those that were counted.
    pub(crate) fn step(&mut self, index: usize) -> io::Result<TreeStep> {
        let start = self.starts.get(index).copied().ok_or(io::ErrorKind::NotFound)?;
        self.file.seek(SeekFrom::Start(start))?;
        self.next_step()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_in_both_directions_also_with_names_of_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let meta = Meta {
            mode: 0o755,
            owner: (1, 2),
            modified: (3, 4),
            others: vec![(b"user.a".into(), vec![255])],
        };
        let name = Raw(std::ffi::OsString::from_vec(vec![b'x', 0xff]).into());
        let number = |root| TreeStep::Make { root, path: name.clone(), meta: meta.clone() };
        let mut writer = StepWriter::create(folder.path()).unwrap();
        (0..5).for_each(|root| writer.add(&number(root)).unwrap());
        assert_eq!(writer.finish().unwrap(), 5);
        let mut list = StepList::open(folder.path()).unwrap();
        for root in 0..5 {
            assert_eq!(list.next_step().unwrap(), Some(number(root)));
        }
        assert_eq!(list.next_step().unwrap(), None);
        assert_eq!(list.count().unwrap(), 5);
        for root in (0..5).rev() {
            assert_eq!(list.step(root).unwrap(), number(root));
        }
    }
}
