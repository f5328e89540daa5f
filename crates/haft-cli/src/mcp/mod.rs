//! `haft mcp`: the tools for clients of the Model Context Protocol.

mod token;

use super::{
    args::McpArgs,
    console::Console,
    failure::Failure,
    hosts::{self, Host, McpInstallArgs},
    setup::{CliContext, Setup},
    watch, words,
};
use haft::{CallContext, Haft, config::McpApprovals};
use haft_mcp::server::{
    Approvals, Callers, EngineTasks, McpServer,
    http::{HttpOptions, listen, service},
    serve_stdio,
};
use std::{net::SocketAddr, sync::Arc};
use tokio_util::sync::CancellationToken;

#[derive(Debug, clap::Subcommand)]
pub(super) enum McpCommand {
    /// Add haft to an MCP client: `haft install` without its other modes
    #[command(after_help = super::examples::MCP_INSTALL)]
    Install {
        /// The MCP client
        #[arg(value_name = "HOST")]
        host: Host,
        #[command(flatten)]
        args: McpInstallArgs,
    },
}

/// Who approves, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ApprovalsBy {
    Queue,
    Client,
    Host,
}

impl From<McpApprovals> for ApprovalsBy {
    fn from(configured: McpApprovals) -> Self {
        match configured {
            McpApprovals::Queue => ApprovalsBy::Queue,
            McpApprovals::Client => ApprovalsBy::Client,
            McpApprovals::Host => ApprovalsBy::Host,
        }
    }
}

impl From<ApprovalsBy> for Approvals {
    fn from(by: ApprovalsBy) -> Self {
        match by {
            ApprovalsBy::Queue => Approvals::Elsewhere,
            ApprovalsBy::Client => Approvals::ThroughClient,
            ApprovalsBy::Host => Approvals::Host,
        }
    }
}

pub(super) fn run(args: &McpArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    if let Some(McpCommand::Install { host, args }) = &args.command {
        return hosts::run_mcp(*host, args, &ground, console);
    }
    let setup = ground.setup_for_mcp(console)?;
    let configured = ApprovalsBy::from(setup.resolved.config.mcp.approvals);
    let by = args.approvals.unwrap_or(configured);
    let by = heard(by, &setup, console);
    explain_once(&setup, args.approvals.is_none() && by == ApprovalsBy::Queue, console);
    let runtime = watch::runtime()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        setup.keep_current();
        tokio::spawn(go_on_with_tasks(setup.haft.clone(), Arc::clone(&setup.owner)));
        let served = match args.http {
            None => over_pipes(&setup, by.into(), stop, console).await,
            Some(address) => over_http(&setup, by.into(), address, stop, console).await,
        };
        setup.haft.shutdown().await;
        served
    });
    // A tool may have left a thread behind; nobody waits for it.
    runtime.shutdown_background();
    setup.end(console)?;
    served.map(|()| 0)
}

/// One client, on standard input and output. The process is one conversation.
async fn over_pipes(
    setup: &Setup,
    approvals: Approvals,
    stop: CancellationToken,
    console: &Console,
) -> Result<(), Failure> {
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        console.say(
            "haft now speaks MCP on standard input and output, for an MCP client. `haft mcp install HOST` adds haft to one; \
             Ctrl-C stops this.",
        );
    }
    let conversation = format!("mcp-{}", haft::ExecutionId::at(jiff::Timestamp::now()));
    let owner = CallContext { conversation: Some(conversation.into()), ..CallContext::clone(&setup.owner) };
    let engine = setup.haft.clone().into_engine();
    let server = McpServer::builder(engine.clone(), Callers::One(Arc::new(owner)))
        .approvals(approvals)
        .tasks(Arc::new(EngineTasks::new(engine)))
        .build();
    serve_stdio(&server, stop).await.map_err(|error| Failure::Mcp {
        what: error.to_string(),
        help: "a client begins with `initialize`, or with `server/discover`; try `haft mcp install --help`"
            .to_owned(),
    })
}

/// Many clients on one machine, each with the token.
async fn over_http(
    setup: &Setup,
    approvals: Approvals,
    address: SocketAddr,
    stop: CancellationToken,
    console: &Console,
) -> Result<(), Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::Mcp {
            what: format!(
                "{address} can be reached from other machines, and `haft mcp --http` does not encrypt"
            ),
            help: "use a loopback address, such as 127.0.0.1:8787".to_owned(),
        });
    }
    let owner = Arc::clone(&setup.owner);
    let (token, file) = token::of(setup.state()?, owner)?;
    let engine = setup.haft.clone().into_engine();
    let server = McpServer::builder(engine.clone(), Callers::PerRequest)
        .approvals(approvals)
        .tasks(Arc::new(EngineTasks::new(engine)))
        .build();
    let mut options = HttpOptions::default();
    options.origins.clone_from(&setup.resolved.config.mcp.allowed_origins);
    options.stop = stop.clone();
    let guarded = token.guard(service(&server, options));
    let cannot = |reason: std::io::Error| Failure::Mcp {
        what: format!("haft cannot listen on {address}: {}", words::reason(&reason)),
        help: "choose another port; 0 lets the system choose one".to_owned(),
    };
    let listener = tokio::net::TcpListener::bind(address).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    console.say(format!(
        "serving MCP at http://{address}/mcp\nclients send `Authorization: Bearer TOKEN`; the token is in {}",
        words::path(&file)
    ));
    listen(listener, guarded, stop).await.map_err(cannot)
}

/// Goes on with what an earlier process in this folder left waiting for a person. Where there is nothing of the kind,
/// nothing is looked for again and again.
async fn go_on_with_tasks(haft: Haft, owner: Arc<CallContext>) {
    let open = haft::TaskQuery { open_only: true, limit: 1, ..haft::TaskQuery::default() };
    let found = haft.tasks(&owner.tenant).list(open).await;
    if found.is_ok_and(|page| !page.tasks.is_empty())
        && let Err(error) = haft.resume_tasks().await
    {
        tracing::warn!(%error, "tasks of an earlier process could not be taken over");
    }
}

async fn stop_on_signal(stop: CancellationToken) {
    // Without signals to hear, the end of standard input still ends it.
    if let Ok(mut signals) = watch::Signals::new() {
        signals.next().await;
        stop.cancel();
    }
}

/// Who approves, where answers through MCP are accepted; the queue where they are not.
fn heard(by: ApprovalsBy, setup: &Setup, console: &Console) -> ApprovalsBy {
    if by == ApprovalsBy::Queue || setup.haft.settings().accept_answers.counts(haft::Channel::Mcp) {
        return by;
    }
    console.warn(
        "haft does not accept answers through MCP, so calls that need approval wait in the queue: add \"mcp\" to \
         tools.approval.accept_from to change that",
    );
    ApprovalsBy::Queue
}

const EXPLAINED: &str = "mcp-approvals-explained";

/// Says, once, who approves what, and how to choose.
fn explain_once(setup: &Setup, is_default: bool, console: &Console) {
    let Ok(state) = setup.state() else { return };
    let marker = state.join(EXPLAINED);
    if !is_default || marker.exists() {
        return;
    }
    console.say(format!(
        "haft asks a person before calls that change something. For MCP clients you choose who asks:\n  queue   (now) the \
         call returns an id and waits; you decide with `haft approvals`\n  client  haft asks through the client, if it \
         can show a form\n  host    the client asks you itself before each call; denied calls stay denied,\n          \
         sandboxes and the audit log stay\nChoose with `haft mcp --approvals host`, or in {}:\n  [mcp]\n  \
         approvals = \"host\"\nhaft shows this once.",
        setup.own_file
    ));
    // Where it cannot be remembered, it is said again.
    let _ = haft_store::private_file::create_folder(state);
    let _ = haft_store::private_file::replace(&marker, b"");
}
