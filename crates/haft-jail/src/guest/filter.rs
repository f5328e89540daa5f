//! Which system calls a guest may not use.
//!
//! - What no honest program asks for ends the process, so that it is noticed (`SIGSYS` is a violation on the result).
//! - What programs try and can do without is refused with an error, so that they go on.
//! - A call whose number is newer than these lists is not there (`ENOSYS`): a new kernel opens nothing that nobody
//!   looked at.
//!
//! Two more filters are not for guests: one for container runtimes and what serves a guest's files, and one for the
//! first process of a jail.

mod lists;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;

use super::wire::FilterKind;
use lists::{
    Call, ENDS, FIRST_UNKNOWN, FREES_ROOM, INIT, MAKES_FILE, MAKING, NEW_NAMESPACES, PRIVILEGED_MODES,
    REFUSED, SETS_MODE, SOCK_PACKET, UNKNOWN, calls,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Filters, in the order in which they are loaded.
pub(crate) type Filters = Vec<BpfProgram>;

/// What the kernel is told about a call.
mod code {
    pub(super) const LOAD: u16 = 0x20;
    pub(super) const RETURN: u16 = 0x06;
    pub(super) const JUMP_EQUAL: u16 = 0x15;
    pub(super) const JUMP_AT_LEAST: u16 = 0x35;
    pub(super) const NUMBER_AT: u32 = 0;
    pub(super) const ARCHITECTURE_AT: u32 = 4;
}

/// All filters, compiled once, when the spawner starts.
pub(crate) struct FilterSet {
    no_network: Filters,
    network: Filters,
    network_and_unix: Filters,
    runtime: Filters,
    init: Filters,
}

impl FilterSet {
    pub(crate) fn compile() -> Result<Self, seccompiler::BackendError> {
        Ok(FilterSet {
            no_network: compile(FilterKind::NoNetwork)?,
            network: compile(FilterKind::Network)?,
            network_and_unix: compile(FilterKind::NetworkAndUnix)?,
            runtime: compile(FilterKind::Runtime)?,
            init: compile_init()?,
        })
    }

    /// Those of what a jail init starts.
    pub(crate) fn of(&self, kind: FilterKind) -> &[BpfProgram] {
        match kind {
            FilterKind::NoNetwork => &self.no_network,
            FilterKind::Network => &self.network,
            FilterKind::NetworkAndUnix => &self.network_and_unix,
            FilterKind::Runtime => &self.runtime,
        }
    }

    /// That of the init itself, once its guest runs.
    pub(crate) fn of_init(&self) -> &[BpfProgram] {
        &self.init
    }
}

/// The filters for a kind.
pub(crate) fn compile(kind: FilterKind) -> Result<Filters, seccompiler::BackendError> {
    let (ends, unknown, unsupported, refused) = match kind {
        // Makes the walls itself, and brings a filter for the guest. But these bits nobody needs: not the runtime, not
        // what serves a guest its files, and not a guest whose runtime does not know a call by name.
        FilterKind::Runtime => (&[][..], calls![SYS_openat2] as &[Call], Rules::new(), privileged_modes()?),
        FilterKind::NoNetwork | FilterKind::Network | FilterKind::NetworkAndUnix => {
            (ENDS, UNKNOWN, unsupported()?, refused(kind)?)
        }
    };
    let mut listed: Vec<u32> = refused
        .keys()
        .chain(unsupported.keys())
        .chain(unknown.iter().chain(ends).map(|(call, _)| call))
        .map(|call| *call as u32)
        .collect();
    listed.sort_unstable();
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let lists = [
        (always(ends), SeccompAction::KillProcess),
        (always(unknown), SeccompAction::Errno(libc::ENOSYS as u32)),
        (unsupported, SeccompAction::Errno(libc::EOPNOTSUPP as u32)),
        (refused, SeccompAction::Errno(libc::EPERM as u32)),
    ];
    let lists: Result<Vec<BpfProgram>, _> = lists
        .into_iter()
        .filter(|(rules, _)| !rules.is_empty())
        .map(|(rules, action)| SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into())
        .collect();
    Ok(vec![joined(&listed, libc::SECCOMP_RET_ALLOW, &lists?)])
}

/// The filter of a jail's first process: what is not listed is refused.
fn compile_init() -> Result<Filters, seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let list = SeccompFilter::new(always(INIT), refused, SeccompAction::Allow, arch)?.try_into()?;
    let mut listed: Vec<u32> = INIT.iter().map(|(call, _)| *call as u32).collect();
    listed.sort_unstable();
    Ok(vec![joined(&listed, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, &[list])])
}

/// Rules by the number of their call.
type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn always(calls: &[Call]) -> Rules {
    calls.iter().map(|(call, _)| (*call, Vec::new())).collect()
}

/// Room is taken by writing, so that it is seen while it is taken. Programs know file systems that cannot do otherwise.
fn unsupported() -> Result<Rules, seccompiler::BackendError> {
    let frees = SeccompCmpOp::MaskedEq(u64::from(FREES_ROOM));
    let takes = SeccompCondition::new(1, SeccompCmpArgLen::Dword, frees, 0)?;
    Ok(Rules::from([(libc::SYS_fallocate, vec![rule(&[takes])?])]))
}

/// What a guest is refused, always or by its arguments.
fn refused(kind: FilterKind) -> Result<Rules, seccompiler::BackendError> {
    let mut refused = always(REFUSED);
    refused.extend(privileged_modes()?);
    refused.insert(libc::SYS_clone, any_bit(0, NEW_NAMESPACES)?);
    // Typing into a terminal, and what else would reach somebody's terminal.
    refused.insert(
        libc::SYS_ioctl,
        vec![rule(&[equals(1, libc::TIOCSTI)?])?, rule(&[equals(1, libc::TIOCLINUX)?])?],
    );
    let not =
        |family: i32| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family as u64);
    let kind_of_socket = |kind: i32| {
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(0xf), kind as u64)
    };
    let inet = [not(libc::AF_INET)?, not(libc::AF_INET6)?];
    match kind {
        FilterKind::NoNetwork => drop(refused.insert(libc::SYS_socket, Vec::new())),
        FilterKind::Network => {
            let raw = [SOCK_PACKET, libc::SOCK_RAW].map(|kind| rule(&[kind_of_socket(kind)?]));
            let [packet, raw] = raw;
            refused.insert(libc::SYS_socket, vec![rule(&inet)?, packet?, raw?]);
        }
        FilterKind::NetworkAndUnix => {
            let [one, other] = inet;
            refused.insert(
                libc::SYS_socket,
                vec![
                    rule(&[not(libc::AF_UNIX)?, one, other])?,
                    rule(&[not(libc::AF_UNIX)?, kind_of_socket(libc::SOCK_RAW)?])?,
                    rule(&[kind_of_socket(SOCK_PACKET)?])?,
                ],
            );
        }
        FilterKind::Runtime => {}
    }
    if kind != FilterKind::NetworkAndUnix {
        // A socket of a pair that knows no connections can still be sent elsewhere by naming an address, and to the
        // kernel a raw one is such a one.
        refused.insert(
            libc::SYS_socketpair,
            vec![
                rule(&[not(libc::AF_UNIX)?])?,
                rule(&[kind_of_socket(libc::SOCK_DGRAM)?])?,
                rule(&[kind_of_socket(libc::SOCK_RAW)?])?,
            ],
        );
    }
    Ok(refused)
}

/// A call with bits of its arguments that are refused together.
type Bits = (Call, Vec<(u8, u32)>);

/// Every way to give a file a privileged mode.
fn privileged_bits() -> Vec<Bits> {
    let set = SETS_MODE
        .iter()
        .flat_map(|(call, mode)| PRIVILEGED_MODES.map(|privileged| (*call, vec![(*mode, privileged)])));
    let made = MAKES_FILE.iter().flat_map(|(call, flags, mode)| {
        PRIVILEGED_MODES.into_iter().flat_map(move |privileged| {
            MAKING.map(|making| (*call, vec![(*flags, making), (*mode, privileged)]))
        })
    });
    set.chain(made).collect()
}

fn privileged_modes() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for ((call, _), bits) in privileged_bits() {
        let conditions: Result<Vec<_>, _> = bits
            .into_iter()
            .map(|(argument, bit)| {
                let bit = u64::from(bit);
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
            })
            .collect();
        rules.entry(call).or_default().push(rule(&conditions?)?);
    }
    Ok(rules)
}

/// The filter of a guest with a network of its own, in the words of container runtimes.
///
/// Arguments are compared by their lower half, which is what the kernel looks at. A runtime takes several conditions on
/// one argument as alternatives, so families of sockets are listed one by one instead of by what they are not.
///
/// A runtime leaves out calls whose names it does not know; those of privileged modes are refused by the filter that
/// the runtime itself is started with, too.
pub(crate) fn for_runtimes(kind: FilterKind) -> Value {
    const LOWER: u64 = 0xffff_ffff;
    // All that the kernel may know; it refuses larger numbers itself.
    const FAMILIES: i32 = 64;
    let name = |(_, name): &Call| name.trim_start_matches("SYS_").to_owned();
    let names = |calls: &[Call]| calls.iter().map(name).collect::<Vec<_>>();
    let refuse = |calls: Vec<String>, errno: i32, arguments: &[Value]| json!({"names": calls, "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": arguments});
    let is = |argument: u8, mask: u64, value: u64| json!({"index": argument, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"});
    let refused_if = |call: &str, arguments: &[Value]| refuse(vec![call.to_owned()], libc::EPERM, arguments);
    let mut rules = vec![
        json!({"names": names(ENDS), "action": "SCMP_ACT_KILL_PROCESS"}),
        refuse(names(UNKNOWN), libc::ENOSYS, &[]),
        refuse(names(REFUSED), libc::EPERM, &[]),
        refused_if("ioctl", &[is(1, LOWER, libc::TIOCSTI)]),
        refused_if("ioctl", &[is(1, LOWER, libc::TIOCLINUX)]),
        refused_if("socket", &[is(1, 0xf, SOCK_PACKET as u64)]),
    ];
    rules.push(refuse(vec!["fallocate".into()], libc::EOPNOTSUPP, &[is(1, FREES_ROOM.into(), 0)]));
    rules.extend(privileged_bits().into_iter().map(|(call, bits)| {
        let bits = bits.into_iter().map(|(argument, bit)| is(argument, bit.into(), bit.into()));
        refuse(vec![name(&call)], libc::EPERM, &bits.collect::<Vec<_>>())
    }));
    let bits = (0..64).map(|bit| 1u64 << bit).filter(|bit| NEW_NAMESPACES & bit != 0);
    rules.extend(bits.map(|bit| refused_if("clone", &[is(0, bit, bit)])));
    for family in 0..FAMILIES {
        let family_is = is(0, LOWER, family as u64);
        if kind != FilterKind::NetworkAndUnix && family != libc::AF_UNIX {
            rules.push(refused_if("socketpair", std::slice::from_ref(&family_is)));
        }
        match family {
            libc::AF_UNIX if kind == FilterKind::NetworkAndUnix => {}
            libc::AF_INET | libc::AF_INET6 => {
                rules.push(refused_if("socket", &[family_is, is(1, 0xf, libc::SOCK_RAW as u64)]));
            }
            _ => rules.push(refused_if("socket", &[family_is])),
        }
    }
    if kind != FilterKind::NetworkAndUnix {
        let connectionless = [libc::SOCK_DGRAM, libc::SOCK_RAW];
        rules.extend(connectionless.map(|kind| refused_if("socketpair", &[is(1, 0xf, kind as u64)])));
    }
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
}

/// One filter of several, with a quick way out for calls that are in no list: `unlisted` is what they get.
///
/// The kernel runs a new filter once for every call that there is, to know which are always allowed. With lists one
/// after the other that took 0.3 ms, which was most of what a jail cost.
fn joined(listed: &[u32], unlisted: u32, lists: &[BpfProgram]) -> BpfProgram {
    use code::{ARCHITECTURE_AT, JUMP_AT_LEAST, JUMP_EQUAL, LOAD, NUMBER_AT, RETURN};
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // Each list starts by checking the architecture; the first instructions of the first one say which it is.
    let architecture = lists.first().and_then(|list| list.get(1)).map_or(0, |check| check.k);
    let mut program = vec![
        line(LOAD, 0, 0, ARCHITECTURE_AT),
        line(JUMP_EQUAL, 1, 0, architecture),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        line(LOAD, 0, 0, NUMBER_AT),
        line(JUMP_AT_LEAST, 0, 1, FIRST_UNKNOWN),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let quick = search(listed);
    let length = quick.len();
    for (at, step) in quick.into_iter().enumerate() {
        program.push(match step {
            Step::Below { k, to } => line(JUMP_AT_LEAST, 0, (to - at - 1) as u8, k),
            Step::Listed { k } => line(JUMP_EQUAL, (length - at - 1) as u8, 0, k),
            Step::NotListed => line(RETURN, 0, 0, unlisted),
        });
    }
    for (index, list) in lists.iter().enumerate() {
        // The last instruction of a list allows; that is for the last list to say.
        let all = if index + 1 == lists.len() { list.len() } else { list.len().saturating_sub(1) };
        program.extend(list.iter().take(all).cloned());
    }
    program
}

/// A step of the search for a number.
enum Step {
    /// Where the number is below `k`, go on at `to`.
    Below { k: u32, to: usize },
    /// Where it is `k`, go on behind the search.
    Listed { k: u32 },
    /// It is none of them.
    NotListed,
}

/// Halves the list until few are left.
fn search(listed: &[u32]) -> Vec<Step> {
    const FEW: usize = 4;
    let (middle, Some(first_above)) = (listed.len() / 2, listed.get(listed.len() / 2)) else {
        return vec![Step::NotListed];
    };
    if listed.len() <= FEW {
        return listed.iter().map(|k| Step::Listed { k: *k }).chain([Step::NotListed]).collect();
    }
    let (below, above) = (search(&listed[..middle]), search(&listed[middle..]));
    let shift = |steps: Vec<Step>, by: usize| {
        steps.into_iter().map(move |step| match step {
            Step::Below { k, to } => Step::Below { k, to: to + by },
            other => other,
        })
    };
    let behind = 1 + above.len();
    let mut steps = vec![Step::Below { k: *first_above, to: behind }];
    steps.extend(shift(above, 1));
    steps.extend(shift(below, behind));
    steps
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.to_vec())
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    // The kernel looks at the lower half only.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// One rule for each bit: a rule holds when all of its conditions do, and here any one is enough.
fn any_bit(argument: u8, bits: u64) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    (0..64)
        .map(|bit| 1u64 << bit)
        .filter(|bit| bits & bit != 0)
        .map(|bit| {
            let set =
                SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)?;
            rule(&[set])
        })
        .collect()
}
