//! What requests say about calls.

use crate::{
    extract::{integer, object, object_of_objects},
    identity::Identity,
    problem::Problem,
    schema,
    server::App,
};
use haft_core::{
    Arguments, BatchOptions, CallContext, CallOptions, ErrorCode, Limits, ModelBudget, Strategy,
    TokenEstimate, ToolCall,
};
use haft_engine::Request;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::sync::Arc;
use utoipa::ToSchema;

/// The longest name that somebody may give to anything.
const LONGEST: usize = 255;

/// Who a call is for, as far as the key does not say. Tenant, roles and tier are never a request's to choose.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Context {
    /// The agent that calls: a DID or any other text but `owner`, `mcp:…` and `key_…`. Only with a key that is not bound to
    /// an agent; records name it behind the key's id, as `key_…/AGENT`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    agent: Option<String>,
    /// One run of the agent.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    session: Option<String>,
    /// The conversation, within which files that were read are remembered.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    conversation: Option<String>,
    /// Ties calls of one request together across systems.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    correlation_id: Option<String>,
    /// The sandbox that it runs in.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    sandbox: Option<String>,
    /// Anything else, passed through to the tool.
    #[schema(value_type = Object)]
    extra: Map<String, Value>,
}

/// A name that may stand in records.
pub(crate) fn plain(what: &'static str, text: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    match text {
        None => Ok(None),
        Some(text)
            if text.is_empty() || text.chars().count() > LONGEST || text.chars().any(char::is_control) =>
        {
            Err(Problem::bad_request(format!(
                "`{what}` must be 1 to {LONGEST} characters, none of which controls anything"
            )))
        }
        Some(text) => Ok(Some(text.into())),
    }
}

impl Context {
    /// Who calls: what is known about the caller, with what they say themselves.
    pub(crate) fn of(self, who: &Identity, app: &App) -> Result<Arc<CallContext>, Problem> {
        let (agent, sandbox) = (plain("agent", self.agent)?, plain("sandbox", self.sandbox)?);
        let base = who.base();
        let mut context = CallContext::clone(base);
        context.agent = who.agent(agent)?;
        let or = |said: Option<Arc<str>>, known: &Option<Arc<str>>| said.or_else(|| known.clone());
        context.session = or(plain("session", self.session)?, &base.session);
        context.conversation = or(plain("conversation", self.conversation)?, &base.conversation);
        context.correlation_id = or(plain("correlationId", self.correlation_id)?, &base.correlation_id);
        context.extra.extend(self.extra);
        match sandbox {
            Some(id) => {
                let sandboxes = app.engine.sandboxes();
                sandboxes.enter(&context, &id).map_err(|_| Problem::not_found("sandbox"))
            }
            None => Ok(Arc::new(context)),
        }
    }
}

/// One call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Call {
    /// The tool's name or one of its aliases.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        example = "read_file"
    )]
    name: String,
    /// The arguments: an object. Anything else is that call's own failure.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    arguments: Arguments,
    /// Your own name for it. It comes back on the result.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    id: Option<String>,
    /// Calls with the same key have their effect once.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    idempotency_key: Option<String>,
    /// Passed through to the tool.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

impl Call {
    /// The call. `key` is that of the request, where the call has none.
    pub(crate) fn of(self, key: Option<String>) -> Result<ToolCall, Problem> {
        let both = |own: &String, other: &String| own != other;
        if self.idempotency_key.as_ref().zip(key.as_ref()).is_some_and(|(own, other)| both(own, other)) {
            let text = "Idempotency-Key and `idempotencyKey` differ";
            return Err(Problem::new(ErrorCode::IdempotencyConflict, text));
        }
        Ok(ToolCall {
            // An unknown name is the engine's affair; one that cannot stand in records is not.
            name: plain("name", Some(self.name))?.unwrap_or_default(),
            arguments: self.arguments,
            id: plain("id", self.id.filter(|id| !id.is_empty()))?.unwrap_or_default(),
            idempotency_key: plain("idempotencyKey", self.idempotency_key.or(key))?,
            metadata: self.metadata.map(Arc::new),
        })
    }
}

/// A call, with who makes it and how. Its first members are those of a `Call`, which cannot be flattened: the bytes of
/// arguments do not survive that.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Invoke {
    /// The tool's name or one of its aliases.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        example = "read_file"
    )]
    name: String,
    /// The arguments: an object. Anything else is that call's own failure.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    arguments: Arguments,
    /// Your own name for it. It comes back on the result.
    #[schema(max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    id: Option<String>,
    /// Calls with the same key have their effect once. The header `Idempotency-Key` says the same.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    idempotency_key: Option<String>,
    /// Passed through to the tool.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Who it is for.
    #[serde(default, deserialize_with = "object")]
    context: Context,
    /// How.
    #[serde(default, deserialize_with = "object_of_objects")]
    #[schema(value_type = schema::CallOptions)]
    options: CallOptions,
}

/// How a call is to be carried out. The id of its execution is the server's to make up: ids of others must not be probed for.
pub(crate) fn options(options: CallOptions) -> Result<CallOptions, Problem> {
    if options.execution_id.is_some() {
        return Err(Problem::bad_request("`executionId` is made by the server: leave it out"));
    }
    if options.priority.is_some_and(|priority| !(1..=10).contains(&priority)) {
        return Err(Problem::bad_request("`priority` must be 1 (last) to 10 (first)"));
    }
    if options.retry.as_ref().is_some_and(|retry| retry.max_retries > MOST_RETRIES) {
        return Err(Problem::bad_request(format!("`retry.maxRetries` must be {MOST_RETRIES} at most")));
    }
    if let Some(limits) = options.limits.as_deref() {
        countable(limits)?;
    }
    if let ModelBudget::Known(TokenEstimate { limit, used, response_reserve, safety_margin }) = options.model
        && [limit, used, response_reserve, safety_margin].into_iter().any(|count| count as u64 > COUNTABLE)
    {
        return Err(uncountable());
    }
    Ok(options)
}

/// Each try has its own deadline and its own event.
const MOST_RETRIES: u32 = 10;

/// Numbers beyond it do not survive the JSON of other programs.
const COUNTABLE: u64 = (1 << 53) - 1;

fn uncountable() -> Problem {
    Problem::bad_request(format!("a number is larger than {COUNTABLE}"))
}

/// What Linux takes at the most is four times that; a jail needs some for itself.
const MOST_PROCESSES: u32 = 1 << 20;
/// What Linux takes at the most.
const MOST_OPEN_FILES: u32 = 1 << 20;
/// A thousand cores.
const MOST_MILLICORES: u32 = 1_000_000;

/// Refuses limits that nobody could have meant.
pub(crate) fn countable(limits: &Limits) -> Result<(), Problem> {
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
    } = *limits;
    let none = [cpu_millicores, processes, open_files].contains(&Some(0));
    if none || memory_bytes == Some(0) {
        return Err(Problem::bad_request("Nothing runs without memory, processor, process or open file"));
    }
    let most =
        [(processes, MOST_PROCESSES), (open_files, MOST_OPEN_FILES), (cpu_millicores, MOST_MILLICORES)];
    if most.into_iter().any(|(asked, most)| asked.is_some_and(|asked| asked > most)) {
        return Err(Problem::bad_request(format!(
            "The most is {MOST_PROCESSES} processes, {MOST_OPEN_FILES} open files and {MOST_MILLICORES} millicores"
        )));
    }
    let bytes = [memory_bytes, file_bytes, scratch_bytes, output_bytes];
    match bytes.into_iter().flatten().any(|bytes| bytes > COUNTABLE) {
        true => Err(uncountable()),
        false => Ok(()),
    }
}

/// A time in ISO 8601. The document is narrower than the server, which takes `30s`, too.
const TIME: &str = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$";
/// A second to a day.
const TIME_TO_LIVE: &str = "^PT(([1-9]|1[0-9]|2[0-3])H|[1-9][0-9]{0,2}M|[1-9][0-9]{0,3}S)$";

/// What the checks above ask for, as the document says it: type, member, and what is added to the member's schema.
pub(crate) fn bounds() -> Vec<(&'static str, &'static str, Value)> {
    let time = || json!({"pattern": TIME, "examples": ["PT30S"]});
    let up_to = |most: u64| json!({"minimum": 1, "maximum": most});
    let mut all = vec![
        ("Limits", "memoryBytes", up_to(COUNTABLE)),
        ("Limits", "cpuMillicores", up_to(MOST_MILLICORES.into())),
        ("Limits", "processes", up_to(MOST_PROCESSES.into())),
        ("Limits", "openFiles", up_to(MOST_OPEN_FILES.into())),
        ("Retry", "maxRetries", json!({"maximum": MOST_RETRIES})),
        ("Retry", "on", json!({"items": schema::reference("ErrorCode")})),
        ("CallOptions", "priority", up_to(10)),
        ("SandboxSpec", "timeToLive", json!({"pattern": TIME_TO_LIVE, "examples": ["PT10M"]})),
    ];
    let times = [
        ("Limits", "cpuTime"),
        ("Limits", "wallTime"),
        ("Retry", "base"),
        ("CallOptions", "timeout"),
        ("CallOptions", "idleTimeout"),
    ];
    all.extend(times.map(|(kind, member)| (kind, member, time())));
    let counts = [
        ("Limits", "fileBytes"),
        ("Limits", "scratchBytes"),
        ("Limits", "outputBytes"),
        ("ModelBudget", "limit"),
        ("ModelBudget", "used"),
        ("ModelBudget", "responseReserve"),
        ("ModelBudget", "safetyMargin"),
    ];
    all.extend(counts.map(|(kind, member)| (kind, member, json!({"maximum": COUNTABLE}))));
    all
}

impl Invoke {
    pub(crate) fn of(self, who: &Identity, app: &App, key: Option<String>) -> Result<Request, Problem> {
        let Invoke { name, arguments, id, idempotency_key, metadata, context, options: how } = self;
        let call = Call { name, arguments, id, idempotency_key, metadata }.of(key)?;
        let options = options(how)?;
        Ok(Request::new(call).context(context.of(who, app)?).options(options))
    }
}

/// Several calls that are planned together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Batch {
    /// The calls, in their order.
    #[schema(min_items = 1, max_items = 1000)]
    pub(crate) calls: Vec<Call>,
    /// Who they are for.
    #[serde(default, deserialize_with = "object")]
    pub(crate) context: Context,
    /// How each is carried out.
    #[serde(default, deserialize_with = "object_of_objects")]
    #[schema(value_type = schema::SharedOptions)]
    options: CallOptions,
    /// How they follow each other.
    #[serde(default)]
    #[schema(value_type = schema::Strategy)]
    strategy: Strategy,
    /// Whether the rest runs after a call that did not succeed.
    #[serde(default = "yes")]
    continue_on_failure: bool,
    /// The most calls at once.
    #[serde(default = "four", deserialize_with = "integer")]
    #[schema(minimum = 1, maximum = 64)]
    max_parallelism: u8,
}

fn yes() -> bool {
    true
}

fn four() -> u8 {
    4
}

impl Batch {
    pub(crate) fn options(&self) -> Result<BatchOptions, Problem> {
        if !(1..=64).contains(&self.max_parallelism) {
            return Err(Problem::bad_request("`maxParallelism` must be 1 to 64"));
        }
        if self.options.detached {
            return Err(Problem::bad_request("A batch cannot be detached: detach its calls one by one"));
        }
        Ok(BatchOptions {
            call: options(self.options.clone())?,
            strategy: self.strategy,
            continue_on_failure: self.continue_on_failure,
            max_parallelism: usize::from(self.max_parallelism),
            ..BatchOptions::default()
        })
    }
}

/// A flow, with what it takes, who runs it and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Flow {
    /// The flow, as a flow file in JSON has it.
    #[schema(value_type = Object)]
    pub(crate) flow: Box<RawValue>,
    /// What it takes.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub(crate) input: Map<String, Value>,
    /// Who runs it.
    #[serde(default, deserialize_with = "object")]
    pub(crate) context: Context,
    /// How: the options of every node that says nothing else.
    #[serde(default, deserialize_with = "object_of_objects")]
    #[schema(value_type = schema::SharedOptions)]
    pub(crate) options: CallOptions,
}
