//! Tools that were added, switched off or configured, as a table with the aliases beside it.
//!
//! Every change takes the next number of one counter and leaves it on its row, so a process that has seen a number asks
//! for what came later. Rows that are gone leave nothing: what was there, and what was made since, is counted instead.

use super::{
    recovery::time,
    value::{Fault, FaultKind, Row, Sql, Value},
    work::Work,
};
use haft_core::port::{StoredTool, ToolChanges, ToolsSeen};

const COLUMNS: &str =
    "r.tool_name, r.definition_json, r.enabled, r.settings_json, r.registered_by, r.registered_at";

fn tool(mut row: Row) -> Result<StoredTool, Fault> {
    Ok(StoredTool {
        name: row.text(0)?,
        definition: row.opt_text(1)?.map(|text| serde_json::from_str(&text)).transpose()?,
        enabled: row.int(2)? != 0,
        settings: serde_json::from_str(&row.text(3)?)?,
        registered_by: row.opt_text(4)?,
        registered_at: row.opt_int(5)?.map(time).transpose()?,
    })
}

fn tools(sql: &mut dyn Sql, which: &str, arguments: &[Value<'_>]) -> Result<Vec<StoredTool>, Fault> {
    let rows = sql.query(&format!("SELECT {COLUMNS} FROM tool_registrations AS r {which}"), arguments)?;
    rows.into_iter().map(tool).collect()
}

pub(crate) fn load(sql: &mut dyn Sql) -> Result<Vec<StoredTool>, Fault> {
    tools(sql, "ORDER BY r.tool_name", &[])
}

/// The tool of a name or alias in lower case; a name comes first.
pub(crate) fn find(sql: &mut dyn Sql, name: &str) -> Result<Option<StoredTool>, Fault> {
    let by_alias =
        "JOIN tool_aliases AS a ON a.tool_name = r.tool_name WHERE a.alias = ?1 ORDER BY a.tool_name LIMIT 1";
    for which in ["WHERE r.tool_name = ?1", by_alias] {
        if let Some(found) = tools(sql, which, &[Value::Text(name)])?.pop() {
            return Ok(Some(found));
        }
    }
    let is_it = |tool: &StoredTool| aliases(tool).any(|alias| alias == name);
    Ok(from_before(sql)?.into_iter().find(is_it))
}

/// What was added before there was a table of aliases.
fn from_before(sql: &mut dyn Sql) -> Result<Vec<StoredTool>, Fault> {
    tools(sql, "WHERE r.changed_stamp = 0 AND r.definition_json IS NOT NULL ORDER BY r.tool_name", &[])
}

fn aliases(tool: &StoredTool) -> impl Iterator<Item = String> + '_ {
    tool.definition.iter().flat_map(|definition| &definition.aliases).map(|alias| alias.to_ascii_lowercase())
}

/// The tools of an MCP server.
pub(crate) fn of_server(sql: &mut dyn Sql, server: &str) -> Result<Vec<StoredTool>, Fault> {
    let mut its = tools(sql, "WHERE r.mcp_server = ?1 ORDER BY r.tool_name", &[Value::Text(server)])?;
    its.extend(from_before(sql)?.into_iter().filter(|tool| server_of(tool) == Some(server)));
    Ok(its)
}

fn server_of(tool: &StoredTool) -> Option<&str> {
    tool.definition.as_ref()?.mcp.as_ref().map(|mcp| mcp.server.as_str())
}

/// What is remembered about tools that nobody added.
pub(crate) fn switched(sql: &mut dyn Sql) -> Result<Vec<StoredTool>, Fault> {
    tools(sql, "WHERE r.definition_json IS NULL ORDER BY r.tool_name", &[])
}

/// Names and aliases of the tools that somebody added.
pub(crate) fn names(sql: &mut dyn Sql) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    for question in [
        "SELECT tool_name FROM tool_registrations WHERE definition_json IS NOT NULL",
        "SELECT alias FROM tool_aliases",
    ] {
        for mut row in sql.query(question, &[])? {
            names.push(row.text(0)?);
        }
    }
    names.extend(from_before(sql)?.iter().flat_map(aliases));
    Ok(names)
}

/// How many tools somebody added.
pub(crate) fn count(sql: &mut dyn Sql) -> Result<u64, Fault> {
    let added = counted(sql, "SELECT COUNT(*) FROM tool_registrations", &[])?;
    let switched = "SELECT COUNT(*) FROM tool_registrations WHERE definition_json IS NULL";
    Ok(added.saturating_sub(counted(sql, switched, &[])?))
}

fn counted(sql: &mut dyn Sql, question: &str, arguments: &[Value<'_>]) -> Result<u64, Fault> {
    let row = sql.query_one(question, arguments)?;
    let mut row = row.ok_or_else(|| Fault::new(FaultKind::Corrupt, "the stamp of the tools is gone"))?;
    Ok(row.int(0)?.unsigned_abs())
}

const STAMP: &str = "SELECT stamp FROM tool_stamp WHERE only_one = 1";

/// What is there now, to be compared with later.
pub(crate) fn seen(sql: &mut dyn Sql) -> Result<ToolsSeen, Fault> {
    at_one_moment(sql, |sql| {
        let entries = counted(sql, "SELECT COUNT(*) FROM tool_registrations", &[])?;
        Ok(ToolsSeen { stamp: counted(sql, STAMP, &[])?, entries })
    })
}

/// What was changed since then, with what is seen now; `None` where nothing was.
pub(crate) fn since(sql: &mut dyn Sql, before: ToolsSeen) -> Result<Option<(ToolsSeen, ToolChanges)>, Fault> {
    if counted(sql, STAMP, &[])? == before.stamp {
        return Ok(None);
    }
    at_one_moment(sql, |sql| {
        let then = Value::Int(i64::try_from(before.stamp).unwrap_or(i64::MAX));
        let changed = tools(sql, "WHERE r.changed_stamp > ?1 ORDER BY r.tool_name", &[then])?;
        let made = "SELECT COUNT(*) FROM tool_registrations WHERE created_stamp > ?1";
        let made = counted(sql, made, &[then])?;
        let entries = counted(sql, "SELECT COUNT(*) FROM tool_registrations", &[])?;
        // Everything that was there, and everything that was made since: unless some of it is gone.
        let left = match before.entries + made == entries {
            true => None,
            false => {
                let rows = sql.query("SELECT tool_name FROM tool_registrations", &[])?;
                Some(rows.into_iter().map(|mut row| row.text(0)).collect::<Result<_, _>>()?)
            }
        };
        let now = ToolsSeen { stamp: counted(sql, STAMP, &[])?, entries };
        Ok(Some((now, ToolChanges { changed, left })))
    })
}

fn at_one_moment<T>(
    sql: &mut dyn Sql,
    read: impl FnOnce(&mut dyn Sql) -> Result<T, Fault>,
) -> Result<T, Fault> {
    sql.snapshot()?;
    let answer = read(sql);
    sql.roll_back();
    answer
}

/// The number of this change. Whoever takes it is alone until the transaction ends.
fn next_stamp(work: &mut Work<'_>) -> Result<i64, Fault> {
    work.sql.execute("UPDATE tool_stamp SET stamp = stamp + 1 WHERE only_one = 1", &[])?;
    counted(work.sql, STAMP, &[]).map(|stamp| i64::try_from(stamp).unwrap_or(i64::MAX))
}

pub(crate) fn save(work: &mut Work<'_>, changed: &[StoredTool]) -> Result<(), Fault> {
    let stamp = next_stamp(work)?;
    for tool in changed {
        match tool.is_ordinary() {
            true => forget(work, &tool.name).map(drop)?,
            false => save_one(work, tool, stamp)?,
        }
    }
    Ok(())
}

fn save_one(work: &mut Work<'_>, tool: &StoredTool, stamp: i64) -> Result<(), Fault> {
    let definition = tool.definition.as_ref().map(serde_json::to_string).transpose()?;
    work.sql.execute(
        "INSERT INTO tool_registrations (tool_name, definition_json, enabled, settings_json, registered_by, \
         registered_at, created_stamp, changed_stamp, mcp_server) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8) \
         ON CONFLICT (tool_name) DO UPDATE SET \
         definition_json = excluded.definition_json, enabled = excluded.enabled, \
         settings_json = excluded.settings_json, registered_by = excluded.registered_by, \
         registered_at = excluded.registered_at, changed_stamp = excluded.changed_stamp, \
         mcp_server = excluded.mcp_server",
        &[
            Value::Text(&tool.name),
            Value::text(definition.as_deref()),
            Value::Int(i64::from(tool.enabled)),
            Value::Text(&serde_json::to_string(&tool.settings)?),
            Value::text(tool.registered_by.as_deref()),
            Value::int(tool.registered_at.map(|at| at.as_microsecond())),
            Value::Int(stamp),
            Value::text(server_of(tool)),
        ],
    )?;
    forget_aliases(work, &tool.name)?;
    for alias in aliases(tool) {
        work.sql.execute(
            "INSERT INTO tool_aliases (alias, tool_name) VALUES (?1, ?2) ON CONFLICT (alias, tool_name) DO NOTHING",
            &[Value::Text(&alias), Value::Text(&tool.name)],
        )?;
    }
    Ok(())
}

pub(crate) fn remove(work: &mut Work<'_>, name: &str) -> Result<(), Fault> {
    next_stamp(work)?;
    forget(work, name)
}

fn forget(work: &mut Work<'_>, name: &str) -> Result<(), Fault> {
    forget_aliases(work, name)?;
    work.sql.execute("DELETE FROM tool_registrations WHERE tool_name = ?1", &[Value::Text(name)]).map(drop)
}

fn forget_aliases(work: &mut Work<'_>, name: &str) -> Result<(), Fault> {
    work.sql.execute("DELETE FROM tool_aliases WHERE tool_name = ?1", &[Value::Text(name)]).map(drop)
}

/// Takes over what an earlier haft remembered in a file, as one change. What is here already stays, but for one thing:
/// what either of them switched off is off. Gives the names of those that differ.
pub(crate) fn import(work: &mut Work<'_>, brought: &[StoredTool]) -> Result<Vec<String>, Fault> {
    let mut differ = Vec::new();
    let mut taken = Vec::new();
    for tool in brought {
        match tools(work.sql, "WHERE r.tool_name = ?1", &[Value::Text(&tool.name)])?.pop() {
            None => taken.push(tool.clone()),
            Some(here) if here == *tool => {}
            Some(here) => {
                differ.push(here.name.clone());
                taken.push(StoredTool { enabled: here.enabled && tool.enabled, ..here });
            }
        }
    }
    save(work, &taken)?;
    Ok(differ)
}
