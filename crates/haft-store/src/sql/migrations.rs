//! The layout of the database, in numbered steps that go up and down.

use super::value::{Dialect, Fault, FaultKind, Sql, Value};

/// One step.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    up: &'static str,
    down: &'static str,
}

/// The version that this program works with.
pub(crate) const LATEST: i64 = MIGRATIONS.len() as i64;

/// All steps, in order. What was released is never changed: a change is one more step.
pub(crate) const MIGRATIONS: [Migration; 14] = [
    Migration {
        version: 1,
        name: "journal and audit",
        up: include_str!("layout/001_up.sql"),
        down: include_str!("layout/001_down.sql"),
    },
    Migration {
        version: 2,
        name: "outputs",
        up: include_str!("layout/002_up.sql"),
        down: include_str!("layout/002_down.sql"),
    },
    Migration {
        version: 3,
        name: "approvals and grants",
        up: include_str!("layout/003_up.sql"),
        down: include_str!("layout/003_down.sql"),
    },
    Migration {
        version: 4,
        name: "tools and sandboxes",
        up: include_str!("layout/004_up.sql"),
        down: include_str!("layout/004_down.sql"),
    },
    Migration {
        version: 5,
        name: "tasks",
        up: include_str!("layout/005_up.sql"),
        down: include_str!("layout/005_down.sql"),
    },
    Migration {
        version: 6,
        name: "output on its way",
        up: include_str!("layout/006_up.sql"),
        down: include_str!("layout/006_down.sql"),
    },
    Migration {
        version: 7,
        name: "questions that are answered from elsewhere",
        up: include_str!("layout/007_up.sql"),
        down: include_str!("layout/007_down.sql"),
    },
    Migration {
        version: 8,
        name: "keys of programs",
        up: include_str!("layout/008_up.sql"),
        down: include_str!("layout/008_down.sql"),
    },
    Migration {
        version: 9,
        name: "how long results may be kept",
        up: include_str!("layout/009_up.sql"),
        down: include_str!("layout/009_down.sql"),
    },
    Migration {
        version: 10,
        name: "everything that an approval covers",
        up: include_str!("layout/010_up.sql"),
        down: include_str!("layout/010_down.sql"),
    },
    Migration {
        version: 11,
        name: "by which way a grant was given",
        up: include_str!("layout/011_up.sql"),
        down: include_str!("layout/011_down.sql"),
    },
    Migration {
        version: 12,
        name: "what executions were made with and why they failed",
        up: include_str!("layout/012_up.sql"),
        down: include_str!("layout/012_down.sql"),
    },
    Migration {
        version: 13,
        name: "what became of what commands changed",
        up: include_str!("layout/013_up.sql"),
        down: include_str!("layout/013_down.sql"),
    },
    Migration {
        version: 14,
        name: "tools are found one by one and followed by a stamp",
        up: include_str!("layout/014_up.sql"),
        down: include_str!("layout/014_down.sql"),
    },
];

/// The version of the database; 0 for an empty one.
pub(crate) fn version(sql: &mut dyn Sql) -> Result<i64, Fault> {
    if !has_table(sql, "haft_migrations")? {
        return Ok(0);
    }
    let row = sql.query_one("SELECT COALESCE(MAX(version), 0) FROM haft_migrations", &[])?;
    row.map_or(Ok(0), |mut row| row.int(0))
}

fn has_table(sql: &mut dyn Sql, name: &str) -> Result<bool, Fault> {
    let question = match sql.dialect() {
        Dialect::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1",
        Dialect::Postgres => {
            "SELECT 1::BIGINT FROM pg_tables WHERE schemaname = current_schema() AND tablename::TEXT = ?1"
        }
    };
    Ok(sql.query_one(question, &[Value::Text(name)])?.is_some())
}

/// Goes to a version, up or down, as one transaction: all of it, or nothing.
pub(crate) fn migrate(sql: &mut dyn Sql, to: i64, now: i64) -> Result<(), Fault> {
    sql.begin()?;
    let done = steps(sql, to, now).and_then(|()| sql.commit());
    if done.is_err() {
        sql.roll_back();
    }
    done
}

fn steps(sql: &mut dyn Sql, to: i64, now: i64) -> Result<(), Fault> {
    let dialect = sql.dialect();
    if dialect == Dialect::Postgres {
        // Two processes that start at once: the second waits, and finds it done.
        sql.query("SELECT 1::BIGINT FROM (SELECT pg_advisory_xact_lock(7205759403)) AS held", &[])?;
    }
    sql.script(&spelled(
        "CREATE TABLE IF NOT EXISTS haft_migrations (version {INT} PRIMARY KEY, name TEXT NOT NULL, applied_at {INT} NOT NULL)",
        dialect,
    ))?;
    // Asked inside: another process may have done it a moment ago.
    let from = version(sql)?;
    if from > LATEST {
        return Err(too_new(from));
    }
    for migration in MIGRATIONS.iter().filter(|step| step.version > from && step.version <= to) {
        sql.script(&spelled(migration.up, dialect))?;
        sql.execute(
            "INSERT INTO haft_migrations (version, name, applied_at) VALUES (?1, ?2, ?3)",
            &[Value::Int(migration.version), Value::Text(migration.name), Value::Int(now)],
        )?;
    }
    for migration in MIGRATIONS.iter().rev().filter(|step| step.version <= from && step.version > to) {
        sql.script(&spelled(migration.down, dialect))?;
        sql.execute("DELETE FROM haft_migrations WHERE version = ?1", &[Value::Int(migration.version)])?;
    }
    Ok(())
}

/// Whether the layout has that index for those rows only.
#[cfg(feature = "postgres")]
pub(crate) fn has_partial_index(name: &str, condition: &str) -> bool {
    let (made, only) = (format!("INDEX {name} ON "), format!(" WHERE {condition};"));
    let mut lines = MIGRATIONS.iter().flat_map(|step| step.up.lines());
    lines.any(|line| line.contains(&made) && line.ends_with(&only))
}

/// A database that a later haft has changed is left alone.
pub(crate) fn too_new(found: i64) -> Fault {
    Fault::new(
        FaultKind::Refused,
        format!(
            "the database has the layout {found}, and this haft knows {LATEST}; use the haft that wrote it, or its \
             `haft backup --layout {LATEST}`"
        ),
    )
}

/// The same layout in the words of either database.
fn spelled(script: &str, dialect: Dialect) -> String {
    let words = match dialect {
        Dialect::Sqlite => [
            ("{COUNTER}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
            ("{ROW}", "INTEGER PRIMARY KEY"),
            ("{INT}", "INTEGER"),
            ("{REAL}", "REAL"),
            ("{BLOB}", "BLOB"),
        ],
        Dialect::Postgres => [
            ("{COUNTER}", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
            ("{ROW}", "BIGINT PRIMARY KEY"),
            ("{INT}", "BIGINT"),
            ("{REAL}", "DOUBLE PRECISION"),
            ("{BLOB}", "BYTEA"),
        ],
    };
    words.iter().fold(script.to_owned(), |script, (mark, word)| script.replace(mark, word))
}
