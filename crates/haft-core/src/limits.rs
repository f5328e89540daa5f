//! How much of what.

use crate::{ErrorCode, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a call may use. An absent limit is inherited from the tool, then from the defaults.
///
/// ```
/// use haft_core::Limits;
/// let limits: Limits = serde_json::from_str(r#"{"memoryBytes": 268435456, "cpuMillicores": 500}"#).unwrap();
/// assert_eq!(limits.memory_bytes, Some(256 << 20));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(with = "Option<String>")]
    pub cpu_time: Option<Duration>,
    /// Time on the wall.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::iso_duration::option")]
    #[schemars(with = "Option<String>")]
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
    /// Bytes that it may read from files, in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that it may write to files, in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Operations on files, in all: a file opened, visited or changed, a folder listed, a name looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_operations: Option<u64>,
    /// Bytes that it may read and write in a second, on the average since it started. It waits, and does not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_bytes_per_second: Option<u64>,
}

/// Applies the same to every limit of two sets. A limit that is added and not named here does not compile.
macro_rules! each_limit {
    ($mine:expr, $theirs:expr, $join:ident) => {{
        let Limits {
            memory_bytes,
            cpu_millicores,
            cpu_time,
            wall_time,
            processes,
            open_files,
            file_bytes,
            scratch_bytes,
            output_bytes,
            read_bytes,
            written_bytes,
            io_operations,
            io_bytes_per_second,
        } = $mine;
        Limits {
            memory_bytes: $join(*memory_bytes, $theirs.memory_bytes),
            cpu_millicores: $join(*cpu_millicores, $theirs.cpu_millicores),
            cpu_time: $join(*cpu_time, $theirs.cpu_time),
            wall_time: $join(*wall_time, $theirs.wall_time),
            processes: $join(*processes, $theirs.processes),
            open_files: $join(*open_files, $theirs.open_files),
            file_bytes: $join(*file_bytes, $theirs.file_bytes),
            scratch_bytes: $join(*scratch_bytes, $theirs.scratch_bytes),
            output_bytes: $join(*output_bytes, $theirs.output_bytes),
            read_bytes: $join(*read_bytes, $theirs.read_bytes),
            written_bytes: $join(*written_bytes, $theirs.written_bytes),
            io_operations: $join(*io_operations, $theirs.io_operations),
            io_bytes_per_second: $join(*io_bytes_per_second, $theirs.io_bytes_per_second),
        }
    }};
}

fn first<T>(mine: Option<T>, theirs: Option<T>) -> Option<T> {
    mine.or(theirs)
}

fn least<T: Ord>(mine: Option<T>, theirs: Option<T>) -> Option<T> {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
        (one, other) => one.or(other),
    }
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
        each_limit!(self, other, first)
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
        each_limit!(self, parent, least)
    }

    /// The most that a call may ask for: of what a tool has of its own, that; of what it has from the general limits,
    /// the general ceiling.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let general = Limits { processes: Some(256), open_files: Some(64), ..Limits::default() };
    /// let ceiling = Limits { processes: Some(1000), open_files: Some(128), ..Limits::default() };
    /// let tool = Limits { processes: Some(10), ..Limits::default() }.or(&general);
    /// let most = tool.most(&general, &ceiling);
    /// assert_eq!((most.processes, most.open_files), (Some(10), Some(128)));
    /// ```
    #[must_use]
    pub fn most(&self, general: &Limits, ceiling: &Limits) -> Limits {
        fn own<T: PartialEq>(mine: Option<T>, general: Option<T>) -> Option<T> {
            if mine == general { None } else { mine }
        }
        each_limit!(self, general, own).or(ceiling)
    }

    /// Every limit as a name and a number, in the order of the wire.
    pub fn numbers(&self) -> [(&'static str, Option<u64>); 13] {
        let millis =
            |time: &Option<Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let Limits {
            memory_bytes,
            cpu_millicores,
            cpu_time,
            wall_time,
            processes,
            open_files,
            file_bytes,
            scratch_bytes,
            output_bytes,
            read_bytes,
            written_bytes,
            io_operations,
            io_bytes_per_second,
        } = self;
        [
            ("memoryBytes", *memory_bytes),
            ("cpuMillicores", cpu_millicores.map(u64::from)),
            ("cpuTime (ms)", millis(cpu_time)),
            ("wallTime (ms)", millis(wall_time)),
            ("processes", processes.map(u64::from)),
            ("openFiles", open_files.map(u64::from)),
            ("fileBytes", *file_bytes),
            ("scratchBytes", *scratch_bytes),
            ("outputBytes", *output_bytes),
            ("readBytes", *read_bytes),
            ("writtenBytes", *written_bytes),
            ("ioOperations", *io_operations),
            ("ioBytesPerSecond", *io_bytes_per_second),
        ]
    }

    /// The first limit that nothing but a jail can hold, by name: code in haft's own process shares its memory, cores,
    /// threads and open files with all other calls.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let limits = Limits { read_bytes: Some(1), cpu_millicores: Some(500), ..Limits::default() };
    /// assert_eq!(limits.for_jails_only(), Some("cpuMillicores"));
    /// assert_eq!(Limits { cpu_millicores: None, ..limits }.for_jails_only(), None);
    /// ```
    pub fn for_jails_only(&self) -> Option<&'static str> {
        const NAMES: [&str; 5] = ["memoryBytes", "cpuMillicores", "cpuTime (ms)", "processes", "openFiles"];
        let mut set = self.numbers().into_iter().filter(|(_, amount)| amount.is_some());
        let found = set.find(|(name, _)| NAMES.contains(name));
        found.map(|(name, _)| name.trim_end_matches(" (ms)"))
    }

    /// Those about files that haft counts itself, where it opens and changes the files; the others are absent.
    ///
    /// ```
    /// use haft_core::Limits;
    /// let limits = Limits { read_bytes: Some(1), processes: Some(2), ..Limits::default() };
    /// assert_eq!(limits.of_files(), Limits { read_bytes: Some(1), ..Limits::default() });
    /// ```
    #[must_use]
    pub fn of_files(&self) -> Limits {
        Limits {
            file_bytes: self.file_bytes,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            io_operations: self.io_operations,
            io_bytes_per_second: self.io_bytes_per_second,
            ..Limits::default()
        }
    }

    /// The first limit on reading and writing that no jail can hold, by name: a program maps files into its memory, and
    /// the kernel counts no bytes of that.
    ///
    /// ```
    /// use haft_core::Limits;
    /// assert_eq!(Limits { io_operations: Some(9), ..Limits::default() }.of_io(), Some("ioOperations"));
    /// assert_eq!(Limits { file_bytes: Some(9), ..Limits::default() }.of_io(), None);
    /// ```
    pub fn of_io(&self) -> Option<&'static str> {
        const NAMES: [&str; 4] = ["readBytes", "writtenBytes", "ioOperations", "ioBytesPerSecond"];
        let mut set = self.numbers().into_iter().filter(|(_, amount)| amount.is_some());
        set.find(|(name, _)| NAMES.contains(name)).map(|(name, _)| name)
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
        let mut pairs = self.numbers().into_iter().zip(parent.numbers());
        pairs.find_map(|((name, mine), (_, theirs))| match (mine, theirs) {
            (Some(mine), Some(theirs)) if mine > theirs => Some((name, mine, theirs)),
            _ => None,
        })
    }

    /// Refuses what is above a ceiling, with both values.
    pub fn check_ceiling(&self, ceiling: &Limits) -> Result<(), ToolError> {
        let Some((name, mine, most)) = self.exceeds(ceiling) else { return Ok(()) };
        let more = match ceiling_key(name) {
            Some(key) => format!("; the person who runs haft can allow more with tools.commands.{key}"),
            None => String::new(),
        };
        let text = format!(
            "{name} of {mine} is above the {most} that calls may ask for. Ask for less, or leave it out{more}"
        );
        Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text))
    }
}

/// The key of a configuration under `tools.commands` that raises the most that calls may ask for.
fn ceiling_key(name: &str) -> Option<&'static str> {
    Some(match name {
        "memoryBytes" => "max_memory_bytes",
        "cpuTime (ms)" => "max_cpu_seconds",
        "processes" => "max_processes",
        "scratchBytes" => "max_scratch_bytes",
        "openFiles" => "max_open_files",
        _ => return None,
    })
}

/// What a model's context can take when nothing is known about it.
pub const UNKNOWN_BUDGET_BYTES: usize = 64 * 1024;

/// An estimate of how full a model's context is, in tokens.
///
/// ```
/// let estimate = haft_core::TokenEstimate { limit: 8192, used: 4096, response_reserve: 1024, safety_margin: 256 };
/// assert_eq!(estimate.available_bytes(), (8192 - 4096 - 1024 - 256) * 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// So much of everything.
    fn all(amount: u32) -> Limits {
        let time = Some(Duration::from_millis(amount.into()));
        Limits {
            memory_bytes: Some(amount.into()),
            cpu_millicores: Some(amount),
            cpu_time: time,
            wall_time: time,
            processes: Some(amount),
            open_files: Some(amount),
            file_bytes: Some(amount.into()),
            scratch_bytes: Some(amount.into()),
            output_bytes: Some(amount.into()),
            read_bytes: Some(amount.into()),
            written_bytes: Some(amount.into()),
            io_operations: Some(amount.into()),
            io_bytes_per_second: Some(amount.into()),
        }
    }

    /// So much of that one, as a name and a value on the wire have it.
    fn one(name: &str, amount: u32) -> Limits {
        let (name, is_time) = name.strip_suffix(" (ms)").map_or((name, false), |name| (name, true));
        let seconds = f64::from(amount) / 1000.0;
        let value =
            if is_time { serde_json::json!(format!("PT{seconds}S")) } else { serde_json::json!(amount) };
        let limits = serde_json::Map::from_iter([(name.to_owned(), value)]);
        serde_json::from_value(limits.into()).unwrap()
    }

    #[test]
    fn every_limit_is_compared_and_joined() {
        let names = all(10).numbers().map(|(name, _)| name);
        assert_eq!(names.len(), 13);
        for name in names {
            let of =
                |limits: &Limits| limits.numbers().into_iter().find(|(other, _)| *other == name).unwrap().1;
            assert_eq!(of(&one(name, 7)), Some(7), "{name}");
            // Above, and not above.
            assert_eq!(one(name, 11).exceeds(&all(10)), Some((name, 11, 10)));
            assert!(one(name, 11).check_ceiling(&all(10)).unwrap_err().message.contains("above the 10"));
            assert!(one(name, 10).check_ceiling(&all(10)).is_ok(), "{name}");
            assert_eq!(all(10).exceeds(&one(name, 9)), Some((name, 10, 9)));
            // The tighter of each, and what only one of them has.
            for (mine, theirs, least) in [(5, 10, 5), (10, 5, 5)] {
                assert_eq!(of(&one(name, mine).within(&all(theirs))), Some(least), "{name}");
                assert_eq!(of(&all(mine).within(&one(name, theirs))), Some(least), "{name}");
            }
            assert_eq!(of(&Limits::default().within(&all(5))), Some(5), "{name}");
            assert_eq!(of(&all(5).within(&Limits::default())), Some(5), "{name}");
            // The first that there is.
            assert_eq!(of(&one(name, 10).or(&all(5))), Some(10), "{name}");
            assert_eq!(of(&Limits::default().or(&all(5))), Some(5), "{name}");
            // What a tool has of its own is the most; of what it has from the general limits, the ceiling is.
            let general = all(5);
            assert_eq!(of(&one(name, 3).or(&general).most(&general, &all(20))), Some(3), "{name}");
            assert_eq!(of(&one(name, 9).or(&general).most(&general, &all(20))), Some(9), "{name}");
            assert_eq!(of(&general.most(&general, &all(20))), Some(20), "{name}");
        }
    }
}
