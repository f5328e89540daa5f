//! PostgreSQL: the same logic on a server that several machines share.
//!
//! Each connection has a small runtime of its own, on the thread that uses it: the rest of the store speaks to either
//! database in the same, blocking words.

use super::{
    migrations,
    postgres_tls::{Protection, Words},
    value::{Cell, Dialect, Fault, FaultKind, Row, Sql, Value},
};
use std::{collections::HashMap, error::Error as _, time::Duration};
use tokio::runtime::Runtime;
use tokio_postgres::{
    Client, Config, NoTls, Statement,
    config::{Host, SslMode},
    error::SqlState,
    types::{IsNull, ToSql, Type, private::BytesMut},
};

const CONNECTING: Duration = Duration::from_secs(5);
/// Held by the process that writes: one at a time, as with a file.
const WRITING: i64 = 7_205_759_402;

/// Where the server is.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    protection: Protection,
    schema: String,
    /// For people, without the password.
    pub(crate) shown: String,
}

impl Address {
    /// From a URL, or words such as `host=/run/postgresql dbname=haft`.
    pub(crate) fn parse(text: &str, schema: &str) -> Result<Self, Fault> {
        let (tls, rest) = Words::take(text.trim());
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            Fault::refused(format!("the address of the database cannot be read: {}", words(&error)))
        })?;
        let is_name =
            schema.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if schema.is_empty() || schema.len() > 63 || !is_name {
            return Err(Fault::refused("a schema is named with lower-case letters, digits and underscores"));
        }
        let is_local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        };
        let hosts = config.get_hosts();
        // An address in numbers is where the connection goes, whatever the host is called.
        let is_near = match config.get_hostaddrs() {
            [] => hosts.iter().all(is_local),
            addresses => addresses.iter().all(std::net::IpAddr::is_loopback),
        };
        let is_socket = !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)));
        let protection = match is_socket {
            true => Protection::Open,
            false => tls.protection(is_near)?,
        };
        let mode = match protection {
            Protection::Open => SslMode::Disable,
            Protection::Tls(_) => SslMode::Require,
        };
        config.connect_timeout(CONNECTING).ssl_mode(mode).keepalives_idle(Duration::from_secs(60));
        let hosts: Vec<String> = config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Unix(path) => path.display().to_string(),
                Host::Tcp(name) => name.clone(),
            })
            .collect();
        let shown =
            format!("PostgreSQL at {}, {}.{schema}", hosts.join(","), config.get_dbname().unwrap_or("?"));
        Ok(Address { config, protection, schema: schema.to_owned(), shown })
    }
}

/// A connection.
pub(crate) struct PostgresSql {
    /// Taken only when it is dropped.
    runtime: Option<Runtime>,
    client: Client,
    statements: HashMap<String, Statement>,
    is_writing: bool,
}

impl Drop for PostgresSql {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped in another runtime, where one must not wait.
            runtime.shutdown_background();
        }
    }
}

impl PostgresSql {
    /// Connects; the schema is made where it is missing.
    pub(crate) fn connect(address: &Address, name: &str) -> Result<Self, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::new(FaultKind::Other, format!("no runtime for the database: {error}")))?;
        let mut config = address.config.clone();
        config.application_name(name);
        let schema = &address.schema;
        // Nothing waits for ever.
        let session = format!(
            "SET lock_timeout = '5s'; SET statement_timeout = '60s'; SET synchronous_commit = on; \
             SET client_min_messages = warning; CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema}"
        );
        let connected = runtime.block_on(async {
            // The code that uses the client sees how the connection ends.
            let client = match &address.protection {
                Protection::Open => {
                    let (client, connection) = config.connect(NoTls).await?;
                    tokio::spawn(async move { drop(connection.await) });
                    client
                }
                Protection::Tls(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    tokio::spawn(async move { drop(connection.await) });
                    client
                }
            };
            client.batch_execute(&session).await?;
            Ok(client)
        });
        let client = connected.map_err(|error| fault(&error))?;
        Ok(PostgresSql { runtime: Some(runtime), client, statements: HashMap::new(), is_writing: false })
    }

    /// Shows others that an instance lives, for as long as this connection is there.
    pub(crate) fn hold(&mut self, instance: &str) -> Result<(), Fault> {
        self.query("SELECT pg_try_advisory_lock(?1)", &[Value::Int(number_of(instance))]).map(drop)
    }

    fn run<T>(&self, what: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Fault> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(what).map_err(|error| fault(&error)),
            None => Err(Fault::new(FaultKind::Lost, "the connection is closed")),
        }
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // The only place where `?` stands in our words is before the number of an argument.
        let spelled = sql.replace('?', "$");
        let statement = self.run(self.client.prepare(&spelled))?;
        if self.statements.len() > 256 {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// The number by which an instance's lock goes.
fn number_of(instance: &str) -> i64 {
    let uuid = uuid::Uuid::parse_str(instance).unwrap_or_default();
    i64::from_be_bytes(uuid.into_bytes()[..8].try_into().unwrap_or_default())
}

/// Whether an instance lives: nobody else can hold its lock.
pub(crate) fn lives(sql: &mut dyn Sql, instance: &str) -> bool {
    let row = sql.query_one("SELECT pg_try_advisory_xact_lock(?1)", &[Value::Int(number_of(instance))]);
    // Where it cannot be told, it does.
    !matches!(row.map(|row| row.map(|mut row| row.int(0))), Ok(Some(Ok(1))))
}

impl Sql for PostgresSql {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn execute(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<u64, Fault> {
        let statement = self.statement(sql)?;
        let arguments: Vec<&(dyn ToSql + Sync)> = arguments.iter().map(|value| value as _).collect();
        self.run(self.client.execute(&statement, &arguments))
    }

    fn query(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.statement(sql)?;
        let arguments: Vec<&(dyn ToSql + Sync)> = arguments.iter().map(|value| value as _).collect();
        let rows = self.run(self.client.query(&statement, &arguments))?;
        rows.iter().map(row).collect()
    }

    fn script(&mut self, sql: &str) -> Result<(), Fault> {
        self.run(self.client.batch_execute(sql))
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.is_writing = true;
        self.run(self.client.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({WRITING})")))
    }

    fn commit(&mut self) -> Result<(), Fault> {
        self.run(self.client.batch_execute("COMMIT"))?;
        self.is_writing = false;
        Ok(())
    }

    fn snapshot(&mut self) -> Result<(), Fault> {
        self.is_writing = true;
        self.run(self.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    }

    /// The server keeps indexes and tables in agreement. What its owner can put between a question and the rows is
    /// looked for.
    fn difference(&mut self) -> Result<Option<String>, Fault> {
        let here = "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema()";
        let table = format!(
            "SELECT c.relname::TEXT FROM pg_class c {here} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND \
             (c.relkind <> 'r' OR c.relrowsecurity OR c.relhasrules OR c.relhassubclass OR c.relispartition OR \
             EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)) ORDER BY 1 LIMIT 1"
        );
        if let Some(mut row) = self.query_one(&table, &[])? {
            let what = "is a view, or has a trigger, a rule, a policy or a table below it";
            return Ok(Some(format!("`{}` {what}", row.text(0)?)));
        }
        let index = format!(
            "SELECT c.relname::TEXT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid {here} AND \
             NOT (i.indisvalid AND i.indisready AND i.indislive) ORDER BY 1 LIMIT 1"
        );
        if let Some(mut row) = self.query_one(&index, &[])? {
            return Ok(Some(format!("the index `{}` is not valid", row.text(0)?)));
        }
        let partial = format!(
            "SELECT c.relname::TEXT, pg_get_expr(i.indpred, i.indrelid) FROM pg_class c \
             JOIN pg_index i ON i.indexrelid = c.oid {here} AND i.indpred IS NOT NULL"
        );
        for mut row in self.query(&partial, &[])? {
            let (name, condition) = (row.text(0)?, row.text(1)?);
            let condition = condition.trim_start_matches('(').trim_end_matches(')').to_owned();
            if !migrations::has_partial_index(&name, &condition) {
                return Ok(Some(format!("the index `{name}` has only the rows with {condition}")));
            }
        }
        Ok(None)
    }

    fn roll_back(&mut self) {
        if std::mem::replace(&mut self.is_writing, false) {
            // Where it fails, the connection is gone, and the server has rolled back.
            let _ = self.run(self.client.batch_execute("ROLLBACK"));
        }
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, Fault> {
    let mut cells = Vec::with_capacity(row.len());
    for (place, column) in row.columns().iter().enumerate() {
        cells.push(cell(row, place, column.type_()).map_err(|error| fault(&error))?);
    }
    Ok(Row(cells))
}

fn cell(row: &tokio_postgres::Row, place: usize, kind: &Type) -> Result<Cell, tokio_postgres::Error> {
    fn some<T>(value: Option<T>, make: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or(Cell::Null, make)
    }
    Ok(match *kind {
        Type::INT8 => some(row.try_get(place)?, Cell::Int),
        Type::INT4 => some(row.try_get::<_, Option<i32>>(place)?, |number| Cell::Int(number.into())),
        Type::BOOL => some(row.try_get::<_, Option<bool>>(place)?, |is| Cell::Int(is.into())),
        Type::FLOAT8 => some(row.try_get(place)?, Cell::Real),
        Type::BYTEA => some(row.try_get(place)?, Cell::Blob),
        _ => some(row.try_get(place)?, Cell::Text),
    })
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Value::Int(number) => number.to_sql(kind, out),
            Value::Real(number) => number.to_sql(kind, out),
            // A text there cannot hold a zero byte.
            Value::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

fn fault(error: &tokio_postgres::Error) -> Fault {
    if let Some(why) = no_tls(error) {
        // Not `Refused`, which is about one job: records wait until the server can be spoken to again.
        return Fault::new(FaultKind::Other, format!("the database: {why}"));
    }
    let kind = match error.code() {
        _ if error.is_closed() => FaultKind::Lost,
        None => FaultKind::Lost,
        Some(
            &SqlState::LOCK_NOT_AVAILABLE | &SqlState::QUERY_CANCELED | &SqlState::T_R_DEADLOCK_DETECTED,
        ) => FaultKind::Busy,
        Some(&SqlState::DISK_FULL | &SqlState::OUT_OF_MEMORY) => FaultKind::Full,
        Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => FaultKind::Corrupt,
        Some(&SqlState::IO_ERROR) => FaultKind::Io,
        Some(code) => match code.code().get(..2) {
            // The server shuts down or starts up, or ended this connection.
            Some("57" | "08") => FaultKind::Lost,
            Some("22" | "23") => FaultKind::Refused,
            _ => FaultKind::Other,
        },
    };
    Fault::new(kind, format!("the database: {}", words(error)))
}

/// Why there is no encryption, where that is what is wrong: trying again would not help.
fn no_tls(error: &tokio_postgres::Error) -> Option<String> {
    let behind = error.source()?;
    let tls = behind.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref()?.downcast_ref());
    match tls {
        Some(rustls::Error::InvalidCertificate(why)) => Some(format!(
            "the certificate of the server is refused: {why}; name the authority that signed it with \
             `sslrootcert=PATH`, and the server as its certificate does"
        )),
        Some(other) => Some(format!("encryption failed: {other}")),
        None if behind.to_string().contains("server does not support TLS") => {
            Some("the server does not offer encryption, and `sslmode` asks for it".to_owned())
        }
        None => None,
    }
}

/// What the server said, and what lies behind.
fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => said.message().to_owned(),
        (None, Some(behind)) => format!("{error}: {behind}"),
        (None, None) => error.to_string(),
    }
}
