//! Applying what a staged command changed, and undoing it.

use super::{Changes, Images, Manifest, tree};
use crate::{
    PathError,
    jail::PathJail,
    staged::{Findings, StageRules, StagedSet, UndoFit},
};
use haft_core::{ChangeSummary, ErrorCode, ExecutionId, ToolError};
use haft_sdk::files::Changed;
use std::{io, path::PathBuf};

/// How a staged change set is applied.
#[derive(Clone, Debug)]
pub struct ApplyStaged {
    /// The call that makes the changes.
    pub by: ExecutionId,
    /// Whose call it is.
    pub tenant: String,
    /// What the changes are for.
    pub summary: String,
    /// What was looked at: another set is not applied.
    pub fingerprint: String,
    /// Whether somebody approved what is asked about: protected names, and that it cannot be undone.
    pub approved: bool,
}

/// How many problems are named in an error.
const MOST_NAMED: usize = 5;

impl Changes {
    pub(crate) fn apply_staged(
        &self,
        jail: &PathJail,
        set: &StagedSet,
        how: &ApplyStaged,
    ) -> Result<ChangeSummary, ToolError> {
        for root in &set.roots {
            let text = root.root.to_string_lossy();
            if jail.spot_of(&root.root).is_none() {
                return Err(PathError::outside(&text, Some(&root.root)).into());
            }
        }
        let read_only = jail.read_only_roots().map(PathBuf::from);
        let rules = StageRules {
            read_only: set.rules.read_only.iter().cloned().chain(read_only).collect(),
            keep: self.keep,
            ..set.rules.clone()
        };
        let set = StagedSet { roots: set.roots.clone(), rules };
        let unread = |error: io::Error| {
            ToolError::failed(format!(
                "what the command changed cannot be read: {error}. Nothing was applied"
            ))
        };
        let layers = set.open().map_err(unread)?;
        let findings = crate::staged::look(&layers, &set.rules).map_err(unread)?;
        refused(&findings, how)?;
        let cannot_undo = match findings.undo {
            UndoFit::Fits => None,
            UndoFit::TooLarge { bytes, .. } => {
                Some(format!("it replaced or deleted {bytes} bytes, more than is kept for undoing"))
            }
        };
        let intent = tree::Intent {
            by: how.by,
            tenant: how.tenant.clone(),
            summary: how.summary.clone(),
            roots: set.roots.iter().map(|root| root.root.clone()).collect(),
            cannot_undo,
        };
        self.make_trees(intent, |builder| {
            tree::plan(jail, &layers, builder).map_err(|error| {
                ToolError::failed(format!("the change could not be prepared: {error}. Nothing was changed"))
            })
        })?;
        Ok(findings.summary)
    }

    /// Takes back a set of trees, as a set of its own.
    pub(super) fn undo_trees(
        &self,
        jail: &PathJail,
        records: &[(PathBuf, Manifest, Images)],
        by: ExecutionId,
        tenant: &str,
    ) -> Result<Vec<Changed>, ToolError> {
        let [(folder, manifest, _)] = records else {
            let text =
                "The call changed files in several ways, which are not undone together. Nothing was undone";
            return Err(ToolError::failed(text));
        };
        if let Some(why) = &manifest.cannot_undo {
            return Err(ToolError::failed(format!("This cannot be undone: {why}")));
        }
        let intent = tree::Intent {
            by,
            tenant: tenant.to_owned(),
            summary: format!("undo: {}", manifest.summary),
            roots: manifest.roots.clone(),
            cannot_undo: None,
        };
        self.make_trees(intent, |builder| tree::plan_undo(jail, folder, builder))?;
        Ok(self.shelf.of(by).ok().and_then(|made| tree::changed(jail, made.last()?).ok()).unwrap_or_default())
    }
}

/// Why a set is not applied.
fn refused(findings: &Findings, how: &ApplyStaged) -> Result<(), ToolError> {
    let listed = |what: Vec<String>, total: u64| {
        let named = what.len().min(MOST_NAMED);
        let more = total.saturating_sub(named as u64);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{}{more}", what.into_iter().take(MOST_NAMED).collect::<Vec<_>>().join("; "))
    };
    if !findings.violations.is_empty() {
        let all = findings.violations.first.iter().map(ToString::to_string).collect();
        let text = format!("Nothing was applied: {}", listed(all, findings.violations.total));
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    if !findings.conflicts.is_empty() {
        let all = findings.conflicts.first.iter().map(ToString::to_string).collect();
        let text = format!("Nothing was applied: {}", listed(all, findings.conflicts.total));
        return Err(ToolError::new(ErrorCode::StaleFile, text));
    }
    if findings.fingerprint != how.fingerprint {
        let text = "Nothing was applied: the changes are not those that were looked at";
        return Err(ToolError::new(ErrorCode::StaleFile, text));
    }
    if !how.approved && !findings.asks.is_empty() {
        let all = findings.asks.first.iter().map(ToString::to_string).collect();
        let text = format!("Nothing was applied without an approval: {}", listed(all, findings.asks.total));
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    match (&findings.undo, how.approved) {
        (UndoFit::TooLarge { bytes, .. }, false) => {
            let text = format!(
                "Nothing was applied without an approval: it replaces or deletes {bytes} bytes, and cannot be undone"
            );
            Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text))
        }
        _ => Ok(()),
    }
}
