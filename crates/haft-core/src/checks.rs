//! What a call may say about how it is carried out: the same for every face, in the same words.

use crate::{
    BatchOptions, CallOptions, ErrorCode, Limits, ModelBudget, Retry, TokenEstimate, ToolError, text,
};
use std::{ops::RangeInclusive, time::Duration};

/// Something that a call says and that nobody could have meant, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOption(pub String);

impl BadOption {
    fn new(text: impl Into<String>) -> Self {
        BadOption(text.into())
    }
}

impl From<BadOption> for ToolError {
    fn from(bad: BadOption) -> Self {
        ToolError::new(ErrorCode::ValidationFailed, bad.0)
    }
}

/// The largest number that survives the JSON of other programs.
pub const COUNTABLE: u64 = (1 << 53) - 1;
/// How many characters a name has at most.
pub const LONGEST_NAME: usize = 255;
/// How many characters a reason has at most, such as that of a no.
pub const LONGEST_REASON: usize = 1000;

fn uncountable() -> BadOption {
    BadOption(format!("a number is larger than {COUNTABLE}"))
}

/// Refuses a name that cannot stand in records.
///
/// ```
/// use haft_core::check_name;
/// assert!(check_name("agent", "did:agent:7").is_ok());
/// let bad = check_name("agent", "a\nb").unwrap_err();
/// assert_eq!(bad.to_string(), "`agent` must be 1 to 255 characters, none of which controls anything");
/// ```
pub fn check_name(what: &str, name: &str) -> Result<(), BadOption> {
    match is_name(name) {
        true => Ok(()),
        false => Err(BadOption(format!(
            "`{what}` must be 1 to {LONGEST_NAME} characters, none of which controls anything"
        ))),
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}

/// A reason in one line, or that it is too long.
///
/// ```
/// use haft_core::check_reason;
/// assert_eq!(check_reason("not today").as_deref(), Ok("not today"));
/// assert!(check_reason(&"x".repeat(1001)).is_err());
/// ```
pub fn check_reason(reason: &str) -> Result<String, BadOption> {
    match reason.chars().count() > LONGEST_REASON {
        true => Err(BadOption(format!("`reason` must have {LONGEST_REASON} characters at most"))),
        false => Ok(text::one_line(reason, LONGEST_REASON)),
    }
}

impl CallOptions {
    /// The priorities that there are, last to first.
    pub const PRIORITIES: RangeInclusive<u8> = 1..=10;

    /// Refuses what nobody could have meant: a priority that there is not, too many retries, limits without which
    /// nothing runs.
    ///
    /// ```
    /// use haft_core::CallOptions;
    /// let bad = CallOptions { priority: Some(11), ..CallOptions::default() }.check().unwrap_err();
    /// assert_eq!(bad.to_string(), "`priority` must be 1 (last) to 10 (first)");
    /// ```
    pub fn check(&self) -> Result<(), BadOption> {
        // An option that is added and not looked at here does not compile.
        let CallOptions {
            execution_id: _,
            writes: _,       // a call that loosens is asked about
            timeout: _,      // the tool and its sandbox say how long is too long
            idle_timeout: _, // the same
            attempt_timeout,
            attended: _, // said by the program that embeds haft, and by nobody else
            require_confirmation: _,
            isolation: _,
            isolation_technology: _,
            limits,
            retry,
            priority,
            cache: _,
            detached: _,
            coerce: _,
            model,
        } = self;
        if priority.is_some_and(|priority| !CallOptions::PRIORITIES.contains(&priority)) {
            let (last, first) = (CallOptions::PRIORITIES.start(), CallOptions::PRIORITIES.end());
            return Err(BadOption(format!("`priority` must be {last} (last) to {first} (first)")));
        }
        if attempt_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(BadOption::new("`attemptTimeout` must be more than zero: no attempt could succeed"));
        }
        retry.as_ref().map_or(Ok(()), Retry::check)?;
        limits.as_deref().map_or(Ok(()), Limits::check)?;
        match model {
            ModelBudget::Known(estimate) => estimate.check(),
            ModelBudget::NoModel | ModelBudget::Unknown => Ok(()),
        }
    }
}

impl Retry {
    /// The most retries: each attempt has its own events.
    pub const MOST: u32 = 20;

    /// So many retries, with that first wait, after the errors that are retryable.
    ///
    /// ```
    /// use haft_core::Retry;
    /// assert_eq!(Retry::times(2, Retry::default().base), Retry::default());
    /// ```
    pub fn times(max_retries: u32, base: Duration) -> Self {
        Retry { max_retries, base, on: Vec::new() }
    }

    /// Refuses more retries than there may be, and errors after which no attempt may follow.
    ///
    /// ```
    /// use haft_core::{ErrorCode, Retry};
    /// let on = |code| Retry { on: vec![code], ..Retry::default() };
    /// assert!(on(ErrorCode::ExecutionFailed).check().is_ok());
    /// assert!(on(ErrorCode::PermissionDenied).check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), BadOption> {
        if self.max_retries > Retry::MOST {
            return Err(BadOption(format!("`retry.maxRetries` must be {} at most", Retry::MOST)));
        }
        match self.on.iter().find(|code| !code.may_be_retried()) {
            Some(code) => {
                let text = format!("`retry.on` has {code}, after which a call is never retried: remove it");
                Err(BadOption(text))
            }
            None => Ok(()),
        }
    }

    /// Whether another attempt may follow an error, as far as the error alone says.
    ///
    /// ```
    /// use haft_core::{ErrorCode, Retry};
    /// assert!(Retry::default().wants(ErrorCode::Timeout));
    /// assert!(!Retry::default().wants(ErrorCode::ExecutionFailed));
    /// assert!(Retry { on: vec![ErrorCode::ExecutionFailed], ..Retry::default() }.wants(ErrorCode::ExecutionFailed));
    /// ```
    pub fn wants(&self, code: ErrorCode) -> bool {
        match self.on.is_empty() {
            true => code.is_retryable(),
            false => self.on.contains(&code) && code.may_be_retried(),
        }
    }
}

impl TokenEstimate {
    fn check(&self) -> Result<(), BadOption> {
        let TokenEstimate { limit, used, response_reserve, safety_margin } = *self;
        let counts = [limit, used, response_reserve, safety_margin];
        match counts.into_iter().any(|count| count as u64 > COUNTABLE) {
            true => Err(uncountable()),
            false => Ok(()),
        }
    }
}

impl BatchOptions {
    /// The most calls at once that a batch may ask for.
    pub const MOST_AT_ONCE: usize = 1000;

    /// Refuses what nobody could have meant of a batch: see [`CallOptions::check`].
    pub fn check(&self) -> Result<(), BadOption> {
        BatchOptions::check_at_once(self.max_parallelism)?;
        if self.call.detached {
            return Err(BadOption::new("A batch cannot be detached: detach its calls one by one"));
        }
        self.call.check()
    }

    /// Refuses a number of calls at once that cannot be asked for.
    ///
    /// ```
    /// let bad = haft_core::BatchOptions::check_at_once(0).unwrap_err();
    /// assert_eq!(bad.to_string(), "`maxParallelism` must be 1 to 1000");
    /// ```
    pub fn check_at_once(at_once: usize) -> Result<(), BadOption> {
        let most = BatchOptions::MOST_AT_ONCE;
        match (1..=most).contains(&at_once) {
            true => Ok(()),
            false => Err(BadOption(format!("`maxParallelism` must be 1 to {most}"))),
        }
    }
}

impl Limits {
    /// The most processes. What Linux takes at the most is four times that; a jail needs some for itself.
    pub const MOST_PROCESSES: u32 = 1 << 20;
    /// The most open files that Linux takes.
    pub const MOST_OPEN_FILES: u32 = 1 << 20;
    /// A thousand cores.
    pub const MOST_MILLICORES: u32 = 1_000_000;

    /// Refuses limits that nobody could have meant.
    ///
    /// ```
    /// use haft_core::Limits;
    /// assert!(Limits { processes: Some(10), ..Limits::default() }.check().is_ok());
    /// assert!(Limits { memory_bytes: Some(0), ..Limits::default() }.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), BadOption> {
        // A limit that is added and not looked at here does not compile.
        let Limits {
            memory_bytes,
            cpu_millicores,
            cpu_time: _,
            wall_time: _,
            processes,
            open_files,
            file_bytes,
            scratch_bytes,
            output_bytes,
            read_bytes,
            written_bytes,
            io_operations,
            io_bytes_per_second,
        } = *self;
        let none = [cpu_millicores, processes, open_files].contains(&Some(0));
        if none || memory_bytes == Some(0) {
            return Err(BadOption::new("Nothing runs without memory, processor, process or open file"));
        }
        let (most_processes, most_files) = (Limits::MOST_PROCESSES, Limits::MOST_OPEN_FILES);
        let most_millicores = Limits::MOST_MILLICORES;
        let most = [(processes, most_processes), (open_files, most_files), (cpu_millicores, most_millicores)];
        if most.into_iter().any(|(asked, most)| asked.is_some_and(|asked| asked > most)) {
            return Err(BadOption(format!(
                "The most is {most_processes} processes, {most_files} open files and {most_millicores} millicores"
            )));
        }
        // Zero bytes or operations can be meant: reads nothing, writes nothing. At no speed nothing ever ends.
        if io_bytes_per_second == Some(0) {
            return Err(BadOption::new("`ioBytesPerSecond` must be 1 at least"));
        }
        let bytes = [memory_bytes, file_bytes, scratch_bytes, output_bytes];
        let io = [read_bytes, written_bytes, io_operations, io_bytes_per_second];
        match bytes.into_iter().chain(io).flatten().any(|bytes| bytes > COUNTABLE) {
            true => Err(uncountable()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_nobody_could_have_meant_is_refused_and_its_edge_is_not() {
        let limits = |limits| CallOptions { limits: Some(Box::new(limits)), ..CallOptions::default() };
        let retries = |max_retries| {
            let retry = Some(Retry { max_retries, ..Retry::default() });
            CallOptions { retry, ..CallOptions::default() }
        };
        let priority = |priority| CallOptions { priority: Some(priority), ..CallOptions::default() };
        let known = |limit| {
            let estimate = TokenEstimate { limit, used: 0, response_reserve: 0, safety_margin: 0 };
            CallOptions { model: ModelBudget::Known(estimate), ..CallOptions::default() }
        };
        let most = Limits {
            memory_bytes: Some(COUNTABLE),
            processes: Some(Limits::MOST_PROCESSES),
            open_files: Some(Limits::MOST_OPEN_FILES),
            cpu_millicores: Some(Limits::MOST_MILLICORES),
            ..Limits::default()
        };
        for fits in
            [CallOptions::default(), limits(most), retries(20), priority(1), priority(10), known(1 << 20)]
        {
            fits.check().unwrap();
        }
        for (bad, words) in [
            (priority(0), "`priority` must be 1 (last) to 10 (first)"),
            (priority(11), "`priority` must be 1 (last) to 10 (first)"),
            (retries(21), "`retry.maxRetries` must be 20 at most"),
            (known(1 << 53), "a number is larger than 9007199254740991"),
            (limits(Limits { memory_bytes: Some(0), ..Limits::default() }), "Nothing runs without memory"),
            (limits(Limits { processes: Some(0), ..Limits::default() }), "Nothing runs without memory"),
            (
                limits(Limits { processes: Some((1 << 20) + 1), ..Limits::default() }),
                "The most is 1048576 processes",
            ),
            (limits(Limits { file_bytes: Some(1 << 53), ..Limits::default() }), "a number is larger than"),
            (limits(Limits { read_bytes: Some(1 << 53), ..Limits::default() }), "a number is larger than"),
            (
                limits(Limits { io_bytes_per_second: Some(0), ..Limits::default() }),
                "`ioBytesPerSecond` must be 1 at least",
            ),
        ] {
            let said = bad.check().unwrap_err();
            assert!(said.to_string().starts_with(words), "{said}");
            let batch = BatchOptions { call: bad, ..BatchOptions::default() };
            assert_eq!(batch.check().unwrap_err(), said, "a batch says the same");
        }
    }

    #[test]
    fn a_batch_has_a_width_and_is_not_detached() {
        for (max_parallelism, fits) in [(0, false), (1, true), (1000, true), (1001, false)] {
            let options = BatchOptions { max_parallelism, ..BatchOptions::default() };
            assert_eq!(options.check().is_ok(), fits, "{max_parallelism}");
        }
        let call = CallOptions { detached: true, ..CallOptions::default() };
        assert!(call.check().is_ok());
        assert!(BatchOptions { call, ..BatchOptions::default() }.check().is_err());
    }

    #[test]
    fn names_and_reasons_have_a_length() {
        assert!(check_name("id", &"é".repeat(255)).is_ok());
        for bad in ["", "a\u{85}b", "a\0b", &"é".repeat(256)] {
            assert!(check_name("id", bad).is_err(), "{bad:?}");
        }
        assert_eq!(check_reason("a\nb").unwrap(), "a⏎b");
        let long = check_reason(&"é".repeat(1001)).unwrap_err();
        assert_eq!(long.to_string(), "`reason` must have 1000 characters at most");
    }
}
