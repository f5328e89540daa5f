//! What a sandbox grants is the most that a call inside it may have.

use haft_core::{ErrorCode, Limits, ParentGrant, ToolError};
use std::path::Path;

/// Whether limits, hosts and paths are within a parent's grant; the first that is not, by its error.
///
/// ```
/// use haft_core::{ErrorCode, Limits, ParentGrant};
/// use haft_jail::guest::within;
/// let parent = ParentGrant { hosts: vec!["*.example.com".into()], ..ParentGrant::default() };
/// assert!(within(&parent, &Limits::default(), &["api.example.com"], &[]).is_ok());
/// let error = within(&parent, &Limits::default(), &["example.org"], &[]).unwrap_err();
/// assert_eq!(error.code, ErrorCode::NetworkPolicyViolation);
/// ```
pub fn within(
    parent: &ParentGrant,
    limits: &Limits,
    hosts: &[&str],
    paths: &[&Path],
) -> Result<(), ToolError> {
    if let Some((name, asked, granted)) = limits.exceeds(&parent.limits) {
        let text = format!("`{name}` is {asked}, and the sandbox around the call grants {granted}");
        return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
    }
    if let Some(host) = hosts.iter().find(|host| !parent.hosts.iter().any(|granted| covers(granted, host))) {
        let text = format!("the sandbox around the call does not grant the host `{host}`");
        return Err(ToolError::new(ErrorCode::NetworkPolicyViolation, text));
    }
    if let Some(path) =
        paths.iter().find(|path| !parent.mounts.iter().any(|granted| path.starts_with(granted)))
    {
        let text = format!("the sandbox around the call does not grant {}", path.display());
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    Ok(())
}

/// Whether everything that `asked` names is also named by `granted`.
fn covers(granted: &str, asked: &str) -> bool {
    let (granted, asked) = (granted.to_ascii_lowercase(), asked.to_ascii_lowercase());
    if granted == asked || granted == "*" {
        return true;
    }
    match granted.strip_prefix("*.") {
        Some(domain) => {
            asked.strip_suffix(domain).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_no_more_than_its_parent() {
        let parent = ParentGrant {
            sandbox_id: "sb".into(),
            limits: Limits { processes: Some(10), ..Limits::default() },
            mounts: vec!["/work".into()],
            hosts: vec!["example.com".into(), "*.example.org".into()],
        };
        let limits = |processes| Limits { processes: Some(processes), ..Limits::default() };
        for (processes, host, path, code) in [
            (10, "example.com", "/work/a", None),
            (10, "a.b.example.org", "/work", None),
            (11, "example.com", "/work", Some(ErrorCode::ResourceLimitExceeded)),
            (1, "example.org", "/work", Some(ErrorCode::NetworkPolicyViolation)),
            (1, "badexample.org", "/work", Some(ErrorCode::NetworkPolicyViolation)),
            (1, "*.example.com", "/work", Some(ErrorCode::NetworkPolicyViolation)),
            (1, "EXAMPLE.com", "/workshop", Some(ErrorCode::FilesystemPolicyViolation)),
        ] {
            let got = within(&parent, &limits(processes), &[host], &[Path::new(path)]);
            assert_eq!(got.err().map(|error| error.code), code, "{processes} {host} {path}");
        }
    }
}
