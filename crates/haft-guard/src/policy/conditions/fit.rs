//! Whether a rule fits a call, and why not.

use super::*;

/// Whether the conditions of a rule hold for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Fit {
    /// They do.
    Yes,
    /// They do not; this one is why.
    No(Miss),
    /// It cannot be known; this is why.
    Unknown(Doubt),
}

/// The condition that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Miss {
    Tool,
    Category,
    Risk,
    Path,
    Command,
    Host,
    Argument,
    Agent,
    Tenant,
    Licence,
}

impl Miss {
    pub(in crate::policy) const fn words(self) -> &'static str {
        match self {
            Miss::Tool => "it is for other tools",
            Miss::Category => "it is for another category",
            Miss::Risk => "it is for another risk",
            Miss::Path => "the paths are not those of the rule",
            Miss::Command => "the command does not start with its words",
            Miss::Host => "the hosts are not those of the rule",
            Miss::Argument => "the arguments are not those of the rule",
            Miss::Agent => "it is for other agents",
            Miss::Tenant => "it is for other tenants",
            Miss::Licence => "allowing by agent or tenant needs the Enterprise tier",
        }
    }
}

/// What cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Doubt {
    /// The tool does not say what it touches.
    Undeclared,
    /// A folder that holds what the rule is about.
    FolderAround,
    /// The command cannot be read.
    Command(command::Unread),
    /// The call has variables, input or other arguments beside its command that the rule says nothing about.
    BesideCommand,
    /// The command does something besides running programs.
    Aside(AsideKind),
    /// The command may be one that the rule names.
    MayBeNamed,
    /// A program is run, but no command is named.
    NoCommand,
    /// The argument is no text, number or switch.
    Argument,
}

impl Doubt {
    pub(in crate::policy) fn words(self) -> String {
        match self {
            Doubt::Undeclared => "the tool does not say what it touches".to_owned(),
            Doubt::FolderAround => "it touches a folder in which there may be such files".to_owned(),
            Doubt::Command(why) => format!("the command cannot be read with certainty: {why}"),
            Doubt::BesideCommand => {
                "the call has variables, input or other arguments beside its command, and the rule names only the command"
                    .to_owned()
            }
            Doubt::Aside(kind) => kind.words().to_owned(),
            Doubt::MayBeNamed => "only the shell knows whether it is the command of the rule".to_owned(),
            Doubt::NoCommand => "it runs a program and does not say which".to_owned(),
            Doubt::Argument => "the argument is no text, number or switch".to_owned(),
        }
    }
}

/// What a command does besides running programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum AsideKind {
    Writes,
    Reads,
    Sets,
}

impl AsideKind {
    const fn words(self) -> &'static str {
        match self {
            AsideKind::Writes => "the command also writes to a file (`>`)",
            AsideKind::Reads => "the command also reads from a device, or a file that only the shell knows",
            AsideKind::Sets => "the command also sets variables, which may change what a program does",
        }
    }
}
