//! What haft, its spawner and the jail inits say to each other: one JSON document a packet, with descriptors.

use super::cgroup::InitCgroups;
use super::{raw, survey::Id};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::MemfdFlags,
    io::{Errno, IoSlice, IoSliceMut},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fs::File, io, io::Read as _, io::Seek as _, io::Write as _, mem::MaybeUninit, path::PathBuf};

/// What a jail init is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum InitKind {
    /// A guest among the processes of this machine.
    Process,
    /// A guest in namespaces of its own.
    Namespace,
    /// A container runtime, which makes the walls itself.
    Runtime,
    /// A container runtime that finds the guest's tree and network made.
    Container,
}

/// From haft to the spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToSpawner {
    /// haft's folder for this run and the one for its guests, which the spawner removes at its end. Said here, because
    /// every guest can read the command line of the process that its jail begins with.
    Begin { folder: PathBuf, scratch: PathBuf },
    /// Make a jail init, in a cgroup parent that is free or, in these cgroups, in a new one. The answer brings its
    /// socket.
    Init { id: u64, kind: InitKind, cgroups: InitCgroups, own_parent: bool },
    /// haft made a folder in which cgroups of jail inits will be, or removes it now.
    Group { cgroups: InitCgroups, make: bool },
}

/// From the spawner to haft.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromSpawner {
    /// The init's socket is with it. The init says itself when it is ready.
    Init { id: u64, cgroups: InitCgroups },
    /// It could not be made.
    Failed { id: u64, stage: String, errno: i32 },
}

/// From the spawner to a cgroup parent. Its end of file ends the cgroup parent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToParent {
    /// Make a jail init; the end of its socket is with it.
    Init { kind: InitKind },
}

/// From a cgroup parent to the spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromParent {
    /// The init has ended, with everything that was in it.
    Free,
}

/// From haft to a jail init. Its end of file is an order to end everything.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToInit {
    /// Run this to its end before there is a guest, and keep what it leaves running. With it: as with `Start`.
    Prepare(Box<InitRequest>),
    /// Run this. With it: standard input, output and error, and mounts of folders whose writes are kept apart.
    Start(Box<InitRequest>),
    /// Send this signal to the guest's group.
    Signal(i32),
    /// Ask it to end; end it after that many milliseconds.
    Stop { grace_ms: u64 },
}

/// From a jail init to haft.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromInit {
    /// Everything that needs no request is done.
    Ready {
        landlock: u8,
        proc: bool,
        /// Its number among the processes of the machine.
        pid: i32,
    },
    /// What had to run before the guest did.
    Prepared,
    /// A listening socket inside the jail is with it.
    Listening,
    /// The guest runs.
    Started,
    /// It does not, and why.
    Failed { stage: String, errno: i32 },
    /// The guest and everything that it started have ended.
    Ended(InitEnd),
}

/// What a jail init knows of its guest's end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct InitEnd {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Of all processes together.
    pub(crate) cpu_micros: u64,
    /// Of the largest process.
    pub(crate) max_process_bytes: u64,
    /// `rchar`, `wchar`, `syscr + syscw` of all processes together.
    pub(crate) io: Option<[u64; 3]>,
    /// Processes that were still there when the guest ended.
    pub(crate) ended_with_it: u32,
}

/// One path of the machine in the guest's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bind {
    #[serde(with = "raw")]
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
    /// Device and inode when the request was made: what is bound has to be just that.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Where what is written below it goes, where that is kept apart.
    #[serde(default)]
    pub(crate) layers: Option<Layers>,
}

/// The layers above a folder whose writes are kept apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layers {
    /// The folder that they are in.
    #[serde(with = "raw")]
    pub(crate) folder: PathBuf,
    /// Whether one of them hides something.
    pub(crate) has_masks: bool,
    /// haft mounted it: the number of that descriptor after those of the guest. Else the init does.
    pub(crate) mounted: Option<usize>,
}

/// Something of the tree that is hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mask {
    #[serde(with = "raw")]
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
    /// What has to be there when it is hidden, where that was looked at before.
    pub(crate) exactly: Option<Id>,
}

/// Which system calls a guest may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FilterKind {
    /// Without any socket but pairs.
    #[default]
    NoNetwork,
    /// With sockets of the internet. Those of this machine are left out: one in a granted folder belongs to a program
    /// outside, such as an agent for keys, that takes orders from every process that reaches it.
    Network,
    /// With those, too, where the configuration says so.
    NetworkAndUnix,
    /// Only what even a container runtime does not need: it makes the walls itself, and brings a filter for the guest.
    Runtime,
}

/// What a container runtime finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Container {
    /// The folder on which the guest's tree is mounted.
    pub(crate) root: String,
    pub(crate) cgroups: CgroupTree,
    /// The guest's own program and folder: looked for in its tree, because a runtime tells what is missing only in
    /// words.
    pub(crate) programs: Vec<String>,
    pub(crate) working_dir: String,
}

/// What a container runtime sees of cgroups. They are haft's: it never makes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CgroupTree {
    /// All, and cannot change them.
    ReadOnly,
    /// Nothing.
    Hidden,
}

/// Everything that a jail init has to know to run a guest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InitRequest {
    pub(crate) argv: Vec<String>,
    /// `NAME=value`.
    pub(crate) environment: Vec<String>,
    /// Where the program may be, in the order in which they are tried.
    pub(crate) programs: Vec<String>,
    pub(crate) working_dir: String,
    pub(crate) binds: Vec<Bind>,
    /// Parts of those that stay where they are, parents first: nothing that is mounted on can be renamed or removed.
    pub(crate) pins: Vec<Bind>,
    pub(crate) masks: Vec<Mask>,
    /// Parts of folders whose writes are kept apart that stay where they are, parents first. They are taken from the
    /// merged tree: nothing of the machine is written through them.
    pub(crate) merged_pins: Vec<Bind>,
    /// What the layers of those folders hide: it has to be there still.
    pub(crate) whiteouts: Vec<Mask>,
    /// Bytes of the private scratch space, where it is the init that makes one.
    pub(crate) scratch_bytes: u64,
    /// Number and value.
    pub(crate) limits: Vec<(i32, u64)>,
    pub(crate) filter: FilterKind,
    pub(crate) landlock: bool,
    pub(crate) terminal: bool,
    /// Whether standard input is empty. The init opens `/dev/null` itself, where a guest cannot change the machine's.
    pub(crate) no_input: bool,
    /// Whether to bind a port on the jail's own loopback and pass it out.
    pub(crate) gate: bool,
    pub(crate) grace_ms: u64,
    /// Where the program is a container runtime, in a jail init for one.
    pub(crate) container: Option<Container>,
    /// Where the program is a runtime that does not pass signals on: the command that does. The number comes last.
    pub(crate) signaller: Vec<String>,
}

/// Larger packets go through a file in memory: a socket takes only so much at once.
const INLINE: usize = 48 * 1024;
const MOST_DESCRIPTORS: usize = 64;

/// Sends a message with descriptors.
pub(crate) fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    if body.len() <= INLINE {
        return packet(socket, &[b"i", &body], descriptors);
    }
    let mut file = File::from(rustix::fs::memfd_create("haft-message", MemfdFlags::CLOEXEC)?);
    file.write_all(&body)?;
    let mut all = vec![file.as_fd()];
    all.extend_from_slice(descriptors);
    packet(socket, &[b"m"], &all)
}

fn packet(socket: impl AsFd, parts: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(socket.as_fd(), &parts, &mut control, SendFlags::NOSIGNAL)
    });
    sent.map(drop).map_err(io::Error::from)
}

/// A message with its descriptors.
pub(crate) type Received<T> = (T, Vec<OwnedFd>);

/// Takes one message; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<Received<T>>> {
    let mut buffer = vec![0u8; INLINE + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    });
    let got = match got {
        Ok(got) => got,
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    if got.flags.contains(ReturnFlags::TRUNC) || got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("a message was cut off"));
    }
    match buffer.first() {
        Some(b'i') => Ok(Some((serde_json::from_slice(&buffer[1..got.bytes])?, descriptors))),
        Some(b'm') if !descriptors.is_empty() => {
            let mut file = File::from(descriptors.remove(0));
            file.rewind()?;
            let mut body = Vec::new();
            file.read_to_end(&mut body)?;
            Ok(Some((serde_json::from_slice(&body)?, descriptors)))
        }
        _ => Err(io::Error::other("not a message")),
    }
}
