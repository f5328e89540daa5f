//! Whether walls stand here: found out by putting a guest behind them and letting it try.
//!
//! The guest is this very program, so that nothing has to be installed.

mod kept;

use super::{
    host::Inner,
    plan::{self, JailKind},
    running::{self, Scratch},
    wire::InitKind,
};
use haft_core::{
    Enforcement, IsolationLevel, ToolError,
    port::{Guest as _, GuestSpec, Unavailable},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// The name under which the program is started as the probe.
pub(super) const NAME: &str = "haft-jail-probe";

/// What the probe says when everything held.
const HELD: &str = "held";

/// Lives as the probe: tries what no guest may do, and says what it could.
pub(super) fn live(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ! {
    let walls = arguments.next();
    let namespace = walls.as_deref() == Some("namespace".as_ref());
    let mut broke = Vec::new();
    if arguments.next().is_some_and(|outside| std::fs::read_dir(outside).is_ok()) {
        broke.push("reads a folder that is not granted");
    }
    if rustix::thread::set_capabilities_secure_bits(rustix::thread::CapabilitiesSecureBits::empty()).is_ok() {
        broke.push("has privileges");
    }
    if namespace && rustix::process::geteuid().is_root() {
        broke.push("is root");
    }
    if !rustix::thread::no_new_privs().unwrap_or(false) {
        broke.push("may gain privileges");
    }
    if rustix::process::chroot("/").is_ok() {
        broke.push("changes its root");
    }
    if !namespace && std::net::UdpSocket::bind("127.0.0.1:0").is_ok() {
        broke.push("has sockets");
    }
    if namespace && rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() != 1) {
        broke.push("is among other processes");
    }
    let text = if broke.is_empty() { HELD.to_owned() } else { broke.join(", ") };
    let _ = rustix::io::write(rustix::stdio::stdout(), text.as_bytes());
    super::sys::exit(0)
}

/// Answers of probes, kept for as long as haft runs.
#[derive(Default)]
pub(super) struct Answers(Mutex<Vec<(JailKind, Result<(), Unavailable>)>>);

/// What walls enforce at a level, when they were seen to hold.
pub(super) fn checked(
    host: &Arc<Inner>,
    jail_kind: JailKind,
    level: IsolationLevel,
) -> Result<Enforcement, Unavailable> {
    let enforcement = plan::enforcement(level, jail_kind, &host.facts)?;
    let mut answers = host.answers.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = answers.iter().find(|(known, _)| *known == jail_kind).map(|(_, answer)| answer.clone());
    let answer = known.unwrap_or_else(|| {
        let answer = tried(host, jail_kind);
        answers.push((jail_kind, answer.clone()));
        answer
    });
    answer.map(|()| enforcement)
}

/// Whether walls hold: as it was seen before in this situation, or as it is tried now.
fn tried(host: &Arc<Inner>, jail_kind: JailKind) -> Result<(), Unavailable> {
    let state = &host.options.state;
    if kept::has_held(state, jail_kind) {
        return Ok(());
    }
    probe(host, jail_kind)?;
    // Where it cannot be remembered it is tried again next time; that is all.
    let _ = kept::remember(state, jail_kind);
    Ok(())
}

/// Runs one, on a thread of its own: the caller may be in the middle of a runtime.
fn probe(host: &Arc<Inner>, jail_kind: JailKind) -> Result<(), Unavailable> {
    let host = Arc::clone(host);
    let thread = std::thread::Builder::new().name("haft-probe".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ToolError::failed(error.to_string()))?;
        runtime.block_on(run(&host, jail_kind))
    });
    let result = thread.map(std::thread::JoinHandle::join);
    match result {
        Ok(Ok(Ok(said))) if said == HELD => Ok(()),
        Ok(Ok(Ok(said))) => Err(Unavailable {
            reason: format!("a program that was put behind its walls {said}"),
            fix: "do not use this jail here, and report it with the version of the kernel".into(),
        }),
        Ok(Ok(Err(error))) => Err(explained(jail_kind, &error)),
        Ok(Err(_)) | Err(_) => Err(Unavailable {
            reason: "the probe did not run".into(),
            fix: "free some memory or processes".into(),
        }),
    }
}

async fn run(host: &Arc<Inner>, jail_kind: JailKind) -> Result<String, ToolError> {
    let name = match jail_kind {
        JailKind::Process => "process",
        JailKind::Namespace => "namespace",
    };
    let outside = host.options.state.to_string_lossy().into_owned();
    let mut spec = GuestSpec::command([NAME, name, &outside]);
    spec.level = IsolationLevel::Standard;
    spec.limits.wall_time = Some(Duration::from_secs(10));
    let (kind, scratch) = match jail_kind {
        JailKind::Process => (InitKind::Process, Some(Scratch::make(host)?)),
        JailKind::Namespace => (InitKind::Namespace, None),
    };
    let program =
        std::env::current_exe().map_err(|error| super::host::broken("no program to probe with", error))?;
    spec.readable = vec![program.clone()];
    let folder = scratch.as_ref().map(|scratch| scratch.0.as_path());
    let mut plan = plan::plan(&spec, jail_kind, &host.facts, folder).map_err(super::process::refusal)?;
    plan.request.programs = vec![program.to_string_lossy().into_owned()];
    let init = host.init(kind, None, false).await?;
    let mut guest = running::start(host, init, plan, spec, scratch).await?;
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let end = guest
        .wait(Arc::new(move |_, bytes: &[u8]| {
            heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        }))
        .await?;
    if let Some(error) = end.error() {
        return Err(error);
    }
    let said = said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Why it failed, and what usually helps.
fn explained(jail_kind: JailKind, error: &ToolError) -> Unavailable {
    let detail = error.diagnostics.as_deref().map(|more| format!(" ({more})")).unwrap_or_default();
    let fix = match jail_kind {
        JailKind::Namespace => {
            "allow user namespaces: `sysctl -w user.max_user_namespaces=10000`, on Debian \
             `sysctl -w kernel.unprivileged_userns_clone=1`, on Ubuntu \
             `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container start it with \
             `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`"
        }
        JailKind::Process => "use Linux 5.13 or later with Landlock; in a container allow its system calls",
    };
    Unavailable { reason: format!("{}{detail}", error.message), fix: fix.to_owned() }
}
