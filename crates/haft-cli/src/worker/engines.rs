//! An engine for each place that tasks come from. A call runs with the configuration of the folder in which it was
//! made, whichever process runs it.

use crate::{
    args::{Color, Global},
    console::Console,
    failure::Failure,
    setup::{CliContext, Setup},
};
use haft::{
    Args, Prepared, Tool, ToolDefinition, ToolError,
    assembly::LazyStore,
    config::{Surroundings, keys},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{collections::HashMap, ffi::OsString, path::PathBuf, sync::Arc};

/// Engines that are kept although nothing of theirs runs.
const KEPT: usize = 8;

/// Where a call was made, as far as that decides how it runs. Kept with its task, so no variable is in it that may hold
/// a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Whence {
    working_folder: PathBuf,
    home: Option<PathBuf>,
    env: Vec<(String, String)>,
    config: Option<PathBuf>,
    no_folder_config: bool,
    settings: Vec<(String, String)>,
}

/// Variables, besides those of keys, that decide where haft finds things and who calls.
const VARIABLES: [&str; 7] =
    ["HAFT_CONFIG", "HAFT_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "USER", "LOGNAME", "USERNAME"];

impl Whence {
    pub(crate) fn of(ground: &CliContext) -> Self {
        let is_known = |name: &str| VARIABLES.contains(&name) || keys().iter().any(|key| key.is_set_by(name));
        let env = ground.surroundings.env.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            is_known(name).then(|| (name.to_owned(), value.to_owned()))
        });
        Whence {
            working_folder: ground.surroundings.working_folder.clone(),
            home: ground.surroundings.home.clone(),
            env: env.collect(),
            config: ground.global.config.clone(),
            no_folder_config: ground.global.no_folder_config,
            settings: ground.global.settings.clone(),
        }
    }

    pub(super) fn folder(&self) -> String {
        self.working_folder.to_string_lossy().into_owned()
    }

    fn ground(&self, user_id: Option<u32>, tools: Vec<Box<dyn Tool>>) -> CliContext {
        let env = self.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        CliContext {
            surroundings: Surroundings {
                working_folder: self.working_folder.clone(),
                home: self.home.clone(),
                env: env.collect(),
                user_id,
            },
            global: Global {
                config: self.config.clone(),
                no_folder_config: self.no_folder_config,
                settings: self.settings.clone(),
                verbose: false,
                log: false,
                color: Color::Never,
            },
            tools,
        }
    }
}

/// A tool that several engines have.
struct Shared(Arc<dyn Tool>);

impl Tool for Shared {
    fn definition(&self) -> &Arc<ToolDefinition> {
        self.0.definition()
    }

    fn works_in_jail(&self) -> bool {
        self.0.works_in_jail()
    }

    fn only_calls(&self) -> bool {
        self.0.only_calls()
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        self.0.prepare(args)
    }
}

/// The engines of a worker.
pub(super) struct Engines {
    by_key: HashMap<String, Engine>,
    tools: Vec<Arc<dyn Tool>>,
    store: LazyStore,
    user_id: Option<u32>,
}

pub(super) struct Engine {
    pub(super) folder: String,
    pub(super) setup: Setup,
}

impl Engines {
    pub(super) fn new(tools: Vec<Box<dyn Tool>>, store: LazyStore, user_id: Option<u32>) -> Self {
        let tools = tools.into_iter().map(Arc::from).collect();
        Engines { by_key: HashMap::new(), tools, store, user_id }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Engine> {
        self.by_key.values()
    }

    /// The engine for calls from there, with the configuration as it is now: a file that was changed since gives
    /// another one.
    pub(super) fn of(&mut self, whence: &Whence, console: &Console) -> Result<&Engine, Failure> {
        let tools = self.tools.iter().map(|tool| Box::new(Shared(Arc::clone(tool))) as Box<dyn Tool>);
        let ground = whence.ground(self.user_id, tools.collect());
        let configured = ground.configured(console)?;
        // Tools that were added, switched or configured meanwhile give another number.
        let tools = self.store.tools_seen()?.stamp;
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(whence).map_err(Failure::Unwritable)?);
        hash.update(serde_json::to_vec(&configured.resolved.config).map_err(Failure::Unwritable)?);
        hash.update(tools.to_le_bytes());
        let key: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if !self.by_key.contains_key(&key) {
            if self.by_key.len() >= KEPT {
                self.by_key.retain(|_, engine| engine.setup.haft.running() > 0);
            }
            let setup = ground.setup_with(console, self.store.clone())?;
            self.by_key.insert(key.clone(), Engine { folder: whence.folder(), setup });
        }
        // It was put there just now, where it was not before.
        let Some(engine) = self.by_key.get(&key) else { unreachable!("an engine of that key is there") };
        Ok(engine)
    }
}
