//! What the jails of this machine enforce: found out by running programs in them that try to get out.

use haft_core::{
    IsolationLevel, Limits, OutputStream,
    port::{GuestSpec, Jail},
};
use serde::Serialize;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// What was found out about one jail.
#[derive(Clone, Debug, Serialize)]
pub struct JailReport {
    /// The name of the jail.
    pub jail: String,
    /// The levels, with what it says it enforces at each, or why it cannot.
    pub levels: Vec<LevelReport>,
    /// What was tried in it, at the strongest level that it has.
    pub checks: Vec<CheckReport>,
}

/// Whether a jail delivers a level.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelReport {
    /// The level.
    pub level: IsolationLevel,
    /// Whether it does.
    pub available: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// What it enforces, by name.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub details: serde_json::Map<String, serde_json::Value>,
}

/// One thing that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// What the jail should do.
    pub name: &'static str,
    /// Whether it did.
    pub held: bool,
    /// What was seen where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// What a program does, and how it is seen that the jail held it.
struct Trial {
    name: &'static str,
    /// What `sh` runs. `$OUT` is a file outside, `$IN` the granted folder.
    script: &'static str,
    limits: fn() -> Limits,
    /// Patterns of files in the granted folder that are denied.
    denied: &'static [&'static str],
    /// Whether it held, from what was put out and how it ended.
    held: fn(&Seen) -> bool,
}

#[derive(Debug, Default)]
struct Seen {
    text: String,
    exit_code: Option<i32>,
    exceeded: Option<&'static str>,
    took: Duration,
    /// A file appeared outside.
    wrote_outside: bool,
}

/// Every script says `made it` where the jail did not hold, so a program that could not run at all does not count.
const TRIALS: &[Trial] = &[
    Trial {
        name: "runs a program in the granted folder",
        script: "echo hello > $IN/made && cat $IN/made",
        limits: Limits::default,
        denied: &[],
        held: |seen| seen.text.contains("hello") && seen.exit_code == Some(0),
    },
    Trial {
        name: "keeps it from files outside",
        script: "cat $OUT 2>/dev/null | grep -q canary && echo made it; echo done",
        limits: Limits::default,
        denied: &[],
        held: |seen| !seen.text.contains("made it") && seen.text.contains("done"),
    },
    Trial {
        name: "keeps it from writing outside",
        // A jail with a scratch folder of its own may let it write there: what counts is whether it arrives outside.
        script: "echo x > $OUT.new 2>/dev/null; echo done",
        limits: Limits::default,
        denied: &[],
        held: |seen| !seen.wrote_outside && seen.text.contains("done"),
    },
    Trial {
        name: "hides files that a pattern denies",
        script: "cat $IN/.env 2>/dev/null | grep -q canary && echo made it; echo done",
        limits: Limits::default,
        denied: &["**/.env"],
        held: |seen| !seen.text.contains("made it") && seen.text.contains("done"),
    },
    Trial {
        name: "gives it no privileges",
        script: "mount -t tmpfs none /mnt 2>/dev/null && echo made it; chroot / true 2>/dev/null && echo made it; echo done",
        limits: Limits::default,
        denied: &[],
        held: |seen| !seen.text.contains("made it") && seen.text.contains("done"),
    },
    Trial {
        name: "holds its memory",
        script: "head -c 200000000 /dev/zero | tail -c 199999999 > /dev/null && echo made it",
        limits: || Limits { memory_bytes: Some(32 << 20), ..Limits::default() },
        denied: &[],
        held: |seen| !seen.text.contains("made it"),
    },
    Trial {
        name: "holds its processes",
        script: "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done 2>/dev/null; echo made it",
        limits: || Limits { processes: Some(16), ..Limits::default() },
        denied: &[],
        held: |seen| !seen.text.contains("made it"),
    },
    Trial {
        name: "ends it in time",
        script: "trap '' TERM; sleep 30; echo made it",
        limits: || Limits { wall_time: Some(Duration::from_millis(200)), ..Limits::default() },
        denied: &[],
        held: |seen| !seen.text.contains("made it") && seen.took < Duration::from_secs(10),
    },
];

/// How many of the trials, from the first on, are tried by one program, one after the other: they are about the same
/// folder and need no limits, and most of a trial is its start.
const TOGETHER: usize = 5;

/// Starts small programs in every jail and reports what each jail stopped. All of them run at the same time, each with
/// a folder of its own: needs a runtime of several threads to be fast.
pub async fn examine(jails: &[Arc<dyn Jail>]) -> io::Result<Vec<JailReport>> {
    let tried: Vec<_> = jails.iter().map(|jail| tokio::spawn(examine_one(Arc::clone(jail)))).collect();
    let mut reports = Vec::new();
    for tried in tried {
        reports.push(tried.await.map_err(io::Error::other)??);
    }
    Ok(reports)
}

async fn examine_one(jail: Arc<dyn Jail>) -> io::Result<JailReport> {
    let levels = [IsolationLevel::Standard, IsolationLevel::Strict, IsolationLevel::Restricted];
    let levels: Vec<_> = levels.into_iter().map(|level| level_report(&*jail, level)).collect();
    // Restricted grants no files, so what is tried about files is tried below it.
    let tried = levels.iter().rev().find(|level| level.available && level.level < IsolationLevel::Restricted);
    let mut checks = Vec::new();
    if let Some(level) = tried.map(|level| level.level) {
        let (together, alone) = TRIALS.split_at(TOGETHER);
        let programs = std::iter::once(together).chain(alone.chunks(1));
        let attempts: Vec<_> =
            programs.map(|trials| tokio::spawn(attempt(Arc::clone(&jail), level, trials))).collect();
        for attempt in attempts {
            checks.extend(attempt.await.map_err(io::Error::other)??);
        }
    }
    Ok(JailReport { jail: jail.name().to_owned(), levels, checks })
}

fn level_report(jail: &dyn Jail, level: IsolationLevel) -> LevelReport {
    match jail.offers(level) {
        Ok(enforcement) => {
            LevelReport { level, available: true, reason: None, fix: None, details: enforcement.details }
        }
        Err(unavailable) => LevelReport {
            level,
            available: false,
            reason: Some(unavailable.reason),
            fix: Some(unavailable.fix),
            details: serde_json::Map::new(),
        },
    }
}

/// Tries these by one program.
async fn attempt(
    jail: Arc<dyn Jail>,
    level: IsolationLevel,
    trials: &'static [Trial],
) -> io::Result<Vec<CheckReport>> {
    // Its own: what another program does outside must not count against this one, nor for it.
    let ground = TestFolder::make()?;
    let scripts = trials.iter().enumerate();
    let scripts: Vec<String> =
        scripts.map(|(place, trial)| format!("echo '{}'; {}", mark(place), trial.script)).collect();
    let limits = trials.first().map(|trial| (trial.limits)()).unwrap_or_default();
    let mut spec = GuestSpec {
        level,
        writable: vec![ground.granted.clone()],
        denied: trials.iter().flat_map(|trial| trial.denied).map(|&pattern| pattern.to_owned()).collect(),
        limits,
        ..GuestSpec::command(["/bin/sh".to_owned(), "-c".to_owned(), scripts.join("\n")])
    };
    spec.environment.insert("IN".to_owned(), ground.granted.to_string_lossy().into_owned());
    spec.environment.insert("OUT".to_owned(), ground.canary.to_string_lossy().into_owned());
    let failed = |problem: String| -> Vec<CheckReport> {
        let check =
            |trial: &Trial| CheckReport { name: trial.name, held: false, seen: Some(problem.clone()) };
        trials.iter().map(check).collect()
    };
    if let Err(unavailable) = jail.holds(&spec) {
        return Ok(failed(unavailable.to_string()));
    }
    Ok(match run(&*jail, spec, &ground).await {
        Ok(seen) => {
            trials.iter().enumerate().map(|(place, trial)| checked(trial, seen.part(place))).collect()
        }
        Err(problem) => failed(problem),
    })
}

/// Stands before what a trial put out.
fn mark(place: usize) -> String {
    format!("-- trial {place} --")
}

impl Seen {
    /// What was seen of one of the trials; `None` where it was not begun.
    fn part(&self, place: usize) -> Option<Seen> {
        let (_, after) = self.text.split_once(&mark(place))?;
        let text = after.split_once(&mark(place + 1)).map_or(after, |(text, _)| text).to_owned();
        Some(Seen { text, ..*self })
    }
}

fn checked(trial: &Trial, seen: Option<Seen>) -> CheckReport {
    let name = trial.name;
    let Some(seen) = seen else {
        return CheckReport { name, held: false, seen: Some("the program did not come to it".to_owned()) };
    };
    if (trial.held)(&seen) {
        return CheckReport { name, held: true, seen: None };
    }
    let text = haft_core::text::one_line(seen.text.trim(), 120);
    let how = seen.exceeded.map_or_else(|| format!("{:?}", seen.exit_code), str::to_owned);
    CheckReport { name, held: false, seen: Some(format!("it said \"{text}\" and ended with {how}")) }
}

async fn run(jail: &dyn Jail, spec: GuestSpec, ground: &TestFolder) -> Result<Seen, String> {
    let started = Instant::now();
    let mut guest = jail.start(spec).await.map_err(|error| error.message)?;
    let text = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&text);
    let sink = Arc::new(move |_: OutputStream, bytes: &[u8]| {
        into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    });
    let ended = tokio::time::timeout(Duration::from_secs(20), guest.wait(sink)).await;
    let end =
        ended.map_err(|_| "it did not end within 20 seconds".to_owned())?.map_err(|error| error.message)?;
    let text = String::from_utf8_lossy(&text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    Ok(Seen {
        text,
        exit_code: end.exit_code,
        exceeded: end.exceeded.map(|exceeded| exceeded.limit),
        took: started.elapsed(),
        wrote_outside: ground.root.join("canary.new").exists(),
    })
}

/// A folder that is granted, and a file outside of it. Gone afterwards.
struct TestFolder {
    root: PathBuf,
    granted: PathBuf,
    canary: PathBuf,
}

impl TestFolder {
    fn make() -> io::Result<Self> {
        let id = haft_core::ExecutionId::at(jiff::Timestamp::now());
        let root = std::env::temp_dir().canonicalize()?.join(format!("haft-doctor-{id}"));
        let granted = root.join("granted");
        fs::create_dir(&root)?;
        let ground = TestFolder { granted: granted.clone(), canary: root.join("canary"), root };
        fs::create_dir(&granted)?;
        for path in [&ground.canary, &granted.join(".env")] {
            fs::write(path, "canary\n")?;
        }
        open_to_all(&ground.root)?;
        Ok(ground)
    }
}

/// A guest may be another user: without jail it could read all of this.
fn open_to_all(root: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for path in [root.to_path_buf(), root.join("granted")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
        }
    }
    #[cfg(not(unix))]
    let _ = root;
    Ok(())
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that never ran, or ended half way, holds nothing: every trial needs its own words.
    #[test]
    fn each_trial_is_judged_by_what_it_said_itself() {
        let seen = |text: &str| Seen { text: text.to_owned(), exit_code: Some(0), ..Seen::default() };
        let (together, _) = TRIALS.split_at(TOGETHER);
        let held = |text: &str| -> Vec<bool> {
            let seen = seen(text);
            together.iter().enumerate().map(|(place, trial)| checked(trial, seen.part(place)).held).collect()
        };
        let all = |third: &str| {
            let said = ["hello", "done", "done", third, "done"];
            let parts: Vec<String> =
                said.iter().enumerate().map(|(place, said)| format!("{}\n{said}\n", mark(place))).collect();
            parts.concat()
        };
        assert_eq!(held(&all("done")), [true; TOGETHER]);
        assert_eq!(held(&all("made it\ndone")), [true, true, true, false, true]);
        assert_eq!(held(""), [false; TOGETHER]);
        let half: String = all("done").lines().take(4).map(|line| format!("{line}\n")).collect();
        assert_eq!(held(&half), [true, true, false, false, false]);
        assert!(together.iter().all(|trial| (trial.limits)() == Limits::default()), "one program, no limits");
    }
}
