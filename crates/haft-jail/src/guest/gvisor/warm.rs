//! A kernel that is started before its guest comes, with the files that the guest will be granted.
//!
//! A kernel is started for a [`Template`]: grants, what is held and hidden in them, limits of processes. It is used for a
//! guest whose own template, made from what is in the folders *now*, is the same. That alone would not do: a file that is
//! removed takes what hides it along, also in the mounts of others, and its next name or number may be the same. So the
//! init looks, right before the guest runs, whether everything that it mounted is still where it was
//! (`mounts::still_placed`). Where either is not so, the kernel is thrown away and the guest gets one of its own making.

use super::{
    super::{
        limits,
        plan::{GuestPlan, Network},
        staging::mounts_within,
        wire::{Bind, InitRequest, Mask},
    },
    config, prepare, process, runtime_request,
};
use haft_core::{IsolationLevel, Limits, port::GuestSpec};
use std::{fs, path::Path};

/// Everything about a guest that its kernel has to know when it starts.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::guest) struct Template {
    binds: Vec<Bind>,
    pins: Vec<Bind>,
    masks: Vec<Mask>,
    /// runsc gives a program that comes later the limits of the one that waits.
    limits: Vec<(i32, u64)>,
    scratch_bytes: Option<u64>,
    /// What the machine has mounted in the grants, as it describes it: what is mounted there later is not in the kernel.
    mounts: Vec<Vec<u8>>,
}

impl Template {
    /// The template of a guest; `None` where its kernel cannot be started before it comes.
    pub(super) fn of(plan: &GuestPlan, spec: &GuestSpec) -> Option<Self> {
        // A kernel that stands ready has some memory already when the limit is set.
        const LEAST_MEMORY: u64 = 96 << 20;
        let could_be = spec.parent.is_none()
            // Kernels that stand ready have no network.
            && plan.network == Network::None
            && plan.limits.memory_bytes.is_none_or(|bytes| bytes >= LEAST_MEMORY);
        could_be.then(|| Template {
            binds: plan.request.binds.clone(),
            pins: plan.request.pins.clone(),
            masks: plan.request.masks.clone(),
            limits: plan.request.limits.clone(),
            scratch_bytes: plan.limits.scratch_bytes,
            mounts: mounts_within(plan.request.binds.iter().map(|bind| bind.path.as_path())),
        })
    }

    /// Whether this is the template of a guest that says nothing, which needs no second one to be worth a kernel.
    pub(in crate::guest) fn is_usual(&self) -> bool {
        let usual = limits::with_defaults(&Limits::default(), IsolationLevel::Restricted);
        let means = limits::Means { cgroups: true, own_users: true };
        self.binds.is_empty()
            && self.scratch_bytes == usual.scratch_bytes
            && self.limits == limits::for_each_process(&usual, means)
    }

    /// Whether both grant the same, and show it differently: then this one is how things were.
    pub(in crate::guest) fn is_past(&self, now: &Template) -> bool {
        let granted = |of: &Template| {
            of.binds.iter().map(|bind| (bind.path.clone(), bind.writable)).collect::<Vec<_>>()
        };
        let shown = |of: &Template| (of.binds.clone(), of.pins.clone(), of.masks.clone(), of.mounts.clone());
        granted(self) == granted(now) && shown(self) != shown(now)
    }

    /// A process that waits where the guest will be.
    fn waiting(&self) -> InitRequest {
        InitRequest {
            // Signals that are for the guest come to this process, too.
            argv: ["sh", "-c", "trap '' HUP INT QUIT TERM; exec sleep infinity"].map(str::to_owned).into(),
            environment: vec![format!("PATH={}", crate::guest::environment::PATH)],
            working_dir: "/".into(),
            binds: self.binds.clone(),
            pins: self.pins.clone(),
            masks: self.masks.clone(),
            limits: self.limits.clone(),
            ..InitRequest::default()
        }
    }

    /// Writes the bundle of a kernel that waits for its guest.
    pub(in crate::guest) fn prepare(&self, bundle: &Path) -> std::io::Result<()> {
        let waiting = self.waiting();
        prepare(bundle, &config(&waiting, self.scratch_bytes), &waiting)
    }

    /// The init's request for starting such a kernel.
    pub(in crate::guest) fn request(&self, runsc: &Path, bundle: &Path) -> InitRequest {
        let request = runtime_request(runsc, bundle, self.waiting());
        let at = request.argv.len().saturating_sub(1);
        let mut argv = request.argv;
        argv.insert(at, "--detach".into());
        InitRequest { argv, ..request }
    }
}

pub(super) fn prepare_inside(bundle: &Path, request: &InitRequest) -> std::io::Result<()> {
    fs::write(bundle.join("process.json"), serde_json::to_vec(&process(request))?)
}

/// The init's request for a guest in a kernel that stands ready.
pub(super) fn request_inside(runsc: &Path, bundle: &Path, guest: InitRequest) -> InitRequest {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut request = runtime_request(runsc, bundle, guest);
    let id = request.argv.pop().unwrap_or_default();
    let options = request.argv.iter().position(|word| word == "run").unwrap_or(request.argv.len());
    request.argv.truncate(options);
    request.argv.extend(["exec".into(), "--process".into(), text(&bundle.join("process.json")), id]);
    request
}
