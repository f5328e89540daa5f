//! Tools that were added, switched off or configured, as a table.

use super::{
    recovery::time,
    value::{Fault, Sql, Value},
    work::Work,
};
use haft_core::port::StoredTool;

pub(crate) fn load(sql: &mut dyn Sql) -> Result<Vec<StoredTool>, Fault> {
    let rows = sql.query(
        "SELECT tool_name, definition_json, enabled, settings_json, registered_by, registered_at \
         FROM tool_registrations ORDER BY tool_name",
        &[],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(StoredTool {
                name: row.text(0)?,
                definition: row.opt_text(1)?.map(|text| serde_json::from_str(&text)).transpose()?,
                enabled: row.int(2)? != 0,
                settings: serde_json::from_str(&row.text(3)?)?,
                registered_by: row.opt_text(4)?,
                registered_at: row.opt_int(5)?.map(time).transpose()?,
            })
        })
        .collect()
}

pub(crate) fn save(work: &mut Work<'_>, tool: &StoredTool) -> Result<(), Fault> {
    if tool.is_ordinary() {
        return remove(work, &tool.name);
    }
    let definition = tool.definition.as_ref().map(serde_json::to_string).transpose()?;
    work.sql
        .execute(
            "INSERT INTO tool_registrations (tool_name, definition_json, enabled, settings_json, registered_by, \
             registered_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tool_name) DO UPDATE SET \
             definition_json = excluded.definition_json, enabled = excluded.enabled, \
             settings_json = excluded.settings_json, registered_by = excluded.registered_by, \
             registered_at = excluded.registered_at",
            &[
                Value::Text(&tool.name),
                Value::text(definition.as_deref()),
                Value::Int(i64::from(tool.enabled)),
                Value::Text(&serde_json::to_string(&tool.settings)?),
                Value::text(tool.registered_by.as_deref()),
                Value::int(tool.registered_at.map(|at| at.as_microsecond())),
            ],
        )
        .map(drop)
}

pub(crate) fn remove(work: &mut Work<'_>, name: &str) -> Result<(), Fault> {
    work.sql.execute("DELETE FROM tool_registrations WHERE tool_name = ?1", &[Value::Text(name)]).map(drop)
}
