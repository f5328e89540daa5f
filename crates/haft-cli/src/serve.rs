//! `haft serve`: the tools over HTTP, on a unix socket for the owner and on a port for programs that have a key.

use super::{
    args::ServeArgs,
    console::Console,
    failure::Failure,
    setup::{CliContext, Setup, folders},
    watch, words,
};
use crate::server_backend::HaftBackend;
use haft::port::KeyStore;
use haft_server::{JwksSource, Limits, Listener, Server, TokenOptions, tls};
use haft_store::private_file;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How long connections may take to end: longer than the engine takes to cancel what runs.
const GRACE: Duration = Duration::from_secs(9);

fn cannot(what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::Server { what: what.into(), help: help.into() }
}

pub(super) fn run(args: &ServeArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let setup = ground.setup_for_serving(console)?;
    let folders = folders(&surroundings, &setup.resolved.config);
    let runtime = watch::runtime()?;
    let served = runtime.block_on(serve(args, &setup, folders.as_ref(), console));
    // A tool may have left a thread behind; nobody waits for it.
    runtime.shutdown_background();
    setup.end(console)?;
    served.map(|()| 0)
}

async fn serve(
    args: &ServeArgs,
    setup: &Setup,
    folders: Option<&haft::Folders>,
    console: &Console,
) -> Result<(), Failure> {
    let (config, haft) = (&setup.resolved.config.server, &setup.haft);
    let store = setup.memory_store()?.clone();
    let mut listeners = Vec::new();
    let mut places = Vec::new();
    let socket = match args.no_socket {
        true => None,
        false => {
            let path =
                args.socket.clone().map_or_else(|| setup.state().map(|state| state.join("haft.sock")), Ok)?;
            let (listener, socket) = unix(path)?;
            places.push(format!("unix socket {}", words::path(&socket.path)));
            listeners.push(Listener::Unix(listener));
            Some(socket)
        }
    };
    let address = match (&args.listen, config.listen.as_str()) {
        (Some(address), _) => Some(*address),
        (None, "") => None,
        (None, text) => Some(text.parse().map_err(|_| {
            cannot(
                format!("server.listen is `{}`, which is not an address", words::name(text)),
                "write it like 127.0.0.1:8484",
            )
        })?),
    };
    if let Some(address) = address {
        let (listener, place) = port(address, config).await?;
        listeners.push(listener);
        places.push(place);
    }
    if listeners.is_empty() {
        return Err(cannot(
            "haft has no socket and no address to listen on",
            "remove --no-socket, or add --listen ADDRESS",
        ));
    }

    let knows_somebody = !config.oidc.issuer.is_empty() || has_keys(&store).await?;
    let next = match (address, &socket) {
        (Some(_), _) if !knows_somebody => {
            "there is no API key yet: `haft keys create NAME --right invoke --role editor` makes one"
                .to_owned()
        }
        (Some(_), _) | (None, None) => "`haft keys create` makes API keys".to_owned(),
        (None, Some(socket)) => {
            format!("try `curl --unix-socket {} http://haft/v1/tools`", words::path(&socket.path))
        }
    };
    let files = raise_open_files();
    if files < config.max_connections.saturating_add(SPARE_FILES) {
        console.warn(&format!(
            "the system lets this user open {files} files, and each of {} connections (server.max_connections) is one; \
             further ones wait",
            config.max_connections
        ));
    }
    let stop = CancellationToken::new();
    let limits = Limits {
        body_bytes: count(config.max_body_bytes),
        connections: count(config.max_connections),
        connections_per_address: count(config.max_connections_per_address),
        requests_per_key: count(config.max_requests_per_key),
        requests_per_tenant: count(config.max_requests_per_tenant),
        grace: GRACE,
        ..Limits::default()
    };
    let mut server = Server::builder(haft.clone().into_engine())
        .backend(HaftBackend::new(haft.clone(), store.clone(), &setup.resolved.config, folders))
        .keys(Arc::new(store))
        .owner(Arc::clone(&setup.owner))
        .limits(limits);
    if config.invoke_and_approve {
        server = server.invoke_and_approve();
    }
    if !config.oidc.issuer.is_empty() {
        server = server.tokens(tokens(&config.oidc, &config.resource)?);
    }
    {
        use haft_mcp::server::{Callers, EngineTasks, McpServer, http};
        let engine = haft.clone().into_engine();
        let mcp = McpServer::builder(engine.clone(), Callers::PerRequest)
            .approvals(super::mcp::ApprovalsBy::from(setup.resolved.config.mcp.approvals).into())
            .tasks(Arc::new(EngineTasks::new(engine)))
            .build();
        let mut options = http::HttpOptions::default();
        options.hosts.extend(config.allowed_hosts.iter().cloned());
        options.origins.clone_from(&setup.resolved.config.mcp.allowed_origins);
        options.stop = stop.clone();
        options.max_body_bytes = limits.body_bytes;
        options.sessions.all = count(config.max_mcp_sessions);
        options.sessions.per_tenant = options.sessions.per_tenant.min(options.sessions.all);
        options.sessions.per_caller = count(config.max_mcp_sessions_per_key);
        server = server.mcp(http::service(&mcp, options));
    }
    // Before anybody is told that it serves: somebody who hears that may end it.
    let mut signals = watch::Signals::new().map_err(Failure::Runtime)?;
    let resumed = haft.resume_tasks().await?;
    if resumed > 0 {
        console.say(format!("resumed {} of an earlier server", words::count(resumed, "task")));
    }
    console.say(format!("serving at {}\n{next}; Ctrl-C ends this", places.join(" and ")));

    setup.keep_current();
    let serving = server.build().serve(listeners, stop.clone());
    let ending = async {
        signals.next().await;
        console.say("stopping: running calls get some time to finish; Ctrl-C again cancels them at once");
        stop.cancel();
        tokio::select! {
            _ = haft.shutdown() => {}
            _ = signals.next() => {
                haft.shutdown_now().await;
            }
        }
    };
    let (served, ()) = tokio::join!(serving, ending);
    drop(socket);
    served.map_err(|reason| cannot(format!("the server ended: {}", words::reason(&reason)), "start it again"))
}

/// Open files besides connections: the database, programs, what tools read.
const SPARE_FILES: u64 = 256;

/// Takes as many open files as the system lets this user have, and says how many. Programs in jails have a limit of their
/// own.
fn raise_open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, it stays as it was.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn count(configured: u64) -> usize {
    usize::try_from(configured).unwrap_or(usize::MAX)
}

/// Whether anybody has a key that counts.
async fn has_keys(store: &haft::DurableStore) -> Result<bool, Failure> {
    let now = jiff::Timestamp::now();
    Ok(KeyStore::all(store, None).await?.iter().any(|key| key.counts(now)))
}

/// A socket in the file system, until it is dropped.
struct Socket {
    path: PathBuf,
    _lock: std::fs::File,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A socket that only this user can reach. A lock beside it says whether somebody still serves there.
fn unix(path: PathBuf) -> Result<(tokio::net::UnixListener, Socket), Failure> {
    let failed = |reason: std::io::Error| Failure::CannotWrite { path: path.clone(), reason };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_file::create_folder(folder).map_err(failed)?;
    let lock = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.with_extension("lock"))
        .map_err(failed)?;
    if lock.try_lock().is_err() {
        return Err(cannot(
            format!("a server already runs at {}", words::path(&path)),
            "use that server, choose another path with --socket, or only a port with --no-socket --listen ADDRESS",
        ));
    }
    match std::fs::symlink_metadata(&path) {
        // Nobody holds the lock: it was left by one that was killed.
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            std::fs::remove_file(&path).map_err(failed)?;
        }
        Ok(_) => {
            return Err(cannot(
                format!("{} exists and is not a socket", words::path(&path)),
                "choose another path with --socket",
            ));
        }
        Err(_) => {}
    }
    let listener = tokio::net::UnixListener::bind(&path).map_err(failed)?;
    // A process that connects is asked for its user all the same.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).map_err(failed)?;
    Ok((listener, Socket { path, _lock: lock }))
}

/// A port: with TLS where there is a certificate. Without one, only this machine reaches it, unless somebody said
/// otherwise.
async fn port(
    address: SocketAddr,
    config: &haft::config::ServerConfig,
) -> Result<(Listener, String), Failure> {
    let acceptor =
        match (config.tls_certificate.as_str(), config.tls_key.as_str()) {
            ("", "") => None,
            (certificate, key) if !certificate.is_empty() && !key.is_empty() => {
                let acceptor = tls(Path::new(certificate), Path::new(key));
                Some(acceptor.map_err(|problem| {
                    cannot(problem.to_string(), "both files are PEM; check their paths")
                })?)
            }
            _ => {
                return Err(cannot(
                    "TLS needs a certificate and its key",
                    "set server.tls_certificate and server.tls_key",
                ));
            }
        };
    if acceptor.is_none() && !address.ip().is_loopback() && !config.allow_plaintext {
        return Err(cannot(
            format!(
                "{address} can be reached from other machines, and the connection would not be encrypted"
            ),
            "set server.tls_certificate and server.tls_key, or server.allow_plaintext = true behind a proxy that encrypts",
        ));
    }
    let failed = |reason: std::io::Error| {
        cannot(
            format!("haft cannot listen on {address}: {}", words::reason(&reason)),
            "choose another port; 0 lets the system choose one",
        )
    };
    let listener = haft_server::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(match acceptor {
        Some(acceptor) => (Listener::Tls(listener, acceptor), format!("https://{address}")),
        None => (Listener::Tcp(listener), format!("http://{address}")),
    })
}

fn tokens(config: &haft::config::OidcConfig, resource: &str) -> Result<TokenOptions, Failure> {
    if config.audience.is_empty() {
        return Err(cannot(
            "server.oidc.issuer is set, and server.oidc.audience is not",
            "set server.oidc.audience to what tokens for this server have in `aud`",
        ));
    }
    let jwks = match (config.jwks_file.as_str(), config.jwks_url.as_str()) {
        ("", "") => JwksSource::Discover,
        (file, "") => JwksSource::File(PathBuf::from(file)),
        ("", url) => JwksSource::Url(url.to_owned()),
        _ => {
            return Err(cannot(
                "server.oidc.jwks_file and server.oidc.jwks_url are both set",
                "keep one of them; without both, haft asks the issuer",
            ));
        }
    };
    let options = TokenOptions {
        issuer: config.issuer.clone(),
        audience: config.audience.clone(),
        jwks,
        tenant_claim: config.tenant_claim.clone(),
        roles_claim: config.roles_claim.clone(),
        resource: (!resource.is_empty()).then(|| resource.to_owned()),
    };
    options.check().map_err(|problem| {
        cannot(
            format!("haft cannot find the keys of the identity provider: {problem}"),
            "set server.oidc.jwks_url to an https address, or server.oidc.jwks_file to a file",
        )
    })?;
    Ok(options)
}
