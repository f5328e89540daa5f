//! The one error table: name, code, E-number, status, retryability, HTTP status, exit code and model text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{fmt, str::FromStr};

/// How a call ended. Eight words; the [`ErrorCode`] says the rest.
///
/// ```
/// use haft_core::Status;
/// assert_eq!(serde_json::to_string(&Status::PermissionDenied).unwrap(), "\"PermissionDenied\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Status {
    /// The tool ran and its output is valid.
    Success,
    /// The tool, or something around it, failed.
    Failed,
    /// The deadline passed first.
    Timeout,
    /// Somebody or something ended it, or it never started because of that.
    Cancelled,
    /// A person has to approve it first.
    RequiresConfirmation,
    /// Containment could not be made, was hit, or broke.
    SandboxError,
    /// Policy, permission or licence says no.
    PermissionDenied,
    /// The call itself is wrong.
    ValidationError,
}

impl Status {
    /// All eight, in the order of their numbers.
    pub const ALL: [Status; 8] = [
        Status::Success,
        Status::Failed,
        Status::Timeout,
        Status::Cancelled,
        Status::RequiresConfirmation,
        Status::SandboxError,
        Status::PermissionDenied,
        Status::ValidationError,
    ];

    /// The name on the wire.
    ///
    /// ```
    /// assert_eq!(haft_core::Status::Timeout.as_str(), "Timeout");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Success => "Success",
            Status::Failed => "Failed",
            Status::Timeout => "Timeout",
            Status::Cancelled => "Cancelled",
            Status::RequiresConfirmation => "RequiresConfirmation",
            Status::SandboxError => "SandboxError",
            Status::PermissionDenied => "PermissionDenied",
            Status::ValidationError => "ValidationError",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! error_table {
    ($(
        $(#[$doc:meta])*
        $name:ident $code:literal $e:tt $status:tt retry=$retry:literal http=$http:literal exit=$exit:literal
        $(alias=$alias:literal)? $model:literal;
    )*) => {
        /// Every way in which a call can fail to succeed. One row each: see the columns' methods.
        ///
        /// ```
        /// use haft_core::{ErrorCode, Status};
        /// let code = ErrorCode::Timeout;
        /// assert_eq!((code.as_str(), code.e_number()), ("TIMEOUT", Some("E3103")));
        /// assert_eq!((code.status(), code.http(), code.exit()), (Some(Status::Timeout), 408, 124));
        /// assert_eq!("EXECUTION_TIMEOUT".parse(), Ok(code)); // an alias
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $( $(#[$doc])* $name, )* }

        impl ErrorCode {
            /// Every row of the table, in its order.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name),*];

            /// The code on the wire, in SCREAMING_SNAKE_CASE.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$name => $code),* }
            }

            /// The number in the E3000 range, where there is one.
            pub const fn e_number(self) -> Option<&'static str> {
                match self { $(ErrorCode::$name => error_table!(@opt $e)),* }
            }

            /// The status of a call that ends with it; `None` for errors that end no call.
            pub const fn status(self) -> Option<Status> {
                match self { $(ErrorCode::$name => error_table!(@status $status)),* }
            }

            /// Whether the same call may succeed when sent again unchanged.
            pub const fn is_retryable(self) -> bool {
                match self { $(ErrorCode::$name => $retry),* }
            }

            /// Whether a call or a tool may ask for another attempt after it (`retry.on`): an attempt was made and
            /// failed. After a refusal, a cancellation or an end that nobody knows there is none.
            pub const fn may_be_retried(self) -> bool {
                let is_failure = matches!(
                    self,
                    ErrorCode::ExecutionFailed
                        | ErrorCode::NonZeroExit
                        | ErrorCode::Panicked
                        | ErrorCode::SandboxCrashed
                        | ErrorCode::SandboxCreationFailed
                        | ErrorCode::OutputValidationFailed
                );
                self.is_retryable() || is_failure
            }

            /// The status code of an HTTP answer.
            pub const fn http(self) -> u16 {
                match self { $(ErrorCode::$name => $http),* }
            }

            /// The exit code of the command line.
            pub const fn exit(self) -> u8 {
                match self { $(ErrorCode::$name => $exit),* }
            }

            /// What a model may be told when nothing more specific is known.
            pub const fn model_text(self) -> &'static str {
                match self { $(ErrorCode::$name => $model),* }
            }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownErrorCode;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($code => Ok(ErrorCode::$name), $($alias => Ok(ErrorCode::$name),)?)*
                    _ => Err(UnknownErrorCode),
                }
            }
        }
    };
    (@opt none) => { None };
    (@opt $e:literal) => { Some($e) };
    (@status none) => { None };
    (@status $s:ident) => { Some(Status::$s) };
}

error_table! {
    /// No tool of that name or alias.
    ToolNotFound "TOOL_NOT_FOUND" "E3001" Failed retry=false http=404 exit=1
        "There is no tool of that name.";
    /// Switched off by mode, policy or an administrator.
    ToolDisabled "TOOL_DISABLED" none PermissionDenied retry=false http=403 exit=3
        "Tool execution disabled by policy";
    /// On the denylist, or denied by a rule.
    ToolDenied "TOOL_DENIED" none PermissionDenied retry=false http=403 exit=3
        "Policy does not allow this tool call.";
    /// The caller lacks a permission.
    PermissionDenied "PERMISSION_DENIED" none PermissionDenied retry=false http=403 exit=3
        "The caller does not have the permission that this tool needs.";
    /// The licence tier does not include this.
    LicenseRequired "LICENSE_REQUIRED" none PermissionDenied retry=false http=402 exit=3
        "This tool is not part of the current licence.";
    /// A tool of that name is registered already.
    DuplicateTool "DUPLICATE_TOOL" "E3007" none retry=false http=409 exit=2
        "A tool of that name is registered already.";
    /// A tool definition breaks a rule.
    BadDefinition "BAD_DEFINITION" "E3008" none retry=false http=422 exit=2
        "The tool definition is not valid.";
    /// A signature is missing, wrong or by an unknown key.
    BadSignature "BAD_SIGNATURE" none none retry=false http=422 exit=2
        "The tool's signature is not valid.";
    /// The arguments do not fit the tool's schema.
    ValidationFailed "VALIDATION_FAILED" "E3401" ValidationError retry=false http=422 exit=4
        "The arguments do not fit the tool's schema.";
    /// The tool's output does not fit its own schema.
    OutputValidationFailed "OUTPUT_VALIDATION_FAILED" "E3401" Failed retry=false http=502 exit=4
        "The tool returned something that does not fit its own output schema.";
    /// Too many calls, too large arguments, too many iterations.
    LimitExceeded "LIMIT_EXCEEDED" "E3404" ValidationError retry=false http=413 exit=4
        "The call exceeds a limit.";
    /// Another call of the same batch has that id.
    DuplicateCallId "DUPLICATE_CALL_ID" none ValidationError retry=false http=409 exit=4
        "Another call of this batch has the same id.";
    /// The idempotency key was used with other arguments.
    IdempotencyConflict "IDEMPOTENCY_CONFLICT" none ValidationError retry=false http=409 exit=4
        "This idempotency key was used before with other arguments.";
    /// A person has to approve it first, and nobody was there to ask.
    ConfirmationRequired "CONFIRMATION_REQUIRED" none RequiresConfirmation retry=false http=202 exit=5
        "A person has to approve this call before it can run.";
    /// A person said no.
    ConfirmationDenied "CONFIRMATION_DENIED" none Cancelled retry=false http=403 exit=3
        "Tool call denied by user";
    /// Nobody answered in time.
    ApprovalExpired "APPROVAL_EXPIRED" none RequiresConfirmation retry=false http=410 exit=5
        "The approval for this call has expired.";
    /// The containment that was asked for cannot be made here.
    SandboxCreationFailed "SANDBOX_CREATION_FAILED" "E3101" SandboxError retry=false http=500 exit=1
        "The sandbox for this call could not be created.";
    /// Memory, CPU time, processes, files or output over the limit, or a limit above the parent's.
    ResourceLimitExceeded "RESOURCE_LIMIT_EXCEEDED" "E3102" SandboxError retry=false http=422 exit=1
        "The call used more of a resource than it may.";
    /// The deadline passed.
    Timeout "TIMEOUT" "E3103" Timeout retry=true http=408 exit=124 alias="EXECUTION_TIMEOUT"
        "The tool did not finish in time.";
    /// A host that is not allowed.
    NetworkPolicyViolation "NETWORK_POLICY_VIOLATION" "E3104" SandboxError retry=false http=403 exit=3
        "This network address is not allowed.";
    /// A path that is not allowed.
    FilesystemPolicyViolation "FILESYSTEM_POLICY_VIOLATION" "E3105" SandboxError retry=false http=403 exit=3
        "This path is not allowed.";
    /// Too many calls at once, and the queue is full.
    ConcurrentLimitExceeded "CONCURRENT_LIMIT_EXCEEDED" "E3106" Failed retry=true http=429 exit=1
        "Too many tool calls are running. Try again later.";
    /// Too many calls in a period.
    RateLimited "RATE_LIMITED" "E3302" Failed retry=true http=429 exit=1
        "Too many calls to this tool. Try again later.";
    /// The tool failed too often lately.
    CircuitOpen "CIRCUIT_OPEN" "E3301" Failed retry=true http=503 exit=1
        "This tool failed too often and is paused. Try again later.";
    /// The tenant has used up what it may use in a day.
    QuotaExceeded "QUOTA_EXCEEDED" "E3302" Failed retry=false http=429 exit=1
        "The quota for today is used up.";
    /// The same call failed again and again, so it was not run once more.
    RepeatedFailure "REPEATED_FAILURE" none Failed retry=false http=429 exit=1
        "The same call failed several times in a row, so it was not run again. Do something else.";
    /// The sandbox itself broke.
    SandboxCrashed "SANDBOX_CRASHED" "E3107" SandboxError retry=false http=502 exit=1
        "The sandbox of this call crashed.";
    /// A program ended with another exit code than 0.
    NonZeroExit "NON_ZERO_EXIT" "E3108" Failed retry=false http=200 exit=1
        "The program ended with an error.";
    /// Ended by the user, the parent, a shutdown, or because the caller went away.
    Cancelled "CANCELLED" none Cancelled retry=false http=499 exit=130
        "Cancelled by user";
    /// haft was shutting down, so the call never started.
    ShuttingDown "SHUTTING_DOWN" none Cancelled retry=true http=503 exit=130
        "Not started, because haft is shutting down. Try again later.";
    /// An earlier call failed or was cancelled, so this one never started.
    NotStarted "NOT_STARTED" none Cancelled retry=false http=424 exit=1
        "Not started, because the batch stopped before it.";
    /// It depends on a call that waits for approval or failed.
    Blocked "BLOCKED" none Cancelled retry=false http=424 exit=1
        "Not started, because it touches what an earlier, unfinished call touches.";
    /// The tool said that it failed.
    ExecutionFailed "EXECUTION_FAILED" none Failed retry=false http=200 exit=1 alias="EXECUTION_ERROR"
        "The tool failed.";
    /// The tool panicked.
    Panicked "PANICKED" none Failed retry=false http=200 exit=1
        "Tool panicked";
    /// A file changed since it was read, or was never read.
    StaleFile "STALE_FILE" none Failed retry=false http=200 exit=1
        "The file changed since it was last read. Read it again first.";
    /// A patch did not apply.
    PatchFailed "PATCH_FAILED" none Failed retry=false http=200 exit=1
        "The patch could not be applied.";
    /// It was started, and how it ended is not known.
    OutcomeUnknown "OUTCOME_UNKNOWN" none Failed retry=false http=200 exit=6
        "This call was started, but it is not known whether it took effect. It was not run again.";
    /// The record of the call could not be written.
    StoreUnavailable "STORE_UNAVAILABLE" none Failed retry=false http=503 exit=1
        "The call could not be recorded, so it was not run.";
    /// The server behind the tool is not there, or is paused after it ended too often.
    UpstreamUnavailable "UPSTREAM_UNAVAILABLE" none Failed retry=true http=503 exit=1
        "The server behind this tool is not available now. Try again later.";
    /// No task of that id.
    TaskNotFound "TASK_NOT_FOUND" "E3150" none retry=false http=404 exit=1
        "There is no task of that id.";
    /// The task has ended already.
    TaskFinished "TASK_FINISHED" "E3151" none retry=false http=409 exit=1
        "The task has ended already.";
    /// The task could not be cancelled.
    TaskCancelFailed "TASK_CANCEL_FAILED" "E3152" none retry=false http=409 exit=1
        "The task could not be cancelled.";
    /// A request that cannot be understood.
    BadRequest "BAD_REQUEST" none none retry=false http=400 exit=2
        "The request cannot be understood.";
    /// The request has no valid credentials.
    Unauthenticated "UNAUTHENTICATED" none none retry=false http=401 exit=3
        "The request has no valid key or token.";
    /// There is no such resource, or another tenant has it.
    NotFound "NOT_FOUND" none none retry=false http=404 exit=1
        "There is no such resource.";
    /// The question was answered already, or it is too late.
    AlreadyAnswered "ALREADY_ANSWERED" none none retry=false http=409 exit=1
        "The question was answered already, or it is too late for an answer.";
    /// This haft was built without it.
    NotSupported "NOT_SUPPORTED" none none retry=false http=501 exit=1
        "This is not available here.";
}

/// Text that is in no row of the error table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an error code of haft")]
pub struct UnknownErrorCode;

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Any text: programs that were made today must read the codes of tomorrow.
impl JsonSchema for ErrorCode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom(format!("`{text}` is not an error code of haft")))
    }
}

/// One thing that is wrong with arguments or output: where, which rule, what was expected.
///
/// ```
/// let problem = haft_core::Problem::new("/age", "type", "expected an integer, got the string \"12\"");
/// assert_eq!(problem.to_string(), "/age: expected an integer, got the string \"12\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SingleProblem")]
pub struct Problem {
    /// JSON pointer of the value; empty for the whole.
    pub pointer: String,
    /// The rule that it breaks: a JSON Schema keyword, or a word of haft's own.
    pub rule: String,
    /// One sentence that says what was expected and what was there.
    pub message: String,
}

impl Problem {
    /// A problem at `pointer`, against `rule`.
    pub fn new(pointer: impl Into<String>, rule: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { pointer: pointer.into(), rule: rule.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}

/// Why a call failed: a row of the table, a text that a model may read, and, apart from it, what only an
/// operator should see.
///
/// ```
/// use haft_core::{ErrorCode, ToolError};
/// let error = ToolError::failed("the ledger is closed").with_diagnostics("db=ledger7 errno=30");
/// assert_eq!(error.code, ErrorCode::ExecutionFailed);
/// assert_eq!(error.to_string(), "the ledger is closed"); // never the diagnostics
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The row of the error table.
    pub code: ErrorCode,
    /// What a model may read, in words that it can act on.
    pub message: String,
    /// What only the operator sees.
    pub diagnostics: Option<String>,
    /// The single problems, where there are several.
    pub problems: Vec<Problem>,
    /// Facts about the failure for programs, such as an approval id.
    pub data: Option<Box<Value>>,
}

impl ToolError {
    /// An error of that row with a text of its own.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ToolError { code, message: message.into(), diagnostics: None, problems: Vec::new(), data: None }
    }

    /// The tool failed; `message` says why. A message that is a JSON object reaches the model byte for byte.
    pub fn failed(message: impl Into<String>) -> Self {
        ToolError::new(ErrorCode::ExecutionFailed, message)
    }

    /// The arguments are wrong in a way that the schema could not say.
    pub fn bad_args(message: impl Into<String>) -> Self {
        ToolError::new(ErrorCode::ValidationFailed, message)
    }

    /// The call was cancelled, and the tool noticed.
    pub fn cancelled() -> Self {
        ErrorCode::Cancelled.into()
    }

    /// Adds what only the operator sees.
    pub fn with_diagnostics(mut self, diagnostics: impl fmt::Display) -> Self {
        self.diagnostics = Some(diagnostics.to_string());
        self
    }

    /// Adds the single problems.
    pub fn with_problems(mut self, problems: Vec<Problem>) -> Self {
        self.problems = problems;
        self
    }

    /// Adds facts for programs.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Adds one fact for programs to those that are there. One of that name stays as it is.
    ///
    /// ```
    /// use haft_core::ToolError;
    /// let error = ToolError::failed("no").with_fact("file", "a.txt").with_fact("file", "b.txt");
    /// assert_eq!(error.data.unwrap()["file"], "a.txt");
    /// ```
    pub fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        let data = self.data.get_or_insert_with(|| Box::new(Value::Object(Map::new())));
        // What a service sent in place of an object is its own.
        if let Value::Object(facts) = &mut **data {
            facts.entry(name).or_insert_with(|| value.into());
        }
        self
    }
}

impl From<ErrorCode> for ToolError {
    fn from(code: ErrorCode) -> Self {
        ToolError::new(code, code.model_text())
    }
}
