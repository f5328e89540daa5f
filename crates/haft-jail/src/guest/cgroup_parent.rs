//! A cgroup parent: a process that sits in a set of cgroups and makes one init after the other there.
//!
//! Moving a process into a cgroup of the first version makes the whole machine wait: no process can begin or end
//! meanwhile, for up to 12 ms in each hierarchy. Children are born into the cgroups of their parent, at no cost. So
//! what moves is a cgroup parent, once; its jail inits are new each time.

use super::{
    filter::FilterSet,
    init::{self, Setup},
    sys::{self, Forked},
    wire::{self, FromParent, InitKind, ToParent},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsRawFd as _, OwnedFd},
};

/// What a cgroup parent is made of.
pub(super) struct CgroupParent<'a> {
    /// To the spawner. Its end of file ends the cgroup parent, when its init has ended.
    pub(super) socket: OwnedFd,
    /// `cgroup.procs` of every cgroup that the cgroup parent has to move itself into.
    pub(super) moves: Vec<OwnedFd>,
    /// The cgroup in which guests alone are.
    pub(super) guest_cgroup: Option<OwnedFd>,
    /// Written to, it ends everything in that cgroup.
    pub(super) kill_switch: Option<OwnedFd>,
    /// Whether the cgroup parent, and so its jail inits, are in cgroups.
    pub(super) has_cgroups: bool,
    pub(super) filters: &'a FilterSet,
    pub(super) user: u32,
    pub(super) group: u32,
}

/// Lives as a cgroup parent. The caller is a fresh copy of the spawner.
pub(super) fn live(parent: &CgroupParent<'_>) -> ! {
    let code = if parent.serve().is_some() { 0 } else { 1 };
    sys::exit(code)
}

impl CgroupParent<'_> {
    fn serve(&self) -> Option<()> {
        let mut keep = vec![self.socket.as_raw_fd()];
        keep.extend(
            self.moves.iter().chain(&self.guest_cgroup).chain(&self.kill_switch).map(|fd| fd.as_raw_fd()),
        );
        sys::close_others(&keep).ok()?;
        let _ = rustix::thread::set_name(c"haft-cgroup");
        // What a jail init that was killed leaves behind comes to this process.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).ok()?;
        let signals = sys::signals().ok()?;
        for cgroup in &self.moves {
            rustix::io::write(cgroup, b"0").ok()?;
        }
        while let Ok(Some((ToParent::Init { kind }, mut descriptors))) =
            wire::receive::<ToParent>(&self.socket)
        {
            let socket = descriptors.pop()?;
            let ended = self.init(kind, socket).and_then(|init| wait_for(init, &signals, &self.socket));
            // A jail init ends its guest before it ends itself, unless it was killed; then that is done here.
            init::end_all(self.kill_switch.as_ref(), &signals);
            // Where it did not end as it should, or its cgroup is used up, another cgroup parent takes the next one.
            if ended != Some(0) {
                return Some(());
            }
            wire::send(&self.socket, &FromParent::Free, &[]).ok()?;
        }
        Some(())
    }

    fn init(&self, kind: InitKind, socket: OwnedFd) -> Option<i32> {
        let namespaces = match kind {
            InitKind::Namespace => sys::ALL_NAMESPACES,
            InitKind::Container => sys::MOUNTS_AND_NETWORK,
            InitKind::Runtime => sys::MOUNTS,
            InitKind::Process => 0,
        };
        let setup = Setup {
            kind,
            socket,
            guest_cgroup: self.guest_cgroup.as_ref().filter(|_| kind != InitKind::Namespace),
            kill_switch: self.kill_switch.as_ref().filter(|_| kind != InitKind::Namespace),
            has_cgroups: self.has_cgroups,
            filters: self.filters,
            user: self.user,
            group: self.group,
        };
        match sys::fork(namespaces, None) {
            Ok(Forked::Child) => init::live(setup),
            Ok(Forked::Parent(pid)) => Some(pid.as_raw_nonzero().get()),
            Err(errno) => {
                // haft waits for the init to speak.
                let stage = "make a process".to_owned();
                let failed = wire::FromInit::Failed { stage, errno: errno.raw_os_error() };
                let _ = wire::send(&setup.socket, &failed, &[]);
                None
            }
        }
    }
}

/// Until that child has ended, or the spawner: then it is for the caller to end what is left. Others that end
/// meanwhile are orphans that came to this process. Says with what code it ended.
fn wait_for(init: i32, signals: &OwnedFd, spawner: &OwnedFd) -> Option<i32> {
    loop {
        sys::drain_signals(signals);
        loop {
            match sys::wait_any(false) {
                Ok(Some(waited)) if waited.pid == init => return waited.exit_code,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return None,
            }
        }
        let mut events = [PollFd::new(signals, PollFlags::IN), PollFd::new(spawner, PollFlags::empty())];
        let _ = poll(&mut events, None);
        let [_, spawner] = &events;
        if spawner.revents().contains(PollFlags::HUP) {
            return None;
        }
    }
}
