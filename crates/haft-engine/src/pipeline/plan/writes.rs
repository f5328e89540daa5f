//! Where the program of a call writes, and whether a person is asked before it runs or about what it changed.

use crate::{
    pipeline::types::{CallState, StagingFacts},
    ports::Ports,
    registry::Registered,
};
use haft_core::{
    AskCommands, ChangeSummary, ChangesState, CommandWrites, ErrorCode, IsolationLevel, SettledChanges,
    Source, ToolDefinition, ToolError,
    port::{GuestSpec, Unstageable, Verdict, Writes},
};

/// Where the program of a call writes.
pub(super) struct ChosenWrites {
    /// Apart from the files.
    pub(super) is_staged: bool,
    /// Why not, where that was wished for.
    live_because: Option<Unstageable>,
    /// The call asks for less than what is configured.
    is_looser: bool,
}

impl ChosenWrites {
    /// What is to be known about it later, where anything is.
    pub(super) fn facts(&self) -> Option<Box<StagingFacts>> {
        let settled = self.live_because.as_ref().map(|why| {
            SettledChanges::new(ChangesState::Live, ChangeSummary::default()).because(why.to_string())
        });
        (self.is_staged || settled.is_some())
            .then(|| Box::new(StagingFacts { settled, ..StagingFacts::default() }))
    }

    /// Why a person is asked whatever policy says.
    pub(super) fn loosens(&self) -> Option<String> {
        self.is_looser.then(|| {
            "it wants to write to the files themselves, and commands are configured to write apart from them"
                .to_owned()
        })
    }
}

/// Chooses where the program of a call writes. Where that must be apart and cannot be, the call is refused.
pub(super) fn choose(
    ports: &Ports,
    call: &CallState,
    registered: &Registered,
    stages: bool,
    level: IsolationLevel,
) -> Result<ChosenWrites, ToolError> {
    let (asked, configured) = (call.options.writes, ports.settings.command_writes);
    let is_program = stages && level > IsolationLevel::None && registered.definition.has_side_effects();
    if !is_program {
        if asked == Some(CommandWrites::Staged) && registered.definition.has_side_effects() {
            let text = format!(
                "What `{}` writes cannot be staged: only commands that run to their end can be. Call it without \
                 `writes`",
                registered.name
            );
            return Err(ToolError::new(ErrorCode::ValidationFailed, text));
        }
        return Ok(ChosenWrites { is_staged: false, live_because: None, is_looser: false });
    }
    let wanted = asked.unwrap_or(configured);
    let live_because = match wanted {
        CommandWrites::Live => None,
        // What is in the way is found when it starts, and refuses it.
        CommandWrites::Staged => None,
        CommandWrites::StagedIfPossible => unstageable(ports, call, level),
    };
    let is_staged = wanted != CommandWrites::Live && live_because.is_none();
    if is_staged && call.reach().commands.change_sets().is_none() {
        return Err(Unstageable::by(ports.jail.name()).error());
    }
    Ok(ChosenWrites { is_staged, live_because, is_looser: wanted > configured })
}

/// What is in the way of keeping apart what the programs of a call write.
fn unstageable(ports: &Ports, call: &CallState, level: IsolationLevel) -> Option<Unstageable> {
    let commands = &call.reach().commands;
    let Some(sets) = commands.change_sets() else { return Some(Unstageable::by(ports.jail.name())) };
    let template = commands.template();
    let level = template.level.max(level);
    // Any program: it is not run.
    let argv = vec!["/bin/sh".to_owned()];
    let spec = GuestSpec { level, argv, writes: Writes::Staged(sets.place()), ..template.clone() };
    ports.jail.can_stage(&spec).err()
}

/// Whether a rule asks or denies because nothing was said about the call: no list names its tool, and no rule fits.
pub(crate) fn is_general(rule: &str) -> bool {
    matches!(rule, "prompt_side_effects" | "tool_requires_confirmation")
}

/// What is decided before a command runs. A contained command whose changes are decided about later needs nobody's
/// answer before, unless a rule asks about it, or it reaches the network.
pub(crate) fn when_asked(
    ports: &Ports,
    call: &CallState,
    definition: &ToolDefinition,
    is_staged: bool,
    stages: bool,
    verdict: Verdict,
) -> Verdict {
    let spares = match ports.settings.ask_commands {
        AskCommands::Before => false,
        AskCommands::Effects => is_staged,
        AskCommands::Never => stages,
    };
    let asks_itself = definition.requires_confirmation && definition.source != Source::BuiltIn;
    match verdict {
        Verdict::Ask { rule, .. }
            if spares && is_general(&rule) && !asks_itself && !reaches_network(call, definition) =>
        {
            Verdict::Allow { rule: "effects".into(), confirmed: false }
        }
        verdict => verdict,
    }
}

/// Whether the program of a call may reach other machines.
fn reaches_network(call: &CallState, definition: &ToolDefinition) -> bool {
    match &definition.command {
        Some(command) => !command.hosts.is_empty(),
        None => !call.reach().commands.template().hosts.is_empty(),
    }
}
