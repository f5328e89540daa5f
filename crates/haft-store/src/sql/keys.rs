//! Keys by which programs are known to a server, as a table.

use super::{
    record::Happening,
    recovery::time,
    value::{Fault, Row, Sql, Value},
    work::Work,
};
use haft_core::port::{ApiKey, SecretHash};
use std::fmt::Write as _;

const COLUMNS: &str =
    "key_id, name, tenant, agent_id, user_id, roles, rights, created_at, created_by, expires_at, revoked_at";

fn hex(hash: &SecretHash) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn add(work: &mut Work<'_>, key: &ApiKey, hash: &SecretHash) -> Result<(), Fault> {
    work.sql
        .execute(
            "INSERT INTO api_keys (key_id, secret_hash, name, tenant, agent_id, user_id, roles, rights, created_at, \
             created_by, expires_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            &[
                Value::Text(&key.id),
                Value::Text(&hex(hash)),
                Value::Text(&key.name),
                Value::Text(&key.tenant),
                Value::text(key.agent.as_deref()),
                Value::text(key.user.as_deref()),
                Value::Text(&serde_json::to_string(&key.roles)?),
                Value::Text(&serde_json::to_string(&key.rights)?),
                Value::Int(key.created_at.as_microsecond()),
                Value::Text(&key.created_by),
                Value::int(key.expires_at.map(|at| at.as_microsecond())),
                Value::int(key.revoked_at.map(|at| at.as_microsecond())),
            ],
        )?;
    // In the same transaction: there is no key that the audit does not know of.
    happened(
        work,
        &Happening::KeyCreated {
            form: Happening::FORM,
            at: key.created_at.as_microsecond(),
            tenant: key.tenant.to_string(),
            key: key.id.clone(),
            name: key.name.clone(),
            rights: key.rights.clone(),
            roles: key.roles.clone(),
            expires_at: key.expires_at.map(|at| at.as_microsecond()),
            by: key.created_by.clone(),
        },
    )
}

fn happened(work: &mut Work<'_>, happening: &Happening) -> Result<(), Fault> {
    work.append(&serde_json::to_string(happening)?).map(drop)
}

pub(crate) fn by_secret(sql: &mut dyn Sql, hash: &SecretHash) -> Result<Option<ApiKey>, Fault> {
    let question = format!("SELECT {COLUMNS} FROM api_keys WHERE secret_hash = ?1");
    sql.query_one(&question, &[Value::Text(&hex(hash))])?.map(key).transpose()
}

pub(crate) fn all(sql: &mut dyn Sql, tenant: Option<&str>) -> Result<Vec<ApiKey>, Fault> {
    let rows = match tenant {
        Some(tenant) => {
            let question =
                format!("SELECT {COLUMNS} FROM api_keys WHERE tenant = ?1 ORDER BY created_at, key_id");
            sql.query(&question, &[Value::Text(tenant)])?
        }
        None => sql.query(&format!("SELECT {COLUMNS} FROM api_keys ORDER BY created_at, key_id"), &[])?,
    };
    rows.into_iter().map(key).collect()
}

pub(crate) fn revoke(work: &mut Work<'_>, id: &str, by: &str) -> Result<bool, Fault> {
    let now = work.now();
    let changed = work.sql.execute(
        "UPDATE api_keys SET revoked_at = ?2 WHERE key_id = ?1 AND revoked_at IS NULL",
        &[Value::Text(id), Value::Int(now)],
    )?;
    if changed != 1 {
        return Ok(false);
    }
    let tenant = work.sql.query_one("SELECT tenant FROM api_keys WHERE key_id = ?1", &[Value::Text(id)])?;
    let tenant = tenant.map_or(Ok(String::new()), |mut row| row.text(0))?;
    let revoked = Happening::KeyRevoked {
        form: Happening::FORM,
        at: now,
        tenant,
        key: id.to_owned(),
        by: by.to_owned(),
    };
    happened(work, &revoked)?;
    Ok(true)
}

fn key(mut row: Row) -> Result<ApiKey, Fault> {
    Ok(ApiKey {
        id: row.text(0)?,
        name: row.text(1)?,
        tenant: row.text(2)?.into(),
        agent: row.opt_text(3)?.map(Into::into),
        user: row.opt_text(4)?.map(Into::into),
        roles: serde_json::from_str(&row.text(5)?)?,
        rights: serde_json::from_str(&row.text(6)?)?,
        created_at: time(row.int(7)?)?,
        created_by: row.text(8)?,
        expires_at: row.opt_int(9)?.map(time).transpose()?,
        revoked_at: row.opt_int(10)?.map(time).transpose()?,
    })
}
