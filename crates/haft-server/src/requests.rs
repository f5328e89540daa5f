//! What requests say about calls.

use crate::{
    extract::{integer, object, object_of_objects},
    identity::Identity,
    problem::Problem,
    schema,
    server::App,
};
use haft_core::{
    Arguments, BatchId, BatchOptions, COUNTABLE, CallContext, CallOptions, ErrorCode, ExecutionId, Limits,
    Retry, Strategy, ToolCall, check_name,
};
use haft_engine::{Request, Target};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::sync::Arc;
use utoipa::ToSchema;

/// Who a call is for, as far as the key does not say. Tenant, roles and tier are never a request's to choose.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Context {
    /// The agent that calls: a DID or any other text but `owner`, `mcp:…` and `key_…`. Only with a key that is not
    /// bound to an agent; records name it behind the key's id, as `key_…/AGENT`.
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
    text.as_deref().map_or(Ok(()), |text| check_name(what, text))?;
    Ok(text.map(Into::into))
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
    #[serde(alias = "tool")]
    name: String,
    /// The arguments: an object. Anything else is that call's own failure.
    #[serde(default, alias = "args")]
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
    /// Options of the call.
    #[serde(default, deserialize_with = "object_of_objects")]
    #[schema(value_type = schema::CallOptions)]
    options: CallOptions,
}

/// How a call is to be carried out.
pub(crate) fn options(options: CallOptions) -> Result<CallOptions, Problem> {
    options.check()?;
    if options.detached && options.execution_id.is_some() {
        let text = "A detached call is known by its task: leave out `executionId`";
        return Err(Problem::new(ErrorCode::ValidationFailed, text));
    }
    Ok(options)
}

/// The options of calls that are made together: their id is that of the batch.
fn shared(options: CallOptions, batch: Option<BatchId>) -> Result<CallOptions, Problem> {
    match options.execution_id {
        Some(_) => Err(Problem::bad_request("Several calls have several ids: name the batch with `batchId`")),
        None => {
            let execution_id = batch.map(|batch| ExecutionId::from_uuid(batch.as_uuid()));
            Ok(CallOptions { execution_id, ..options })
        }
    }
}

/// Refuses an id that was used before.
pub(crate) async fn unused(target: impl Into<Target>, who: &Identity, app: &App) -> Result<(), Problem> {
    let target = target.into();
    match app.engine.is_used(target, who.tenant()).await? {
        false => Ok(()),
        true => {
            let text = match target {
                Target::Call(id) => format!("The execution id {id} was used before. Use a new one, or none"),
                Target::Batch(id) => format!("The batch id {id} was used before. Use a new one, or none"),
            };
            Err(Problem::new(ErrorCode::DuplicateCallId, text))
        }
    }
}

/// A time in ISO 8601. The document is narrower than the server, which takes `30s`, too.
const TIME: &str = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$";
/// A second to a day.
const TIME_TO_LIVE: &str = "^PT(([1-9]|1[0-9]|2[0-3])H|[1-9][0-9]{0,2}M|[1-9][0-9]{0,3}S)$";

/// What the checks of options and limits ask for, as the document says it: type, member, and what is added to the
/// member's schema.
pub(crate) fn bounds() -> Vec<(&'static str, &'static str, Value)> {
    let time = || json!({"pattern": TIME, "examples": ["PT30S"]});
    let retried: Vec<&str> =
        ErrorCode::ALL.iter().filter(|code| code.may_be_retried()).map(|code| code.as_str()).collect();
    let up_to = |most: u64| json!({"minimum": 1, "maximum": most});
    let mut all = vec![
        ("Limits", "memoryBytes", up_to(COUNTABLE)),
        ("Limits", "cpuMillicores", up_to(Limits::MOST_MILLICORES.into())),
        ("Limits", "processes", up_to(Limits::MOST_PROCESSES.into())),
        ("Limits", "openFiles", up_to(Limits::MOST_OPEN_FILES.into())),
        ("Limits", "ioBytesPerSecond", up_to(COUNTABLE)),
        ("Retry", "maxRetries", json!({"maximum": Retry::MOST})),
        ("Retry", "on", json!({"items": {"type": "string", "enum": retried}})),
        ("CallOptions", "priority", up_to((*CallOptions::PRIORITIES.end()).into())),
        ("SandboxSpec", "timeToLive", json!({"pattern": TIME_TO_LIVE, "examples": ["PT10M"]})),
    ];
    let times = [
        ("Limits", "cpuTime"),
        ("Limits", "wallTime"),
        ("Retry", "base"),
        ("CallOptions", "timeout"),
        ("CallOptions", "attemptTimeout"),
        ("CallOptions", "idleTimeout"),
    ];
    all.extend(times.map(|(kind, member)| (kind, member, time())));
    let counts = [
        ("Limits", "fileBytes"),
        ("Limits", "scratchBytes"),
        ("Limits", "outputBytes"),
        ("Limits", "readBytes"),
        ("Limits", "writtenBytes"),
        ("Limits", "ioOperations"),
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
    #[serde(default = "five", deserialize_with = "integer")]
    #[schema(minimum = 1, maximum = 1000)]
    max_parallelism: u16,
    /// The id of the batch; the server makes one up where absent. One that was used before is refused.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) batch_id: Option<BatchId>,
}

fn yes() -> bool {
    true
}

fn five() -> u16 {
    5
}

impl Batch {
    pub(crate) fn options(&self) -> Result<BatchOptions, Problem> {
        let options = BatchOptions {
            call: shared(self.options.clone(), self.batch_id)?,
            strategy: self.strategy,
            continue_on_failure: self.continue_on_failure,
            max_parallelism: usize::from(self.max_parallelism),
            ..BatchOptions::default()
        };
        options.check()?;
        Ok(options)
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
    options: CallOptions,
    /// The id of the flow, as that of a batch; the server makes one up where absent. One that was used before is refused.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) batch_id: Option<BatchId>,
}

impl Flow {
    pub(crate) fn options(&self) -> Result<CallOptions, Problem> {
        let options = shared(self.options.clone(), self.batch_id)?;
        options.check()?;
        Ok(options)
    }
}
