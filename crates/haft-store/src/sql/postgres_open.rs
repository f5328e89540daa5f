//! A store on a PostgreSQL server.

use super::{
    instances::Lives,
    migrations, open,
    options::Options,
    postgres::{self, Address, PostgresSql},
    store::{DurableStore, Foundation},
    value::{Fault, FaultKind, Sql},
    writer::Connect,
};
use haft_core::port::StoreError;
use std::{path::Path, sync::Arc};

const READERS: usize = 2;

/// Where a PostgreSQL store is, and what may be done to it.
#[derive(Clone, Debug)]
pub struct PostgresPlace {
    /// `postgres://user@host/database`, or words such as `host=/run/postgresql dbname=haft`.
    pub address: String,
    /// The schema of haft's tables.
    pub schema: String,
    /// Whether the layout of an earlier haft may be changed. Its operator makes the copy before, with `pg_dump`: a
    /// program that only has a connection cannot.
    pub may_change_layout: bool,
}

impl PostgresPlace {
    /// The schema of haft's tables, unless another one is named.
    pub const SCHEMA: &'static str = "agent_tools";

    /// At that address, in the schema `agent_tools`.
    pub fn new(address: impl Into<String>) -> Self {
        PostgresPlace {
            address: address.into(),
            schema: PostgresPlace::SCHEMA.to_owned(),
            may_change_layout: false,
        }
    }
}

impl DurableStore {
    /// Opens the store of a server; makes its tables where they are missing. `folder` is for keys and archives. Blocks
    /// while it opens.
    pub fn open_postgres(place: &PostgresPlace, folder: &Path, options: Options) -> Result<Self, StoreError> {
        // Connections have runtimes of their own, which cannot begin inside the caller's.
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| open(place, folder, options)).join();
            opened
                .map_err(|_| StoreError("opening the database panicked".to_owned()))?
                .map_err(StoreError::from)
        })
    }

    /// Changes the layout of a server's tables to that of another version of haft, up or down. Make a copy with
    /// `pg_dump` first. No process may use them meanwhile.
    pub fn change_postgres_layout(place: &PostgresPlace, to: i64) -> Result<(), StoreError> {
        std::thread::scope(|scope| {
            let change = || {
                let address = Address::parse(&place.address, &place.schema)?;
                let mut sql = PostgresSql::connect(&address, "haft layout")?;
                migrations::migrate(&mut sql, to, jiff::Timestamp::now().as_microsecond())
            };
            let changed = scope.spawn(change).join();
            changed
                .map_err(|_| StoreError("changing the layout panicked".to_owned()))?
                .map_err(StoreError::from)
        })
    }
}

fn open(place: &PostgresPlace, folder: &Path, options: Options) -> Result<DurableStore, Fault> {
    let address = Address::parse(&place.address, &place.schema)?;
    let instance = uuid::Uuid::new_v4().to_string();
    let mut writing = Connecting { address: address.clone(), instance: Some(instance.clone()) };
    let mut sql = writing.connect()?;
    let now = options.clock.now().as_microsecond();
    if place.schema == PostgresPlace::SCHEMA {
        not_elsewhere(sql.as_mut())?;
    }
    open::bring_up(sql.as_mut(), now, |_, found| match place.may_change_layout {
        true => Ok(()),
        false => Err(Fault::new(
            FaultKind::Refused,
            format!(
                "the tables have the layout {found}, and this haft needs {}; make a copy with `pg_dump`, then allow the \
                 change with `store.allow_layout_change`",
                migrations::LATEST
            ),
        )),
    })?;
    let chain_id = open::ensure_head(sql.as_mut(), &open::key_file(&options, folder), now)?;
    let reader = || Box::new(Connecting { address: address.clone(), instance: None }) as Box<dyn Connect>;
    DurableStore::found(Foundation {
        place: address.shown.clone(),
        folder: folder.to_owned(),
        writing: Box::new(writing),
        sql,
        reading: (0..READERS).map(|_| reader()).collect(),
        instance,
        lives: Arc::new(Locks),
        presence: Box::new(()),
        chain_id,
        options,
        file: None,
    })
}

/// Refuses to begin a new record where an earlier haft has one, in the schema that was the usual one then.
fn not_elsewhere(sql: &mut dyn Sql) -> Result<(), Fault> {
    if migrations::version(sql)? > 0 {
        return Ok(());
    }
    let question = "SELECT 1::BIGINT FROM pg_tables \
         WHERE schemaname::TEXT = 'haft' AND tablename::TEXT = 'haft_migrations'";
    match sql.query_one(question, &[])? {
        None => Ok(()),
        Some(_) => Err(Fault::new(
            FaultKind::Refused,
            "the tables of an earlier haft are in the schema haft, and this haft looks for them in agent_tools; move \
             them with `DROP SCHEMA IF EXISTS agent_tools; ALTER SCHEMA haft RENAME TO agent_tools`",
        )),
    }
}

/// Connects, and for the writer holds the lock that shows that this process lives.
struct Connecting {
    address: Address,
    instance: Option<String>,
}

impl Connect for Connecting {
    fn connect(&mut self) -> Result<Box<dyn Sql + Send>, Fault> {
        let name =
            self.instance.as_ref().map_or("haft reader".to_owned(), |instance| format!("haft {instance}"));
        let mut sql = PostgresSql::connect(&self.address, &name)?;
        if let Some(instance) = &self.instance {
            sql.hold(instance)?;
        }
        Ok(Box::new(sql))
    }
}

struct Locks;

impl Lives for Locks {
    fn lives(&self, sql: &mut dyn Sql, instance: &str) -> bool {
        postgres::lives(sql, instance)
    }
}
