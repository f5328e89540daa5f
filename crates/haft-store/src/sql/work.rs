//! One transaction at work: the connection, the end of the audit chain, and who writes.

use super::{
    chain::{self, Bytes32, Link},
    instances::Lives,
    options::Options,
    value::{Fault, FaultKind, Sql, Value},
};

/// What every change needs.
pub(crate) struct Work<'a> {
    pub(crate) sql: &'a mut dyn Sql,
    pub(crate) instance: &'a str,
    pub(crate) lives: &'a dyn Lives,
    pub(crate) options: &'a Options,
    head: Option<Head>,
    changed: bool,
}

/// The end of the chain, as this transaction sees it.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) link: Link,
    pub(crate) projected: i64,
    pub(crate) anchor_seq: i64,
    pub(crate) anchor_mac: Bytes32,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        sql: &'a mut dyn Sql,
        instance: &'a str,
        lives: &'a dyn Lives,
        options: &'a Options,
    ) -> Self {
        Work { sql, instance, lives, options, head: None, changed: false }
    }

    /// The time, in the form of the database.
    pub(crate) fn now(&self) -> i64 {
        self.options.clock.now().as_microsecond()
    }

    /// The end of the chain. Read once in a transaction: nobody else writes meanwhile.
    pub(crate) fn head(&mut self) -> Result<&mut Head, Fault> {
        if self.head.is_none() {
            self.head = Some(read_head(self.sql)?);
        }
        match &mut self.head {
            Some(head) => Ok(head),
            None => unreachable!("it was put there"),
        }
    }

    /// The end of the chain, to be changed and written at the end of the transaction.
    pub(crate) fn head_mut(&mut self) -> Result<&mut Head, Fault> {
        self.changed = true;
        self.head()
    }

    /// Adds a record to the audit; gives its number.
    pub(crate) fn append(&mut self, body: &str) -> Result<i64, Fault> {
        let digest = chain::digest(body.as_bytes());
        let head = self.head_mut()?;
        head.link.advance(&digest);
        let (seq, mac) = (head.link.seq, head.link.mac);
        self.sql.execute(
            "INSERT INTO audit_log (seq, body, digest, mac) VALUES (?1, ?2, NULL, ?3)",
            &[Value::Int(seq), Value::Text(body), Value::Blob(&mac)],
        )?;
        Ok(seq)
    }

    /// Writes the end of the chain, where it moved. The last thing before a commit.
    pub(crate) fn seal(&mut self) -> Result<Option<(i64, Bytes32)>, Fault> {
        let (true, Some(head)) = (self.changed, &self.head) else { return Ok(None) };
        self.sql.execute(
            "UPDATE audit_head SET seq = ?1, mac = ?2, ratchet = ?3, projected = ?4, anchor_seq = ?5, anchor_mac = ?6 \
             WHERE only_one = 1",
            &[
                Value::Int(head.link.seq),
                Value::Blob(&head.link.mac),
                Value::Blob(&head.link.key),
                Value::Int(head.projected),
                Value::Int(head.anchor_seq),
                Value::Blob(&head.anchor_mac),
            ],
        )?;
        Ok(Some((head.link.seq, head.link.mac)))
    }
}

/// Reads the end of the chain.
pub(crate) fn read_head(sql: &mut dyn Sql) -> Result<Head, Fault> {
    // In PostgreSQL several writers may come at once: the row is held until the end.
    let question = match sql.dialect() {
        super::value::Dialect::Sqlite => {
            "SELECT seq, mac, ratchet, projected, anchor_seq, anchor_mac FROM audit_head"
        }
        super::value::Dialect::Postgres => {
            "SELECT seq, mac, ratchet, projected, anchor_seq, anchor_mac FROM audit_head FOR UPDATE"
        }
    };
    let row = sql.query_one(question, &[])?;
    let mut row = row.ok_or_else(|| Fault::new(FaultKind::Corrupt, "the audit has no head"))?;
    Ok(Head {
        link: Link { seq: row.int(0)?, mac: bytes32(row.blob(1)?)?, key: bytes32(row.blob(2)?)? },
        projected: row.int(3)?,
        anchor_seq: row.int(4)?,
        anchor_mac: bytes32(row.blob(5)?)?,
    })
}

/// 32 bytes, or the database is damaged.
pub(crate) fn bytes32(bytes: Vec<u8>) -> Result<Bytes32, Fault> {
    bytes.try_into().map_err(|_| Fault::new(FaultKind::Corrupt, "a key or seal has the wrong length"))
}
