//! What jails of a machine are made with.

use super::*;

/// How jails are made.
#[derive(Clone)]
pub struct JailOptions {
    /// haft's state folder. Guests never reach it.
    pub state: PathBuf,
    /// The folder in which jails make folders for programs: scratch space of `process`, bundles of `runc` and `gvisor`.
    /// Where it is `None`, they are in the state folder. [`check_base`](crate::guest::check_base) says which will do.
    pub base: Option<PathBuf>,
    /// Further folders that guests never reach, such as haft's configuration.
    pub protected: Vec<PathBuf>,
    /// Names of files that run programs later: guests read them, and change none.
    pub names: Arc<ProtectedNames>,
    /// The home of the user, where toolchains keep their things.
    pub home: PathBuf,
    /// Jail inits of a kind that stand ready once one of that kind was used.
    pub warm: usize,
    /// Whether limits for each process by itself do for `strict`, where no cgroup can be made.
    pub per_process_limits_do: bool,
    /// Lets guests reach hosts; without one they reach none.
    pub gate: Option<Arc<dyn Gatekeeper>>,
    /// Whether guests of all jails but `process` may have unix sockets. Those in a granted folder reach programs
    /// outside.
    pub unix_sockets: bool,
    /// How many bytes the build cache of a workspace may have, which guests with a preset of a toolchain share. With 0
    /// there is none.
    pub cache_bytes: u64,
}

impl JailOptions {
    /// Options for a state folder and a home, with two warm jail inits and no gate.
    pub fn new(state: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        JailOptions {
            state: state.into(),
            base: None,
            protected: Vec::new(),
            names: Arc::new(ProtectedNames::default()),
            home: home.into(),
            warm: 2,
            per_process_limits_do: false,
            gate: None,
            unix_sockets: false,
            cache_bytes: 0,
        }
    }
}
