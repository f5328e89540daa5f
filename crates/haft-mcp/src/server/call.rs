//! `tools/call`: one call, through the engine.

use super::{
    answer::answer,
    approval::{self, Approvals},
    builder::McpServer,
    callers::IDEMPOTENCY_KEY,
    client::Client,
    relay::relay,
    round::{Binding, Round},
    session::{Kept, Session},
    tasks::{self, Tasks},
};
use haft_core::{Arguments, CallOptions, ExecutionId, ToolCall};
use haft_engine::Request;
use haft_sdk::CancelReason;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse},
    service::RequestContext,
};
use serde_json::Value;
use std::{pin::pin, sync::Arc, time::Duration};

pub(super) async fn call(
    session: &Session,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let server = &session.server;
    let mut caller = session.caller(&context)?;
    let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
    let arguments =
        arguments.map_or_else(Arguments::default, |arguments| Arguments::from(Value::Object(arguments)));
    // Before it is known where the call keeps to: that is in the seal, not around it.
    let asking = Arc::clone(&caller);
    let binding = || Binding::new(&asking, &name, &arguments);
    let state = match request_state {
        Some(sealed) => Some(server.0.seals.open(&sealed, &binding())?),
        None => None,
    };
    let approvals = session.approvals(&context);
    let round = Round { answers: input_responses.unwrap_or_default(), state };
    let RequestContext { ct, id, meta, peer, .. } = context;
    let progress = meta.get_progress_token();
    let idempotency_key = meta.get(IDEMPOTENCY_KEY).and_then(Value::as_str).map(Into::into);
    let client = Client::new(server.clone(), peer, meta, session.log_level(), round);
    match session.kept_to_roots(&client, caller).await? {
        Kept::Caller(kept) => caller = kept,
        Kept::Asked(asked) => return Ok((*asked).into()),
    }

    let mut call = ToolCall::new(&*name, arguments.clone());
    call.id = id.to_string().into();
    call.idempotency_key = idempotency_key;
    let execution = ExecutionId::at(jiff::Timestamp::now());
    let options = CallOptions { execution_id: Some(execution), ..CallOptions::default() };
    let mut request = Request::new(call).context(Arc::clone(&caller)).options(options);
    request.approver = approval::approver(approvals, &client);

    let engine = &server.0.engine;
    if let Some((tasks, patience)) = becomes_task(server, &client, &name) {
        // What it asks a person is asked with `tasks/get`, or elsewhere: nobody waits here.
        request.approver = request.approver.filter(|_| approvals == Approvals::Host);
        return tasks::hand_over(&**tasks, patience, request, &client, progress, ct.cancelled()).await;
    }
    let running = client.scope(engine.execute(request));
    // The end of a cancelled call is still recorded; the protocol sends no answer then.
    let running = async {
        let mut running = pin!(running);
        tokio::select! {
            biased;
            result = &mut running => result,
            () = ct.cancelled() => {
                engine.cancel(execution, CancelReason::User, None);
                running.await
            }
        }
    };
    let observer = (progress.is_some() || client.wants_log()).then(|| engine.observe(execution)).flatten();
    let result = match observer {
        None => running.await,
        Some(observer) => tokio::join!(running, relay(&client, observer, progress)).0,
    };

    if !result.is_success()
        && let Some(needed) = client.take_open(binding)?
    {
        return Ok(needed.into());
    }
    answer(result, client.is_stateless()).map(Into::into)
}

/// Whether the call may go on without its client: the server has tasks, the client knows them, the tool takes long.
fn becomes_task<'a>(
    server: &'a McpServer,
    client: &Client,
    tool: &str,
) -> Option<(&'a Arc<dyn Tasks>, Duration)> {
    let tasks = server.0.tasks.as_ref().filter(|_| client.is_stateless())?;
    // What a client can do is read last: most tools are quick.
    let patience = tasks.patience(&*server.0.engine.definition(tool)?)?;
    client.capabilities().supports_tasks().then_some((tasks, patience))
}
