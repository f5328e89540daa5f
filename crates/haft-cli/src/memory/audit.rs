//! `haft audit`: the record of everything, and whether it is as it was written.

use super::{
    Memory,
    args::{AuditCommand, Format},
    runs, tenant_or_own,
};
use crate::{
    console::{BAD, Console, GOOD, STRONG},
    failure::Failure,
    input::Input,
    words,
};
use haft::{AuditHead, ExportFormat, Verified, port::TenantStore as _};
use haft_core::text::one_line;
use haft_store::Happened;
use serde_json::json;
use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

pub(super) async fn run(
    command: &AuditCommand,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    match command {
        AuditCommand::Query { filter, page, json } => {
            let tenant = memory.store.tenant(&tenant_or_own(filter.tenant.as_deref()));
            let found = tenant.audit_page(filter.query(Some(page))).await?;
            runs::list("records", &found, page, *json, console)?;
            Ok(0)
        }
        AuditCommand::Events { limit, json } => {
            let events = memory.store.happenings(usize::from(*limit)).await?;
            if *json {
                console.print_json(&json!({"events": events}))?;
            } else if events.is_empty() {
                console.print("there are no events\n")?;
            }
            for event in events.iter().filter(|_| !json) {
                console.print(format!("{}\n", line(event)))?;
            }
            Ok(0)
        }
        AuditCommand::Verify { head, key, archive, json } => {
            let key = key.as_ref().map(|key| memory.working_folder.join(key));
            if let Some(archive) = archive {
                let path = memory.working_folder.join(archive);
                let verified = memory.store.verify_archive(&path, key.as_deref())?;
                return told(&verified, None, false, *json, console);
            }
            // What was told is compared without being asked for; a file that is gone was told nothing that could be.
            let told_file =
                memory.heads.as_deref().filter(|file| file.metadata().is_ok_and(|file| file.len() > 0));
            let files = head.as_deref().into_iter().chain(told_file);
            let heads = files
                .map(|file| heads(file, &memory.working_folder))
                .collect::<Result<Vec<_>, _>>()?
                .concat();
            let verified = memory.store.verify(key.as_deref(), &heads).await?;
            let head = memory.store.head().await?;
            told(&verified, Some(&head), heads.is_empty(), *json, console)
        }
        AuditCommand::Export { filter, format, output } => {
            let format = match format {
                Format::Jsonl => ExportFormat::JsonLines,
                Format::Csv => ExportFormat::Csv,
            };
            let tenant = tenant_or_own(filter.tenant.as_deref());
            let query = filter.query(None);
            match output {
                None => {
                    let mut out = Quiet(BufWriter::new(io::stdout()), false);
                    memory.store.export(&tenant, query, format, &mut out).await?;
                    out.flush().map_err(Failure::Stdout)?;
                }
                Some(file) => {
                    let path = memory.working_folder.join(file);
                    let failed = |reason| Failure::CannotWrite { path: file.clone(), reason };
                    let mut out = BufWriter::new(private(&path).map_err(failed)?);
                    let count = memory.store.export(&tenant, query, format, &mut out).await?;
                    out.flush().map_err(failed)?;
                    let count = words::count(usize::try_from(count).unwrap_or(usize::MAX), "record");
                    console.say(format!("{count} written to {}", words::path(file)));
                }
            }
            Ok(0)
        }
    }
}

/// One of them on a line: when, what, and what is known of it.
fn line(happened: &Happened) -> String {
    let facts =
        happened.facts.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| match value {
            serde_json::Value::String(text) => format!("{name}={}", one_line(text, 200)),
            other => format!("{name}={}", one_line(&other.to_string(), 400)),
        });
    let facts: Vec<_> = facts.collect();
    format!("{}  {STRONG}{}{STRONG:#}  {}", happened.at, one_line(&happened.event, 40), facts.join("  "))
}

/// Heads that were kept elsewhere: documents of `--json`, or heads alone, one or many.
fn heads(file: &Path, working_folder: &Path) -> Result<Vec<AuditHead>, Failure> {
    let text = match file.to_str() {
        Some("-") => Input::default().stdin()?,
        _ => Input::default().text(file, working_folder)?,
    };
    let bad =
        |problem: String| Failure::BadHead { what: words::path(file), problem: one_line(&problem, 200) };
    let mut heads = Vec::new();
    for document in serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>() {
        let mut document = document.map_err(|error| bad(error.to_string()))?;
        if let Some(head) = document.get_mut("head") {
            document = head.take();
        }
        heads.push(serde_json::from_value(document).map_err(|error| bad(error.to_string()))?);
    }
    match heads.is_empty() {
        true => Err(bad("it is empty".to_owned())),
        false => Ok(heads),
    }
}

fn told(
    verified: &Verified,
    head: Option<&AuditHead>,
    without_heads: bool,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let Verified { first, last, archived, bad } = verified;
    if json {
        let bad_json = bad.as_ref().map(|bad| json!({"seq": bad.seq, "what": bad.what}));
        console.print_json(&json!({
            "verified": bad.is_none(),
            "first": first,
            "last": last,
            "archived": archived,
            "bad": bad_json,
            "head": head,
        }))?;
        return Ok(u8::from(bad.is_some()));
    }
    if let Some(bad) = bad {
        console.print(format!("{BAD}✗{BAD:#} record {}: {}\n", bad.seq, bad.what))?;
        console.error(
            "the audit log was changed",
            Some("keep a copy of the database as evidence, and compare it with an earlier backup"),
        );
        return Ok(1);
    }
    let count = words::count(usize::try_from(last - first + 1).unwrap_or(0), "record");
    let text = match last < first {
        true => "the audit log is empty".to_owned(),
        false => format!("{count}, {first} to {last}, unchanged"),
    };
    console.print(format!("{GOOD}✓{GOOD:#} {text}\n"))?;
    if without_heads && last >= first {
        console.say(
            "without a head that you kept elsewhere (--head), haft cannot notice that the whole database was replaced with \
             an older copy",
        );
    }
    Ok(0)
}

/// A new file that only the user can read.
fn private(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Standard output, which somebody may close before the end: the rest is not wanted then.
struct Quiet<W>(W, bool);

impl<W: Write> Quiet<W> {
    fn unless_closed<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.1 = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Ok(bytes.len());
        }
        let done = self.0.write(bytes);
        self.unless_closed(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.1 {
            return Ok(());
        }
        let done = self.0.flush();
        self.unless_closed(done, ())
    }
}
