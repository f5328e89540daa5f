//! A folder with files in it, a jail around it, and calls of tools in there.

use haft_core::{ErrorCode, ToolError, ToolOutput};
use haft_files::{DEFAULT_DENIES, Files, JailSpec, Keep, PathJail, RootSpec};
use haft_sdk::{
    Tool,
    capability::Capabilities,
    files::{Access, Place, Reader, Workspace},
    testing::TestHost,
};
use haft_store::MemoryReadHashes;
use haft_tools::{FileToolSettings, file_tools};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

pub(crate) const WIDE: usize = usize::MAX;

pub(crate) struct House {
    _folder: TempDir,
    root: PathBuf,
    pub(crate) settings: FileToolSettings,
    pub(crate) output_limit: usize,
    pub(crate) files: Arc<dyn Workspace>,
}

impl House {
    /// A jail whose root has these files; a name that ends with a slash is a folder.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> House {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("outside.txt"), "canary\n").unwrap();
        let jail = PathJail::new(JailSpec {
            roots: vec![RootSpec { path: root.clone(), read_only: false }],
            denied_patterns: DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..JailSpec::default()
        });
        let files_of_jail = Files::new(
            Arc::new(jail.unwrap()),
            Arc::new(MemoryReadHashes::default()),
            std::path::Path::new("unused: nothing is changed"),
            Keep::default(),
        );
        let house = House {
            _folder: folder,
            root,
            settings: FileToolSettings::default(),
            output_limit: WIDE,
            files: Arc::new(files_of_jail),
        };
        for (path, bytes) in files {
            match path.strip_suffix('/') {
                Some(path) => std::fs::create_dir_all(house.path(path)).unwrap(),
                None => house.write(path, bytes),
            }
        }
        house
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    pub(crate) fn write(&self, below: &str, bytes: &[u8]) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn link(&self, below: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(below)).unwrap();
    }

    pub(crate) fn host(&self) -> TestHost {
        let capabilities = Capabilities { workspace: Arc::clone(&self.files), ..Capabilities::default() };
        TestHost::limited(capabilities, self.output_limit)
    }

    pub(crate) fn tool(&self, name: &str) -> Box<dyn Tool> {
        let mut tools = file_tools(&self.settings).into_iter();
        tools.find(|tool| tool.definition().name == name).unwrap()
    }

    pub(crate) fn call(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        self.call_on(&self.host(), name, args)
    }

    pub(crate) fn call_on(&self, host: &TestHost, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let output = runtime.block_on(async {
            let call = host.call(&*tool, args);
            tokio::time::timeout(std::time::Duration::from_secs(20), call).await.expect("it hangs")
        })?;
        // What it gives is what it said that it gives.
        let schema = tool.definition().output_schema.clone().unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let structured = output.structured.as_ref().unwrap();
        assert!(validator.is_valid(structured), "{structured} is not of {schema}");
        Ok(output)
    }

    /// What is remembered of a file that was read.
    pub(crate) fn remembered(&self, path: &str) -> Option<String> {
        let place: Place = self.files.locate(path, Access::Read).unwrap();
        self.files.last_read(&Reader::of(self.host().ctx().context()), &place).unwrap()
    }
}

pub(crate) fn text(output: Result<ToolOutput, ToolError>) -> String {
    output.unwrap().text.unwrap()
}

pub(crate) fn failure(output: Result<ToolOutput, ToolError>) -> (ErrorCode, String) {
    let error = output.unwrap_err();
    (error.code, error.message)
}

pub(crate) fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}
