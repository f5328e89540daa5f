//! What a server that is a program is granted: no more than every command, and of that what its definition names.

use super::upstreams::Shared;
use haft_core::{
    ErrorCode, McpSource, ToolError,
    port::{GuestSpec, GuestStdin, covers_host},
    text,
};
use std::{path::PathBuf, time::Duration};

/// A server serves many calls; what ends it is the end of haft, or nobody using it.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The program of a server, of what commands are granted, before a call narrows it further.
pub(super) fn spec(server: &McpSource, shared: &Shared, granted: GuestSpec) -> Result<GuestSpec, ToolError> {
    let name = text::one_line(&server.server, 80);
    let mut spec = granted;
    let is_granted = |host: &&String| spec.hosts.iter().any(|granted| covers_host(granted, host));
    if let Some(host) = server.hosts.iter().find(|host| !is_granted(host)) {
        let host = text::one_line(host, 100);
        let text = format!(
            "The MCP server `{name}` wants to reach the host `{host}`, which is not in tools.commands.hosts"
        );
        return Err(ToolError::new(ErrorCode::NetworkPolicyViolation, text));
    }
    if let Some(preset) = server.presets.iter().find(|preset| !spec.presets.contains(preset)) {
        let text = format!(
            "The MCP server `{name}` wants the preset {preset:?}, which is not in tools.commands.presets"
        );
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    if let Some((limit, asked, granted)) = server.limits.exceeds(&spec.limits) {
        let text =
            format!("The MCP server `{name}` wants {limit} of {asked}, and tools.commands grants {granted}");
        return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
    }
    let program = server.program.clone().unwrap_or_default();
    let own: Vec<PathBuf> = std::iter::once(&program)
        .filter(|program| program.contains('/'))
        .chain(&server.files)
        .map(PathBuf::from)
        .collect();
    if let Some(gone) = own.iter().find(|path| !path.exists()) {
        let path = text::one_line(&gone.to_string_lossy(), 300);
        let text = format!(
            "{path} of the MCP server `{name}` is not there any more. Put it back, or add the server again"
        );
        return Err(ToolError::new(ErrorCode::ToolDisabled, text));
    }
    spec.readable.extend(own);
    spec.hosts.clone_from(&server.hosts);
    spec.presets.clone_from(&server.presets);
    spec.limits = server.limits.or(&spec.limits);
    spec.limits.wall_time = spec.limits.wall_time.or(Some(LIFETIME));
    for name in &server.env {
        if let Some(value) = (shared.settings.variable)(name)? {
            spec.environment.insert(name.clone(), value);
        }
    }
    spec.argv = std::iter::once(program).chain(server.args.iter().cloned()).collect();
    spec.stdin = GuestStdin::Stream;
    Ok(spec)
}
