//! A process that is killed while it answers.

use crate::{remember, request, sqlite};
use haft_core::port::{AcceptAnswers, ApprovalState, Store as _};
use haft_engine::{Approvals, GrantTime};
use std::{
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

const FOLDER: &str = "HAFT_APPROVALS_FOLDER";

/// A process that answers with a grant, until it is killed.
#[test]
#[ignore = "run by the next one, as a process of its own"]
fn child() {
    let folder = PathBuf::from(std::env::var(FOLDER).expect("run by another test"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let list = sqlite(&folder).for_tenant("local");
        let approvals = Approvals::over(list, AcceptAnswers::default());
        let open = approvals.open().await.unwrap().remove(0).request;
        approvals
            .answer(&open.id, remember("host", GrantTime::Always), "ada", haft_core::Channel::Http)
            .await
            .unwrap();
    });
}

/// The process is killed between the decision and its grant, and at every moment after: neither is there, or both are.
#[tokio::test]
async fn a_crash_leaves_an_answer_with_its_grant_or_neither() {
    for (moment, both) in
        [("decided", false), ("applied", false), ("written", true), ("told", true), ("never", true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let id = {
            let list = sqlite(folder.path()).for_tenant("local");
            list.ask(request("apr_1"), Vec::new()).await.unwrap()
        };
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "crash::child"])
            .env(FOLDER, folder.path())
            .env("HAFT_FAILPOINT", format!("answer:{moment}:1"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        match moment {
            "never" => assert!(status.success(), "the control: {status}"),
            _ => assert_eq!(status.signal(), Some(9), "{moment}: {status}"),
        }
        let approvals = Approvals::over(sqlite(folder.path()).for_tenant("local"), AcceptAnswers::default());
        let (state, grants) = match both {
            true => (ApprovalState::Approved, 1),
            false => (ApprovalState::Open, 0),
        };
        assert_eq!(approvals.get(&id).await.unwrap().state, state, "{moment}");
        assert_eq!(approvals.grants(true).await.unwrap().len(), grants, "{moment}");
    }
}
