//! What can go wrong before or beside a call, and what to do about it. What goes wrong with a call is a result.

use super::words;
use haft::{
    ApprovalError, ErrorCode, RegisterError,
    config::{ConfigError, TrustError},
};
use haft_core::id_prefix::AmbiguousId;
use std::{io, path::PathBuf};

/// The exit code of a command line that makes no sense.
pub(super) const USAGE: u8 = 2;
/// The exit code where there is no such program, as shells have it.
const NO_PROGRAM: u8 = 127;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Build(haft::Error),
    #[error("{0}")]
    Register(#[from] RegisterError),
    #[error("there is already a tool named `{}`{}", words::name(name), also(name, by))]
    NameTaken { name: String, by: String, replaceable: bool },
    #[error("haft added nothing, because {name} has problems:\n{list}")]
    BadDefinitions { name: String, list: String },
    #[error("haft cannot read its list of added tools: {}", haft_core::text::one_line(reason, 4096))]
    CannotRemember { path: PathBuf, reason: String },
    #[error("there is no state folder")]
    NoStateFolder,
    #[error("haft refuses the state folder: {0}")]
    StateFolder(#[from] haft_store::StateFolderError),
    #[error("haft refuses your own file: {0}")]
    OtherName(haft_store::StateFolderError),
    #[error("haft cannot reach its database: {}", haft_core::text::one_line(&.0.0, 4096))]
    Store(#[from] haft::port::StoreError),
    #[error("{0}")]
    BadRetention(String),
    #[error("`{}` is not the id of a call or a batch, nor a prefix of one", words::name(id))]
    NotAnId { id: String },
    #[error("there is no call or batch `{}`", words::name(id))]
    NoRun { id: String },
    #[error("`{}` is still running", words::name(id))]
    StillRunning { id: String },
    #[error("the process of `{}` ended before it recorded the call", words::name(id))]
    Vanished { id: String },
    #[error("{} already exists", words::path(path))]
    BackupExists { path: PathBuf },
    #[error("no call or batch `{}` is running", words::name(id))]
    NotRunning { id: String },
    #[error("no worker is running")]
    NoWorker,
    #[error("the worker, process {process}, has not stopped yet")]
    WorkerStays { process: u32 },
    #[error("the worker could not be started: {}", words::reason(reason))]
    WorkerNotStarted { log: PathBuf, reason: io::Error },
    #[error(
        "the running worker, process {process}, uses another database: {}",
        haft_core::text::one_line(store, 400)
    )]
    OtherStore { process: u32, store: String },
    #[error("{}", haft_core::text::one_line(&.0.message, 4096))]
    Task(haft::ToolError),
    #[error("{}", haft_core::text::one_line(&.0.message, 4096))]
    Refused(#[from] haft::ToolError),
    #[error("calls cannot be detached in this mode: a person supplies their results")]
    CannotDetach,
    #[error("no call or batch `{}` waits for a decision", words::name(id))]
    NothingToRecover { id: String },
    #[error("{0}")]
    Approval(ApprovalError),
    #[error("{0}")]
    Ambiguous(#[from] AmbiguousId),
    #[error("the arguments cannot be changed: {problem}")]
    BadEdit { problem: String },
    #[error("there is no active grant `{}`", words::name(id))]
    NoGrant { id: String },
    #[error("{what} is not the head of an audit chain: {problem}")]
    BadHead { what: String, problem: String },
    #[error("{0}")]
    Trust(#[from] TrustError),
    #[error("the working folder cannot be found: {}", words::reason(reason))]
    NoWorkingFolder { reason: io::Error },
    #[error("there is no program `{}`", words::name(name))]
    NoProgram { name: String },
    #[error("haft does not run this command: {0}")]
    Ticket(#[from] crate::hook::TicketError),
    #[error("the variable `{}` is not set", words::name(name))]
    NoVariable { name: String },
    #[error("there is no file {}", words::path(path))]
    NoConfigFile { path: PathBuf },
    #[error("`{}` is not KEY=VALUE", words::name(pair))]
    NotAPair { pair: String },
    #[error("`{}` is given twice", words::name(key))]
    KeyTwice { key: String },
    #[error("`{}` needs JSON, and this is not JSON: {problem}", words::name(key))]
    NotJson { key: String, problem: String },
    #[error("the licence was not issued: {problem}")]
    NotIssued { problem: String },
    #[error("{name} cannot be read: {}", words::reason(reason))]
    Unreadable { name: String, reason: io::Error },
    #[error("{name} is larger than {limit} bytes")]
    TooBig { name: String, limit: u64 },
    #[error("{name} is not UTF-8 text: line {line} has invalid bytes")]
    NotText { name: String, line: usize },
    #[error("two arguments read standard input, which can be read only once")]
    StdinTwice,
    #[error("{place}: {what}")]
    BadBatch { place: String, what: String, help: String },
    #[error("{name} is not a flow that can be run:\n{list}")]
    BadFlow { name: String, list: String },
    #[error("{message}")]
    FlowRefused { code: ErrorCode, message: String },
    #[error("there is no tool named `{}`", words::name(name))]
    NoTool { name: String, near: Option<String> },
    #[error("haft does not accept {name}: {}", haft_core::text::one_line(problem, 4096))]
    BadSignature { name: String, problem: String },
    #[error("the definition of `{}` changed, so haft did not replace it:\n{changes}", words::name(name))]
    Changed { name: String, changes: String },
    #[error("no changed definition of `{}` waits to be accepted", words::name(name))]
    NothingToAccept { name: String },
    #[error("there is no MCP server `{}`", words::name(name))]
    NoServer { name: String },
    #[error("the MCP server `{}` gave no tools: {}", words::name(name), haft_core::text::one_line(&error.message, 2000))]
    Upstream { name: String, error: Box<haft::ToolError> },
    #[error("{} already exists", words::path(path))]
    KeyExists { path: PathBuf },
    #[error("{name} is not a usable key: {reason}")]
    NoKey { name: String, reason: String },
    #[error("{name} has problems:\n{problems}")]
    BadPolicy { name: String, problems: String },
    #[error("this program has a policy of its own, without lists and rules")]
    NoPolicy,
    #[error("{}", haft_core::text::people_text(&.0.message))]
    Changes(Box<haft::ToolError>),
    #[error("{} already exists", words::path(path))]
    Exists { path: PathBuf },
    #[error("{} cannot be written: {}", words::path(path), words::reason(reason))]
    CannotWrite { path: PathBuf, reason: io::Error },
    #[error("there is no folder for your own configuration")]
    NoUserFolder,
    #[error("there is no haft.toml in this folder or above it")]
    NothingToTrust,
    #[error("haft cannot ask you whether {} may loosen that: this is not a terminal", words::path(path))]
    NobodyToAsk { path: PathBuf },
    #[error("{what}")]
    Mcp { what: String, help: String },
    #[cfg(unix)]
    #[error("{what}")]
    Server { what: String, help: String },
    #[error("standard output cannot be written: {}", words::reason(.0))]
    Stdout(io::Error),
    #[error("the result cannot be written as JSON: {0}")]
    Unwritable(serde_json::Error),
    #[error("the runtime cannot be started: {0}")]
    Runtime(io::Error),
    #[error("the call ended inside haft: {0}")]
    BrokeOff(tokio::task::JoinError),
}

impl Failure {
    /// The exit code.
    pub(super) fn exit(&self) -> u8 {
        match self {
            Failure::Config(_)
            | Failure::NoConfigFile { .. }
            | Failure::NotAPair { .. }
            | Failure::KeyTwice { .. }
            | Failure::NotJson { .. }
            | Failure::NotIssued { .. }
            | Failure::Unreadable { .. }
            | Failure::TooBig { .. }
            | Failure::NotText { .. }
            | Failure::StdinTwice
            | Failure::BadBatch { .. }
            | Failure::Exists { .. }
            | Failure::NoUserFolder
            | Failure::NoStateFolder
            | Failure::StateFolder(_)
            | Failure::OtherName(_)
            | Failure::NothingToTrust
            | Failure::BadRetention(_)
            | Failure::NotAnId { .. }
            | Failure::BadHead { .. }
            | Failure::Ambiguous(_)
            | Failure::BadEdit { .. }
            | Failure::BackupExists { .. }
            | Failure::CannotDetach
            | Failure::BadPolicy { .. }
            | Failure::KeyExists { .. }
            | Failure::NoKey { .. }
            | Failure::Changed { .. }
            | Failure::NoPolicy
            | Failure::NoVariable { .. }
            | Failure::NobodyToAsk { .. } => USAGE,
            Failure::NoProgram { .. } => NO_PROGRAM,
            Failure::Ticket(_) => ErrorCode::ToolDenied.exit(),
            Failure::Mcp { .. } => USAGE,
            Failure::Changes(error) => error.code.exit(),
            Failure::Upstream { error, .. } => error.code.exit(),
            #[cfg(unix)]
            Failure::Server { .. } => USAGE,
            Failure::Task(error) | Failure::Refused(error) => error.code.exit(),
            Failure::Build(error) => error.code().map_or(USAGE, ErrorCode::exit),
            Failure::Register(error) => error.code().exit(),
            Failure::BadFlow { .. } => ErrorCode::BadDefinition.exit(),
            Failure::FlowRefused { code, .. } => code.exit(),
            Failure::NameTaken { .. } => ErrorCode::DuplicateTool.exit(),
            Failure::BadDefinitions { .. } => ErrorCode::BadDefinition.exit(),
            Failure::BadSignature { .. } => ErrorCode::BadSignature.exit(),
            Failure::Approval(error) => match error.code() {
                ErrorCode::ValidationFailed | ErrorCode::BadRequest => USAGE,
                code => code.exit(),
            },
            Failure::CannotRemember { .. } | Failure::Store(_) => ErrorCode::StoreUnavailable.exit(),
            Failure::Trust(_)
            | Failure::NoWorkingFolder { .. }
            | Failure::NoTool { .. }
            | Failure::NoServer { .. }
            | Failure::NothingToAccept { .. }
            | Failure::NoRun { .. }
            | Failure::NoGrant { .. }
            | Failure::NotRunning { .. }
            | Failure::StillRunning { .. }
            | Failure::Vanished { .. }
            | Failure::NothingToRecover { .. }
            | Failure::NoWorker
            | Failure::WorkerStays { .. }
            | Failure::WorkerNotStarted { .. }
            | Failure::OtherStore { .. }
            | Failure::CannotWrite { .. }
            | Failure::Stdout(_)
            | Failure::Unwritable(_)
            | Failure::Runtime(_)
            | Failure::BrokeOff(_) => 1,
        }
    }

    /// What to do about it.
    pub(super) fn help(&self) -> Option<String> {
        Some(match self {
            // It says so itself, for each of its problems.
            Failure::Config(_) => return None,
            Failure::Build(
                haft::Error::Policy(_)
                | haft::Error::Permissions(_)
                | haft::Error::Redaction(_)
                | haft::Error::Licence(_)
                | haft::Error::Signatures(_),
            ) => "correct it in your own haft.toml, then try again".to_owned(),
            // They say so themselves.
            Failure::Build(haft::Error::Files(_) | haft::Error::Store(_) | haft::Error::Config(_)) => {
                return None;
            }
            Failure::Build(haft::Error::Register(_)) => {
                "give the tool another name, or correct its definition".to_owned()
            }
            Failure::Register(error) => return of_register(error),
            Failure::NoProgram { .. } => {
                "give the name of a program in PATH, or the path of one; a line of shell is `sh -c '…'`"
                    .to_owned()
            }
            Failure::Ticket(_) => {
                "let the agent send the command again: `haft hook` makes a ticket for each".to_owned()
            }
            Failure::NoVariable { name } => {
                format!("set it, or give its value: --env {}=VALUE", words::name(name))
            }
            Failure::NameTaken { replaceable: true, .. } => {
                "add --replace to replace it; it stays enabled or disabled, and keeps its settings".to_owned()
            }
            Failure::NameTaken { .. } => "choose another name for the tool".to_owned(),
            Failure::BadDefinitions { .. } => "correct the file, then run the same command again".to_owned(),
            Failure::CannotRemember { path, .. } => {
                let path = words::path(path);
                format!(
                    "to start over, without added tools and with every tool enabled: mv {path} {path}.bad"
                )
            }
            Failure::NoStateFolder => "set HAFT_STATE_DIR or HOME to a folder that you can write".to_owned(),
            Failure::StateFolder(error) | Failure::OtherName(error) => error.help(),
            // It says so itself.
            Failure::Store(_) => return None,
            Failure::BadRetention(_) => "correct it in your own haft.toml, then try again".to_owned(),
            Failure::NotAnId { .. } => "`haft runs list` shows the ids".to_owned(),
            Failure::NoRun { .. } => {
                "`haft runs list` shows the ids; with --tenant NAME, those of another tenant".to_owned()
            }
            Failure::NotRunning { .. } => {
                "`haft runs list --running` shows what runs; `haft runs show ID` shows a call that ended"
                    .to_owned()
            }
            Failure::StillRunning { id } => {
                format!("`haft runs watch {}` waits for the result", words::name(id))
            }
            Failure::Vanished { .. } => {
                "the call had no side effects; send it again if you need its result".to_owned()
            }
            Failure::BackupExists { .. } => "choose another file name".to_owned(),
            Failure::NoWorker => "`haft call TOOL --detach` starts one".to_owned(),
            Failure::WorkerStays { process } => {
                format!("a tool does not react; `kill -9 {process}` ends the worker, and its tasks fail")
            }
            Failure::WorkerNotStarted { log, .. } => {
                format!("read {}, or run `haft worker --foreground`", words::path(log))
            }
            Failure::OtherStore { .. } => "run `haft worker stop`, then try again".to_owned(),
            Failure::Task(error) if error.code == ErrorCode::TaskNotFound => {
                "`haft runs tasks` lists the tasks; haft deletes a task tasks.keep_hours after it ended"
                    .to_owned()
            }
            Failure::Task(error) if error.code == ErrorCode::TaskFinished => {
                "`haft runs show ID` shows how it ended".to_owned()
            }
            Failure::Refused(error) if error.code == ErrorCode::LicenseRequired => LICENCE.to_owned(),
            Failure::Task(_) | Failure::Refused(_) => return None,
            Failure::CannotDetach => "call it without --detach".to_owned(),
            Failure::NothingToRecover { .. } => "`haft recover` lists what waits".to_owned(),
            Failure::Approval(error) => return of_approval(error),
            Failure::Ambiguous(_) => "type more characters of the id".to_owned(),
            Failure::BadEdit { .. } => {
                "the call still waits; try again, or run `haft approvals deny ID`".to_owned()
            }
            Failure::NoGrant { .. } => "`haft grants list` shows the active ones".to_owned(),
            Failure::BadHead { .. } => {
                "keep what `haft audit verify --json` prints, and give that file".to_owned()
            }
            Failure::Trust(error) => error.help(),
            Failure::NoWorkingFolder { .. } => "go to a folder that exists, then try again".to_owned(),
            Failure::NoConfigFile { .. } => {
                "check the path after --config, or leave it out to use the usual file".to_owned()
            }
            Failure::NotAPair { pair } if pair.trim_start().starts_with('{') => {
                "put all arguments as one JSON object after --args".to_owned()
            }
            Failure::NotAPair { .. } => {
                "write an argument as its name, `=` and its value: content=text".to_owned()
            }
            Failure::KeyTwice { .. } => {
                "give it once; a list is written as JSON: key='[\"a\", \"b\"]'".to_owned()
            }
            Failure::NotJson { key, .. } => {
                format!(
                    "write it like {0}='{{\"a\": 1}}' or {0}='[1, 2]', or read it from a file: {0}=@FILE",
                    words::name(key)
                )
            }
            Failure::Unreadable { reason, .. } if reason.kind() == io::ErrorKind::NotFound => {
                "check the path; a relative path starts at the working folder".to_owned()
            }
            Failure::Unreadable { reason, .. } if reason.kind() == io::ErrorKind::IsADirectory => {
                "name a file in it".to_owned()
            }
            Failure::Unreadable { .. } => "check its permissions with `ls -l`".to_owned(),
            Failure::TooBig { .. } => "split it into smaller ones".to_owned(),
            Failure::NotText { .. } => "save it as UTF-8".to_owned(),
            Failure::StdinTwice => "read one of them from a file: KEY=@FILE".to_owned(),
            Failure::BadBatch { help, .. } => help.clone(),
            Failure::Mcp { help, .. } => help.clone(),
            Failure::NoServer { .. } => {
                "`haft tools list` shows the tools; those of a server are named SERVER__TOOL".to_owned()
            }
            Failure::Upstream { error, .. } => of_upstream(error),
            #[cfg(unix)]
            Failure::Server { help, .. } => help.clone(),
            Failure::BadSignature { .. } => {
                "haft added nothing; `haft tools verify FILE` shows why, docs/signed-tools.md how to sign"
                    .to_owned()
            }
            Failure::Changed { name, .. } => {
                format!("read the changes, then run `haft tools accept {}`", words::name(name))
            }
            Failure::NothingToAccept { .. } => {
                "`haft tools add FILE --replace` proposes one, `haft tools show NAME` shows the current one"
                    .to_owned()
            }
            Failure::KeyExists { .. } => {
                "choose another file with --out; haft never replaces a key".to_owned()
            }
            Failure::NotIssued { .. } => "give --expires a time to come, or leave it out".to_owned(),
            Failure::NoKey { .. } => "`haft keys generate` makes a signing key".to_owned(),
            Failure::BadPolicy { .. } => "docs/policy.md has every key of a rule, with examples".to_owned(),
            Failure::Changes(_) => "`haft diff` lists the changes that wait for a decision".to_owned(),
            Failure::NoPolicy => "ask the author of the program how it decides".to_owned(),
            Failure::BadFlow { .. } => "haft ran nothing; docs/flows.md has the whole format".to_owned(),
            Failure::FlowRefused { .. } => {
                "haft ran nothing; give the inputs as `haft flow run FILE KEY=VALUE …`".to_owned()
            }
            Failure::NoTool { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Failure::NoTool { near: None, .. } => "`haft tools list` shows every tool".to_owned(),
            Failure::Exists { .. } => "add --force to replace it".to_owned(),
            Failure::CannotWrite { .. } => "check the permissions of the folder with `ls -ld`".to_owned(),
            Failure::NoUserFolder => {
                "set HOME or XDG_CONFIG_HOME, or name a file with HAFT_CONFIG".to_owned()
            }
            Failure::NothingToTrust => "name the file: `haft trust FILE`".to_owned(),
            Failure::NobodyToAsk { .. } => "read the file, then run `haft trust --yes`".to_owned(),
            Failure::Stdout(_) => "check where the output goes".to_owned(),
            Failure::Unwritable(_) | Failure::BrokeOff(_) => {
                "this is a defect of haft; please report it".to_owned()
            }
            Failure::Runtime(_) => "check the limits on threads and open files".to_owned(),
        })
    }
}

/// What helps where a server gave no tools.
fn of_upstream(error: &haft::ToolError) -> String {
    match error.code {
        ErrorCode::NetworkPolicyViolation => {
            "add the host to your own haft.toml: tools.commands.hosts for programs, tools.http.hosts for URLs"
        }
        ErrorCode::FilesystemPolicyViolation | ErrorCode::ResourceLimitExceeded => {
            "raise the limits under [tools.commands] in your own haft.toml"
        }
        ErrorCode::SandboxCreationFailed => "`haft doctor` shows what the jails need",
        _ => {
            "haft added nothing; the server runs in a jail: --file, --env, --host and --preset grant it more, \
             tools.mcp.connect_seconds gives it more time"
        }
    }
    .to_owned()
}

/// What helps where a licence does not include something.
pub(super) const LICENCE: &str = "`haft license show` shows what the licence includes";

/// What to do about an approval that was not answered. Its message says the same to every face; this is for those who
/// type.
fn of_approval(error: &ApprovalError) -> Option<String> {
    Some(match error {
        ApprovalError::NotFound { .. } => {
            "`haft approvals list --all` shows the ids; with --tenant NAME, those of another tenant"
                .to_owned()
        }
        ApprovalError::Ambiguous(_) => "type more characters of the id".to_owned(),
        ApprovalError::NotOpen(_) => {
            "the first answer is final; send the call again to be asked again".to_owned()
        }
        ApprovalError::NotAccepted { from } => {
            format!("add \"{from}\" to accept_from under [tools.approval] in your own haft.toml")
        }
        ApprovalError::NoOffer { kinds } => {
            let typed: Vec<_> = kinds.iter().filter_map(|kind| crate::memory::remember_as(kind)).collect();
            match typed.is_empty() {
                true => "approve it without --remember".to_owned(),
                false => format!("use --remember {}", typed.join(", ")),
            }
        }
        ApprovalError::NoSession | ApprovalError::BadTime => "use --for always, 8h or 7d".to_owned(),
        ApprovalError::LongReason(_) => "say it in fewer words".to_owned(),
        ApprovalError::Hidden | ApprovalError::Unchanged | ApprovalError::BadArguments(_) => {
            "the call still waits; try again, or run `haft approvals deny ID`".to_owned()
        }
        ApprovalError::Store(_) => return None,
    })
}

impl From<ApprovalError> for Failure {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::Store(error) => Failure::Store(error),
            ApprovalError::Ambiguous(several) => Failure::Ambiguous(several),
            error => Failure::Approval(error),
        }
    }
}

fn of_register(error: &RegisterError) -> Option<String> {
    Some(match error {
        RegisterError::BuiltIn { name } => format!("`haft tools disable {name}` switches it off"),
        RegisterError::Unknown { .. } => "`haft tools list` shows every tool".to_owned(),
        RegisterError::Duplicate { .. } => "choose another name for the tool".to_owned(),
        RegisterError::BadDefinition { .. } => "correct the definition, then try again".to_owned(),
        RegisterError::TooMany { .. } | RegisterError::Unlicensed(_) => LICENCE.to_owned(),
        RegisterError::BadSetting { name, .. } => {
            format!("`haft tools config {name}` shows its settings, `haft tools show {name}` its limits")
        }
        RegisterError::NotRemembered(_) | RegisterError::Unreadable(_) => return None,
    })
}

/// The tool that has a name as an alias.
fn also(name: &str, by: &str) -> String {
    if name == by { String::new() } else { format!(": `{}` has it", words::name(by)) }
}

/// What the parser of the command line says, in the form that all errors of haft have.
pub(super) fn in_our_words(error: &clap::Error) -> String {
    let is_tip = |line: &str| anstream::adapter::strip_str(line).to_string().trim_start().starts_with("tip:");
    let text = error.render().ansi().to_string();
    let lines = text.split_inclusive('\n');
    lines.map(|line| if is_tip(line) { line.replacen("tip:", "help:", 1) } else { line.to_owned() }).collect()
}
