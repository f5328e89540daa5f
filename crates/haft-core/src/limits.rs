//! How much of what.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a call may use. An absent limit is inherited from the tool, then from the defaults.
///
/// ```
/// use haft_core::Limits;
/// let limits: Limits = serde_json::from_str(r#"{"memoryBytes": 268435456, "cpuMillicores": 500}"#).unwrap();
/// assert_eq!(limits.memory_bytes, Some(256 << 20));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Memory of all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Share of a core, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millicores: Option<u32>,
    /// Time on a core, as opposed to time on the wall.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::iso_duration::option")]
    pub cpu_time: Option<Duration>,
    /// Time on the wall.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::iso_duration::option")]
    pub wall_time: Option<Duration>,
    /// Processes and threads at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Open files of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// Size of one file that it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Scratch space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch_bytes: Option<u64>,
    /// What it may put out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

impl Limits {
    /// These limits, and where one is absent that of `other`.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let asked = Limits { processes: Some(10), ..Limits::default() };
    /// let general = Limits { processes: Some(256), open_files: Some(64), ..Limits::default() };
    /// let both = asked.or(&general);
    /// assert_eq!((both.processes, both.open_files), (Some(10), Some(64)));
    /// ```
    #[must_use]
    pub fn or(&self, other: &Limits) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            cpu_millicores: self.cpu_millicores.or(other.cpu_millicores),
            cpu_time: self.cpu_time.or(other.cpu_time),
            wall_time: self.wall_time.or(other.wall_time),
            processes: self.processes.or(other.processes),
            open_files: self.open_files.or(other.open_files),
            file_bytes: self.file_bytes.or(other.file_bytes),
            scratch_bytes: self.scratch_bytes.or(other.scratch_bytes),
            output_bytes: self.output_bytes.or(other.output_bytes),
        }
    }

    /// The tighter of each.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let mine = Limits { processes: Some(10), ..Limits::default() };
    /// let parent = Limits { processes: Some(4), open_files: Some(64), ..Limits::default() };
    /// let both = mine.within(&parent);
    /// assert_eq!((both.processes, both.open_files), (Some(4), Some(64)));
    /// ```
    #[must_use]
    pub fn within(&self, parent: &Limits) -> Limits {
        fn least<T: Ord + Copy>(mine: Option<T>, theirs: Option<T>) -> Option<T> {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
                (one, other) => one.or(other),
            }
        }
        Limits {
            memory_bytes: least(self.memory_bytes, parent.memory_bytes),
            cpu_millicores: least(self.cpu_millicores, parent.cpu_millicores),
            cpu_time: least(self.cpu_time, parent.cpu_time),
            wall_time: least(self.wall_time, parent.wall_time),
            processes: least(self.processes, parent.processes),
            open_files: least(self.open_files, parent.open_files),
            file_bytes: least(self.file_bytes, parent.file_bytes),
            scratch_bytes: least(self.scratch_bytes, parent.scratch_bytes),
            output_bytes: least(self.output_bytes, parent.output_bytes),
        }
    }

    /// The first limit that is above the parent's, by name, with both values.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let parent = Limits { processes: Some(10), ..Limits::default() };
    /// let child = Limits { processes: Some(11), ..Limits::default() };
    /// assert_eq!(child.exceeds(&parent), Some(("processes", 11, 10)));
    /// assert_eq!(parent.exceeds(&child), None);
    /// ```
    pub fn exceeds(&self, parent: &Limits) -> Option<(&'static str, u64, u64)> {
        let millis =
            |time: Option<Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let pairs = [
            ("memoryBytes", self.memory_bytes, parent.memory_bytes),
            ("cpuMillicores", self.cpu_millicores.map(u64::from), parent.cpu_millicores.map(u64::from)),
            ("cpuTime (ms)", millis(self.cpu_time), millis(parent.cpu_time)),
            ("wallTime (ms)", millis(self.wall_time), millis(parent.wall_time)),
            ("processes", self.processes.map(u64::from), parent.processes.map(u64::from)),
            ("openFiles", self.open_files.map(u64::from), parent.open_files.map(u64::from)),
            ("fileBytes", self.file_bytes, parent.file_bytes),
            ("scratchBytes", self.scratch_bytes, parent.scratch_bytes),
            ("outputBytes", self.output_bytes, parent.output_bytes),
        ];
        pairs.into_iter().find_map(|(name, mine, theirs)| match (mine, theirs) {
            (Some(mine), Some(theirs)) if mine > theirs => Some((name, mine, theirs)),
            _ => None,
        })
    }
}

/// What a model's context can take when nothing is known about it.
pub const UNKNOWN_BUDGET_BYTES: usize = 64 * 1024;

/// An estimate of how full a model's context is, in tokens.
///
/// ```
/// let estimate = haft_core::TokenEstimate { limit: 8192, used: 4096, response_reserve: 1024, safety_margin: 256 };
/// assert_eq!(estimate.available_bytes(), (8192 - 4096 - 1024 - 256) * 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenEstimate {
    /// What the model's context holds.
    pub limit: usize,
    /// What is in it now.
    pub used: usize,
    /// Kept free for the answer.
    pub response_reserve: usize,
    /// Kept free because estimates are wrong.
    pub safety_margin: usize,
}

impl TokenEstimate {
    /// The bytes of tool results that still fit: four to a token, and never below zero.
    pub const fn available_bytes(&self) -> usize {
        self.limit
            .saturating_sub(self.used)
            .saturating_sub(self.response_reserve)
            .saturating_sub(self.safety_margin)
            .saturating_mul(4)
    }
}

/// Whether a model reads the results, and how much of them it can take.
///
/// ```
/// use haft_core::{ModelBudget, UNKNOWN_BUDGET_BYTES};
/// assert_eq!(ModelBudget::NoModel.available_bytes(), usize::MAX);
/// assert_eq!(ModelBudget::Unknown.available_bytes(), UNKNOWN_BUDGET_BYTES);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum ModelBudget {
    /// No model is attached.
    #[default]
    NoModel,
    /// A model is attached, and nothing is known about its context.
    Unknown,
    /// A model is attached, and somebody counted.
    Known(TokenEstimate),
}

impl ModelBudget {
    /// The bytes of results that fit.
    pub const fn available_bytes(&self) -> usize {
        match self {
            ModelBudget::NoModel => usize::MAX,
            ModelBudget::Unknown => UNKNOWN_BUDGET_BYTES,
            ModelBudget::Known(estimate) => estimate.available_bytes(),
        }
    }
}
