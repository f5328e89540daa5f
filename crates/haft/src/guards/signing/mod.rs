//! Tools that are signed: which keys count, what was signed, and that what runs is that.
//!
//! A signature covers the exact bytes of a file of definitions, and a digest of what they run. What was signed is kept
//! as it was, and checked again whenever haft starts: the definition that counts is the one that is read from the
//! signed bytes. Just before a program of such a tool is started, its files are digested once more.

mod payload;
mod tool;

pub use payload::Payload;

use crate::{CommandTool, Error, Tool, ToolDefinition, config::Config};
use haft_definition::{Format, read_all_checked};
use haft_guard::{PublicKey, TrustedKeys, admit_tool};
use haft_store::private_file;
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Whose tools are accepted, and where it is remembered what was signed.
pub struct Signatures {
    trusted: TrustedKeys,
    is_required: bool,
    state: Option<PathBuf>,
    /// The source that was looked at last: the tools of one file come one after the other.
    last: Mutex<Option<Looked>>,
}

/// A source that was looked at a moment ago.
struct Looked {
    source: Source,
    admitted: Arc<Admitted>,
    at: Instant,
}

/// For how long what was found about a source counts for its other tools. What they run is looked at again when they run.
const MOMENT: Duration = Duration::from_secs(2);

/// A file of definitions as it was read, with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The exact text.
    pub text: String,
    /// Whether it is JSON; else it is TOML.
    pub is_json: bool,
    /// Where relative paths in it start.
    pub folder: PathBuf,
    /// The signature, as it stands beside the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Source {
    /// What it defines, with its paths made absolute.
    pub fn definitions(&self) -> Result<Vec<ToolDefinition>, String> {
        let format = if self.is_json { Format::Json } else { Format::Toml };
        let read = read_all_checked(&self.text, format).map_err(|errors| errors.to_string())?;
        let path = std::env::var_os("PATH");
        let anchored = |definition| {
            CommandTool::anchored(definition, &self.folder, path.as_deref()).map_err(|found| found.problem)
        };
        read.into_iter().map(anchored).collect()
    }
}

/// What a source is, once its signature was looked at.
pub struct Admitted {
    /// The tools that it defines.
    pub definitions: Vec<ToolDefinition>,
    /// The key that signed it.
    pub key: Option<String>,
    /// What the definitions run.
    pub payload: Payload,
}

impl Signatures {
    /// The keys that are trusted, and the state folder in which signed sources are remembered.
    pub fn new(config: &Config, state: Option<PathBuf>) -> Result<Self, Error> {
        let signatures = &config.tools.signatures;
        let read = |text: &String| {
            text.parse::<PublicKey>()
                .map_err(|problem| Error::Signatures(format!("tools.signatures.trusted_keys: {problem}")))
        };
        let keys: Vec<PublicKey> = signatures.trusted_keys.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Signatures {
            trusted: TrustedKeys::new(keys),
            is_required: signatures.require_signatures,
            state,
            last: Mutex::default(),
        })
    }

    /// Whether these definitions may be added. What comes back was read from the very bytes that were checked.
    pub fn admit(&self, source: &Source) -> Result<Admitted, String> {
        let definitions = source.definitions()?;
        // What nobody signed has no digest to be compared with; programs can be large.
        let payload = match source.signature {
            Some(_) => Payload::of(&definitions).map_err(|error| error.to_string())?,
            None => Payload::default(),
        };
        let verified = admit_tool(
            &self.trusted,
            self.is_required,
            source.text.as_bytes(),
            payload.digest.as_deref(),
            source.signature.as_deref(),
        );
        let key = verified.map_err(|problem| problem.to_string())?.key;
        Ok(Admitted { definitions, key, payload })
    }

    /// The tool of a definition that is remembered, as long as it is the one that was signed.
    pub fn checked(
        &self,
        remembered: ToolDefinition,
        make: impl Fn(ToolDefinition) -> Result<Box<dyn Tool>, String>,
    ) -> Result<Box<dyn Tool>, String> {
        let record = self.record(Kind::Signed, &remembered.name).map_err(|error| error.to_string())?;
        let Some(source) = record else {
            return match self.is_required {
                true => Err(haft_guard::SignatureProblem::Missing.to_string()),
                false => make(remembered),
            };
        };
        let admitted = self.admitted(source)?;
        let signed = admitted.definitions.iter().find(|signed| signed.name == remembered.name).cloned();
        let changed = "what is remembered of it is not what was signed; add it again";
        let signed = make(signed.ok_or(changed)?)?;
        // As tools, because making one adds what the configuration of the day says.
        match signed.definition() == make(remembered)?.definition() {
            true => Ok(tool::watched(signed, admitted.payload.clone())),
            false => Err(changed.to_owned()),
        }
    }

    /// As [`admit`](Self::admit), once for all tools of a source that are asked for together.
    fn admitted(&self, source: Source) -> Result<Arc<Admitted>, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(looked) =
            last.as_ref().filter(|looked| looked.at.elapsed() < MOMENT && looked.source == source)
        {
            return Ok(Arc::clone(&looked.admitted));
        }
        let admitted = Arc::new(self.admit(&source)?);
        *last = Some(Looked { source, admitted: Arc::clone(&admitted), at: Instant::now() });
        Ok(admitted)
    }

    /// Keeps what a tool was added from, where it is signed; else forgets what was kept of that name.
    pub fn remember(&self, name: &str, source: &Source) -> io::Result<()> {
        match source.signature {
            Some(_) => self.keep(Kind::Signed, name, source),
            None => self.forget(Kind::Signed, name),
        }
    }

    /// Keeps a changed definition until a person has accepted it.
    pub fn propose(&self, name: &str, source: &Source) -> io::Result<()> {
        self.keep(Kind::Changed, name, source)
    }

    /// The changed definition of a tool that waits for somebody to accept it.
    pub fn proposed(&self, name: &str) -> io::Result<Option<Source>> {
        self.record(Kind::Changed, name)
    }

    /// Every changed or new definition that waits for somebody to accept it, by name.
    pub fn all_proposed(&self) -> io::Result<Vec<(String, Source)>> {
        let Some(state) = self.state.as_deref() else { return Ok(Vec::new()) };
        let entries = match std::fs::read_dir(state.join(Kind::Changed.folder())) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            if let Some(source) = self.record(Kind::Changed, name)? {
                found.push((name.to_owned(), source));
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// It was accepted, or the tool is gone.
    pub fn settle(&self, name: &str) -> io::Result<()> {
        self.forget(Kind::Changed, name)
    }

    /// Everything about a tool that is gone.
    pub fn forget_all(&self, name: &str) -> io::Result<()> {
        self.forget(Kind::Signed, name).and_then(|()| self.settle(name))
    }

    fn path(&self, kind: Kind, name: &str) -> Option<PathBuf> {
        // Names of tools are letters, digits and `_`; whatever else came here has no file.
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let folder = self.state.as_deref()?.join(kind.folder());
        (is_name && !name.is_empty()).then(|| folder.join(format!("{name}.json")))
    }

    fn keep(&self, kind: Kind, name: &str, source: &Source) -> io::Result<()> {
        let path = self
            .path(kind, name)
            .ok_or_else(|| io::Error::other("there is no folder to remember that in"))?;
        private_file::create_folder(path.parent().unwrap_or(Path::new(".")))?;
        private_file::replace(&path, serde_json::to_string(source).map_err(io::Error::other)?.as_bytes())
    }

    fn record(&self, kind: Kind, name: &str) -> io::Result<Option<Source>> {
        let Some(path) = self.path(kind, name) else { return Ok(None) };
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn forget(&self, kind: Kind, name: &str) -> io::Result<()> {
        let Some(path) = self.path(kind, name) else { return Ok(()) };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Signed,
    Changed,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::Signed => "signed-tools",
            Kind::Changed => "changed-tools",
        }
    }
}
