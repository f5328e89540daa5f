//! Several calls in one sandbox.

use crate::world::{World, daemons, in_world_with, mark, none_left, processes, somebody};
use haft::{
    CallContext, CallOptions, ErrorCode, IsolationLevel, Limits, Request, SandboxSpec, Status, ToolCall,
    ToolResult,
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{sync::Arc, time::Duration};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 12] = [
        ("sandboxes::what_may_only_be_read_stays_so", what_may_only_be_read_stays_so),
        ("sandboxes::no_caller_gets_more_than_is_configured", no_caller_gets_more_than_is_configured),
        ("sandboxes::several_calls_share_one", several_calls_share_one),
        ("sandboxes::more_than_it_grants_is_refused", more_than_it_grants_is_refused),
        ("sandboxes::calls_see_only_its_paths", calls_see_only_its_paths),
        ("sandboxes::memory_is_for_all_together", memory_is_for_all_together),
        ("sandboxes::time_on_a_core_is_for_all_together", time_on_a_core_is_for_all_together),
        ("sandboxes::to_another_tenant_it_is_not_there", to_another_tenant_it_is_not_there),
        ("sandboxes::its_end_ends_everything_in_it", its_end_ends_everything_in_it),
        ("sandboxes::its_time_and_a_shutdown_end_it", its_time_and_a_shutdown_end_it),
        ("sandboxes::there_are_only_so_many", there_are_only_so_many),
        ("sandboxes::a_link_in_the_place_of_a_path_is_refused", a_link_in_the_place_of_a_path_is_refused),
    ];
    crate::world::trials(tests)
}

const HOSTS: &str = "[tools.commands]\nhosts = [\"a.example\", \"b.example\"]\n";

fn of_paths<const N: usize>(mounts: [&str; N]) -> SandboxSpec {
    SandboxSpec { mounts: mounts.map(str::to_owned).to_vec(), ..SandboxSpec::default() }
}

async fn open(world: &World, spec: SandboxSpec) -> (String, Arc<CallContext>) {
    let made = world.haft.sandboxes().create(&CallContext::owner(), spec).await.unwrap();
    let inside = world.haft.sandboxes().enter(&CallContext::owner(), &made.id).unwrap();
    (made.id, inside)
}

async fn sh(world: &World, context: &Arc<CallContext>, command: &str) -> ToolResult {
    world.call_as(context, "run_command", json!({"command": command})).await
}

fn code(result: &ToolResult) -> Option<&'static str> {
    result.error.as_ref().and_then(|error| error.code.e_number())
}

fn several_calls_share_one(name: &str) {
    in_world_with(name, "", |world| async move {
        let (id, inside) = open(&world, of_paths(["."])).await;
        assert_eq!(sh(&world, &inside, "echo one > file").await.status, Status::Success);
        let second = sh(&world, &inside, "cat file").await;
        assert_eq!(second.output.as_ref().unwrap()["stdout"], "one\n", "{second:?}");
        // A file tool is in a jail of the sandbox, too.
        let read = world.call_as(&inside, "read_file", json!({"path": "file"})).await;
        assert_eq!(read.status, Status::Success, "{read:?}");
        assert_eq!(read.metadata.enforcement.as_ref().unwrap().jail, "namespace", "{read:?}");
        let status = world.haft.sandboxes().status("local", &id).unwrap();
        assert_eq!((status.calls, status.running), (3, 0));
        assert!(status.used.cpu_time_ms.unwrap() > 0.0, "{status:?}");
        assert!(status.used.peak_memory_bytes.unwrap() > 0, "{status:?}");
        assert!(status.used.wall_time_ms.unwrap() > 0.0, "{status:?}");
        assert_eq!(status.enforcement.level, IsolationLevel::Strict);
        assert_eq!(status.enforcement.jail, "namespace");
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!((&json["calls"], &json["grant"]["sandboxId"]), (&json!(3), &json!(id)));
        assert_eq!(world.haft.sandboxes().list("local"), [status]);
        let last = world.haft.sandboxes().destroy("local", &id).await.unwrap();
        assert_eq!(last.calls, 3);
        // Nothing by that name any more, for nobody.
        assert_eq!(code(&sh(&world, &inside, "true").await), Some("E3101"));
        let gone = world.haft.sandboxes().destroy("local", &id).await.unwrap_err();
        assert_eq!(gone.code.e_number(), Some("E3101"));
        assert!(world.haft.sandboxes().enter(&CallContext::owner(), &id).is_err());
        assert!(world.haft.sandboxes().list("local").is_empty());
    });
}

fn more_than_it_grants_is_refused(name: &str) {
    in_world_with(name, HOSTS, |world| async move {
        std::fs::create_dir_all(world.work().join("a/b")).unwrap();
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            wall_time: Some(Duration::from_secs(20)),
            ..Limits::default()
        };
        let spec = SandboxSpec { limits, hosts: vec!["a.example".into()], ..of_paths(["a"]) };
        let (_, inside) = open(&world, spec).await;
        let call = |context: Arc<CallContext>, options: CallOptions| {
            let call = ToolCall::new("run_command", json!({"command": "pwd"}));
            world.haft.execute(Request::new(call).context(context).options(options))
        };
        // The call itself asks for more.
        let more = Limits { memory_bytes: Some(65 << 20), ..Limits::default() };
        let refused =
            call(Arc::clone(&inside), CallOptions { limits: Some(Box::new(more)), ..CallOptions::default() })
                .await;
        assert_eq!(code(&refused), Some("E3102"), "{refused:?}");
        assert!(refused.error.as_ref().unwrap().message.contains("memoryBytes"), "{refused:?}");
        // The grant in its context is wider than the sandbox is.
        let widened = |change: &dyn Fn(&mut haft::ParentGrant)| {
            let mut context = CallContext::clone(&inside);
            change(context.parent.as_mut().unwrap());
            Arc::new(context)
        };
        for (context, expected, word) in [
            (widened(&|grant| grant.limits.memory_bytes = Some(1 << 30)), "E3102", "memoryBytes"),
            (widened(&|grant| grant.hosts.push("b.example".into())), "E3104", "b.example"),
            (widened(&|grant| grant.hosts = vec!["*".into()]), "E3104", "*"),
            (widened(&|grant| grant.mounts.push("/etc".into())), "E3105", "/etc"),
            (widened(&|grant| grant.mounts[0].push_str("/../..")), "E3105", ".."),
            (widened(&|grant| grant.mounts[0].push_str("/.git/hooks")), "E3105", ".git"),
            (widened(&|grant| grant.mounts = vec!["a".into()]), "E3105", "absolute"),
            (widened(&|grant| grant.sandbox_id = "sb-17".into()), "E3101", "sb-17"),
        ] {
            let refused = call(context, CallOptions::default()).await;
            assert_eq!(code(&refused), Some(expected), "{refused:?}");
            assert!(refused.error.as_ref().unwrap().message.contains(word), "{refused:?}");
            // When it was planned, before anything ran.
            assert_eq!(refused.metadata.attempts, 0);
        }
        // One that leaves limits out does not get rid of them.
        let silent = widened(&|grant| grant.limits = Limits::default());
        let timeout = Some(Duration::from_secs(21));
        let refused = call(Arc::clone(&silent), CallOptions { timeout, ..CallOptions::default() }).await;
        assert_eq!(refused.error.as_ref().unwrap().code, ErrorCode::ValidationFailed, "{refused:?}");
        let eater = "head -c 100M /dev/zero | tail -c 90M | wc -c";
        let ended = sh(&world, &silent, eater).await;
        assert_ne!(ended.output.as_ref().map(|output| output["stdout"].clone()), Some(json!("94371840\n")));
        // A narrower one is narrower.
        let narrow = widened(&|grant| grant.mounts[0].push_str("/b"));
        let done = call(narrow, CallOptions::default()).await;
        let folder = world.work().join("a/b");
        assert_eq!(done.output.as_ref().unwrap()["stdout"], format!("{}\n", folder.display()), "{done:?}");
        // And what makes no sense is not made.
        let sandboxes = world.haft.sandboxes();
        for (spec, expected) in [
            (of_paths(["/etc"]), ErrorCode::FilesystemPolicyViolation),
            (of_paths([".."]), ErrorCode::FilesystemPolicyViolation),
            (of_paths([".git/hooks"]), ErrorCode::FilesystemPolicyViolation),
            (SandboxSpec { hosts: vec!["a b".into()], ..of_paths([]) }, ErrorCode::ValidationFailed),
            (
                SandboxSpec { time_to_live: Some(Duration::from_secs(90_000)), ..of_paths([]) },
                ErrorCode::ValidationFailed,
            ),
            (
                SandboxSpec {
                    limits: Limits { processes: Some(0), ..Limits::default() },
                    ..SandboxSpec::default()
                },
                ErrorCode::ValidationFailed,
            ),
        ] {
            let error = sandboxes.create(&CallContext::owner(), spec.clone()).await.unwrap_err();
            assert_eq!(error.code, expected, "{spec:?}: {error:?}");
        }
        assert_eq!(
            sandboxes
                .create(
                    &CallContext { tenant: "".into(), ..CallContext::clone(&CallContext::owner()) },
                    of_paths([])
                )
                .await
                .unwrap_err()
                .code,
            ErrorCode::ValidationFailed
        );
        assert_eq!(sandboxes.list("local").len(), 1);
    });
}

fn calls_see_only_its_paths(name: &str) {
    in_world_with(name, "", |world| async move {
        world.write("in/here", "yes");
        world.write("out/there", "no");
        let (_, inside) = open(&world, of_paths(["in"])).await;
        // The folder in which programs start otherwise is not granted, so they start in the first that is.
        let seen = sh(&world, &inside, "pwd; cat here; cat ../out/there").await;
        let text = seen.text();
        assert!(text.contains("yes") && !text.contains("\nno"), "{text}");
        // A file tool sees of its root what the sandbox has of it.
        let here = world.call_as(&inside, "read_file", json!({"path": "in/here"})).await;
        assert_eq!(here.text(), "yes", "{here:?}");
        assert_eq!(
            code(&world.call_as(&inside, "read_file", json!({"path": "out/there"})).await),
            Some("E3105")
        );
        let there = json!({"command": "true", "working_dir": "out"});
        assert_eq!(code(&world.call_as(&inside, "run_command", there).await), Some("E3105"));
        // In haft's own process only what a tool says can be held to it; that one says nothing.
        let undo = json!({"execution_id": "01a1dff9-25ef-782a-9f50-d4036ddb9a1c"});
        assert_eq!(code(&world.call_as(&inside, "undo_changes", undo).await), Some("E3105"));
        // Without any path there is only the program's own home.
        let (_, bare) = open(&world, of_paths([])).await;
        let seen = sh(&world, &bare, "pwd; ls -A").await;
        assert_eq!(seen.status, Status::Success, "{seen:?}");
        assert!(!seen.text().contains(&*world.work().to_string_lossy()), "{}", seen.text());
    });
}

fn memory_is_for_all_together(name: &str) {
    in_world_with(name, "", |world| async move {
        let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
        let (id, inside) = open(&world, SandboxSpec { limits, ..of_paths([]) }).await;
        let command = "head -c 40M /dev/zero | tail -c 40M | (sleep 1; wc -c)";
        let full = |result: &ToolResult| {
            result.output.as_ref().is_some_and(|output| output["stdout"] == "41943040\n")
        };
        let (one, two) = tokio::join!(sh(&world, &inside, command), sh(&world, &inside, command));
        assert!(!(full(&one) && full(&two)), "each has room, both together have not");
        let alone = sh(&world, &inside, command).await;
        assert!(full(&alone), "{alone:?}");
        let used = world.haft.sandboxes().status("local", &id).unwrap().used;
        let peak = used.peak_memory_bytes.unwrap();
        assert!((40 << 20..=64 << 20).contains(&peak), "{peak}");
    });
}

fn time_on_a_core_is_for_all_together(name: &str) {
    in_world_with(name, "", |world| async move {
        let limits = Limits { cpu_time: Some(Duration::from_secs(1)), ..Limits::default() };
        let (id, inside) = open(&world, SandboxSpec { limits, ..of_paths([]) }).await;
        let busy = "while :; do :; done";
        let (one, two) = tokio::join!(sh(&world, &inside, busy), sh(&world, &inside, busy));
        let over = |result: &ToolResult| code(result) == Some("E3102") && result.text().contains("cpuTime");
        assert!(over(&one) && over(&two), "{one:?} {two:?}");
        let used = world.haft.sandboxes().status("local", &id).unwrap().used.cpu_time_ms.unwrap();
        assert!((950.0..1400.0).contains(&used), "one second for both, and not for each: {used} ms");
        // It is used up.
        let third = sh(&world, &inside, busy).await;
        assert!(over(&third), "{third:?}");
        assert!(third.metadata.metrics.as_ref().unwrap().cpu_time_ms.unwrap() < 300.0, "{third:?}");
    });
}

fn to_another_tenant_it_is_not_there(name: &str) {
    in_world_with(name, "", |world| async move {
        let (id, inside) = open(&world, of_paths(["."])).await;
        let (sandboxes, other) = (world.haft.sandboxes(), somebody("other", "s"));
        let unknown = sandboxes.status("other", "sb-17").unwrap_err();
        let words = |id: &str| unknown.message.replace("sb-17", id);
        for error in [
            sandboxes.status("other", &id).unwrap_err(),
            sandboxes.destroy("other", &id).await.unwrap_err(),
            sandboxes.enter(&other, &id).unwrap_err(),
        ] {
            assert_eq!((error.code, &error.message), (ErrorCode::SandboxCreationFailed, &words(&id)));
        }
        let stolen = Arc::new(CallContext { parent: inside.parent.clone(), ..CallContext::clone(&other) });
        let refused = sh(&world, &stolen, "true").await;
        assert_eq!(code(&refused), Some("E3101"));
        assert_eq!(refused.error.as_ref().unwrap().message, words(&id));
        assert!(sandboxes.list("other").is_empty());
        assert_eq!(sh(&world, &inside, "true").await.status, Status::Success, "it is still there");
    });
}

fn its_end_ends_everything_in_it(name: &str) {
    in_world_with(name, "", |world| async move {
        let (id, inside) = open(&world, of_paths(["."])).await;
        let (other, _) = open(&world, of_paths(["."])).await;
        let outside = CallContext::owner();
        let (ours, theirs) = (mark(), mark());
        for (context, mark) in [(&inside, &ours), (&outside, &theirs)] {
            let command = format!("{}; sleep 7{mark}", daemons(mark));
            let started = world.call_as(context, "start_command", json!({"command": command})).await;
            assert_eq!(started.status, Status::Success, "{started:?}");
        }
        let running = {
            let (haft, inside, ours) = (world.haft.clone(), Arc::clone(&inside), ours.clone());
            let call = ToolCall::new("run_command", json!({"command": format!("sleep 8{ours}")}));
            tokio::spawn(async move { haft.execute(Request::new(call).context(inside)).await })
        };
        while processes(&format!("sleep 8{ours}")).is_empty()
            || processes(&format!("sleep 7{theirs}")).len() < 3
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(world.haft.sandboxes().status("local", &id).unwrap().running, 1);
        world.haft.sandboxes().destroy("local", &id).await.unwrap();
        // When it comes back, nothing is left, and not a moment later.
        assert_eq!(processes(&format!("sleep 7{ours}")), Vec::<String>::new());
        assert_eq!(processes(&format!("sleep 8{ours}")), Vec::<String>::new());
        let ended = running.await.unwrap();
        assert_eq!(ended.error.as_ref().unwrap().code, ErrorCode::Cancelled, "{ended:?}");
        assert!(ended.text().contains("destroyed"), "{ended:?}");
        // What is outside goes on.
        assert!(!processes(&format!("sleep 7{theirs}")).is_empty());
        assert_eq!(world.haft.sandboxes().status("local", &other).unwrap().id, other);
        assert_eq!(cgroups_of(&id), Vec::<String>::new());
    });
}

fn its_time_and_a_shutdown_end_it(name: &str) {
    in_world_with(name, "", |world| async move {
        let spec = SandboxSpec { time_to_live: Some(Duration::from_secs(2)), ..of_paths([]) };
        let (short, inside) = open(&world, spec).await;
        let (long, within) = open(&world, of_paths([])).await;
        let (ours, theirs) = (mark(), mark());
        for (context, mark) in [(&inside, &ours), (&within, &theirs)] {
            let command = json!({"command": format!("sleep 7{mark}")});
            let started = world.call_as(context, "start_command", command).await;
            assert_eq!(started.status, Status::Success, "{started:?}");
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(world.haft.sandboxes().status("local", &short).is_err());
        none_left(&format!("sleep 7{ours}"));
        assert!(!processes(&format!("sleep 7{theirs}")).is_empty());
        world.haft.shutdown_now().await;
        assert_eq!(processes(&format!("sleep 7{theirs}")), Vec::<String>::new());
        assert_eq!((cgroups_of(&short), cgroups_of(&long)), (Vec::new(), Vec::new()));
        let late = world.haft.sandboxes().create(&CallContext::owner(), of_paths([])).await.unwrap_err();
        assert_eq!(late.code, ErrorCode::ShuttingDown);
    });
}

fn there_are_only_so_many(name: &str) {
    in_world_with(name, "", |world| async move {
        let sandboxes = world.haft.sandboxes();
        let most = world.haft.settings().max_sandboxes_per_tenant;
        let owner = CallContext::owner();
        let all = (0..most + 3).map(|_| sandboxes.create(&owner, of_paths([])));
        let made = futures(all).await;
        let refused: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
        assert_eq!(refused.len(), 3);
        assert!(refused.iter().all(|error| error.code == ErrorCode::ConcurrentLimitExceeded), "{refused:?}");
        assert!(
            sandboxes
                .create(
                    &CallContext { tenant: "other".into(), ..CallContext::clone(&CallContext::owner()) },
                    of_paths([])
                )
                .await
                .is_ok(),
            "others have room of their own"
        );
        sandboxes.destroy("local", &made[0].as_ref().unwrap().id).await.unwrap();
        assert!(sandboxes.create(&CallContext::owner(), of_paths([])).await.is_ok());
    });
}

/// All of them at once.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|cx| {
        for (one, done) in &mut waiting {
            if done.is_none()
                && let std::task::Poll::Ready(value) = one.as_mut().poll(cx)
            {
                *done = Some(value);
            }
        }
        match waiting.iter().all(|(_, done)| done.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, done)| done).collect()
}

fn a_link_in_the_place_of_a_path_is_refused(name: &str) {
    in_world_with(name, "", |world| async move {
        std::fs::create_dir_all(world.work().join("sub")).unwrap();
        let (_, inside) = open(&world, of_paths(["sub"])).await;
        assert_eq!(sh(&world, &inside, "touch here").await.status, Status::Success);
        // Somebody outside the sandbox puts a link to the rest of the folder there.
        let planted = sh(&world, &CallContext::owner(), "mv sub old && ln -s . sub").await;
        assert_eq!(planted.status, Status::Success, "{planted:?}");
        let refused = sh(&world, &inside, "ls").await;
        assert_eq!(refused.status, Status::SandboxError, "{refused:?}");
        assert!(refused.text().contains("leads elsewhere"), "{refused:?}");
    });
}

/// cgroups with that name in theirs.
fn cgroups_of(id: &str) -> Vec<String> {
    fn below(folder: &std::path::Path, id: &str, depth: usize, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy() == id {
                    found.push(entry.path().display().to_string());
                } else if depth > 0 {
                    below(&entry.path(), id, depth - 1, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    below("/sys/fs/cgroup".as_ref(), id, 6, &mut found);
    found
}

/// A folder that may only be read, inside one that may be written to.
const READ_ONLY: &str = "[tools.files]\nread_only_roots = [\"vendor\"]\n";

fn what_may_only_be_read_stays_so(name: &str) {
    in_world_with(name, "", |world| async move {
        std::fs::create_dir_all(world.work().join("vendor/deep")).unwrap();
        let vendored = world.another(READ_ONLY);
        let write = "echo x > vendor/deep/planted; echo x > planted; cd vendor/deep 2>/dev/null && echo x > planted; true";
        for mounts in [vec!["."], vec!["vendor"], vec!["vendor/deep"], vec!["vendor", "."]] {
            let spec = SandboxSpec {
                mounts: mounts.iter().map(|mount| (*mount).to_owned()).collect(),
                ..SandboxSpec::default()
            };
            // The control: in a configuration without it the same sandbox can write there.
            for (haft, is_control) in [(&vendored, false), (&world.haft, true)] {
                let made = haft.sandboxes().create(&CallContext::owner(), spec.clone()).await.unwrap();
                let inside = haft.sandboxes().enter(&CallContext::owner(), &made.id).unwrap();
                let call = ToolCall::new("run_command", json!({ "command": write }));
                haft.execute(Request::new(call).context(inside)).await;
                let _ = std::fs::remove_file(world.work().join("planted"));
                let planted: Vec<_> = ["vendor/planted", "vendor/deep/planted"]
                    .into_iter()
                    .filter(|path| std::fs::remove_file(world.work().join(path)).is_ok())
                    .collect();
                assert_eq!(!planted.is_empty(), is_control, "{mounts:?}: {planted:?}");
                haft.sandboxes().destroy("local", &made.id).await.unwrap();
            }
        }
    });
}

const SMALL: &str = "[tools.commands]\nmemory_bytes = 67108864\nmax_processes = 300\n";

fn no_caller_gets_more_than_is_configured(name: &str) {
    in_world_with(name, SMALL, |world| async move {
        let asked = |limits: Limits| {
            let options = CallOptions { limits: Some(Box::new(limits)), ..CallOptions::default() };
            let call = ToolCall::new(
                "run_command",
                json!({"command": "head -c 200M /dev/zero | tail -c 150M | wc -c"}),
            );
            world.haft.execute(Request::new(call).options(options))
        };
        let refused = [
            Limits { memory_bytes: Some(9_000_000_000_000_000), ..Limits::default() },
            Limits { memory_bytes: Some((64 << 20) + 1), ..Limits::default() },
            Limits { cpu_time: Some(Duration::from_secs(301)), ..Limits::default() },
            Limits { processes: Some(301), ..Limits::default() },
            Limits { scratch_bytes: Some(1 << 40), ..Limits::default() },
            Limits { open_files: Some(1 << 20), ..Limits::default() },
        ];
        for limits in refused {
            let result = asked(limits.clone()).await;
            assert_eq!(
                (code(&result), result.metadata.attempts),
                (Some("E3102"), 0),
                "{limits:?}: {result:?}"
            );
            // A sandbox is no way round, nor is a flow.
            let spec = SandboxSpec { limits: limits.clone(), ..of_paths(["."]) };
            let error = world.haft.sandboxes().create(&CallContext::owner(), spec).await.unwrap_err();
            assert_eq!(error.code.e_number(), Some("E3102"), "{limits:?}");
            let text = json!({"name": "f", "description": "A flow", "nodes": [
                {"name": "a", "tool": "run_command", "arguments": {"command": "true"}}]});
            let flow = haft::flow::read(&text.to_string(), haft_definition::Format::Json).unwrap();
            let options = CallOptions { limits: Some(Box::new(limits)), ..CallOptions::default() };
            let request = haft::FlowRequest::new(Arc::new(flow), serde_json::Map::new()).options(options);
            let ended = world.haft.run_flow(request).unwrap().await;
            assert_eq!(code(ended.nodes[0].result.as_ref().unwrap()), Some("E3102"), "{ended:?}");
        }
        let ate = |result: &ToolResult| {
            result.output.as_ref().is_some_and(|output| output["stdout"] == "157286400\n")
        };
        // What is configured holds, and a call may ask for less, and for more where there is a `max`.
        assert!(!ate(&asked(Limits::default()).await));
        let less = Limits { memory_bytes: Some(32 << 20), processes: Some(300), ..Limits::default() };
        let result = asked(less).await;
        assert!(code(&result) != Some("E3102") || result.metadata.attempts == 1, "{result:?}");
        // The control: where it is configured, it is had.
        let larger =
            world.another("[tools.commands]\nmemory_bytes = 67108864\nmax_memory_bytes = 1073741824\n");
        let options = CallOptions {
            limits: Some(Box::new(Limits { memory_bytes: Some(1 << 30), ..Limits::default() })),
            ..CallOptions::default()
        };
        let call =
            ToolCall::new("run_command", json!({"command": "head -c 200M /dev/zero | tail -c 150M | wc -c"}));
        let result = larger.execute(Request::new(call).options(options)).await;
        assert!(ate(&result), "{result:?}");
    });
}
