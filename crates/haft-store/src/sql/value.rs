//! The little that haft asks of a database, so that its logic is written once.

use haft_core::port::StoreError;
use std::fmt;

/// A value on its way into the database.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Value::Null, Value::Text)
    }

    pub(crate) fn int(number: Option<i64>) -> Self {
        number.map_or(Value::Null, Value::Int)
    }
}

/// A value that came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    fn take(&mut self, place: usize) -> Cell {
        self.0.get_mut(place).map_or(Cell::Null, |cell| std::mem::replace(cell, Cell::Null))
    }

    pub(crate) fn opt_int(&mut self, place: usize) -> Result<Option<i64>, Fault> {
        match self.take(place) {
            Cell::Null => Ok(None),
            Cell::Int(number) => Ok(Some(number)),
            other => Err(unexpected(place, "a number", &other)),
        }
    }

    pub(crate) fn int(&mut self, place: usize) -> Result<i64, Fault> {
        self.opt_int(place)?.ok_or_else(|| unexpected(place, "a number", &Cell::Null))
    }

    pub(crate) fn real(&mut self, place: usize) -> Result<f64, Fault> {
        match self.take(place) {
            Cell::Real(number) => Ok(number),
            Cell::Int(number) => Ok(number as f64),
            other => Err(unexpected(place, "a number", &other)),
        }
    }

    pub(crate) fn opt_text(&mut self, place: usize) -> Result<Option<String>, Fault> {
        match self.take(place) {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            other => Err(unexpected(place, "a text", &other)),
        }
    }

    pub(crate) fn text(&mut self, place: usize) -> Result<String, Fault> {
        self.opt_text(place)?.ok_or_else(|| unexpected(place, "a text", &Cell::Null))
    }

    pub(crate) fn opt_blob(&mut self, place: usize) -> Result<Option<Vec<u8>>, Fault> {
        match self.take(place) {
            Cell::Null => Ok(None),
            Cell::Blob(bytes) => Ok(Some(bytes)),
            other => Err(unexpected(place, "bytes", &other)),
        }
    }

    pub(crate) fn blob(&mut self, place: usize) -> Result<Vec<u8>, Fault> {
        self.opt_blob(place)?.ok_or_else(|| unexpected(place, "bytes", &Cell::Null))
    }

    /// A column that another type is parsed from.
    pub(crate) fn parsed<T: std::str::FromStr>(&mut self, place: usize) -> Result<T, Fault> {
        let text = self.text(place)?;
        text.parse().map_err(|_| Fault::new(FaultKind::Corrupt, format!("column {place} holds `{text}`")))
    }

    pub(crate) fn opt_parsed<T: std::str::FromStr>(&mut self, place: usize) -> Result<Option<T>, Fault> {
        let Some(text) = self.opt_text(place)? else { return Ok(None) };
        let parsed = text
            .parse()
            .map_err(|_| Fault::new(FaultKind::Corrupt, format!("column {place} holds `{text}`")));
        parsed.map(Some)
    }
}

fn unexpected(place: usize, wanted: &str, got: &Cell) -> Fault {
    let got = match got {
        Cell::Null => "nothing",
        Cell::Int(_) | Cell::Real(_) => "a number",
        Cell::Text(_) => "a text",
        Cell::Blob(_) => "bytes",
    };
    Fault::new(FaultKind::Corrupt, format!("column {place} should hold {wanted} and holds {got}"))
}

/// What kind of thing went wrong: decides what is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Somebody else holds it.
    Busy,
    /// There is no room.
    Full,
    /// Reading or writing failed.
    Io,
    /// What is there makes no sense.
    Corrupt,
    /// The connection is gone.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "a file has no connection to lose"))]
    Lost,
    /// It is not possible as it was asked for. The only kind that concerns one job and not the store.
    Refused,
    /// Something else.
    Other,
}

/// The database could not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Fault { kind, text: text.into() }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Fault::new(FaultKind::Refused, text)
    }

    /// What to do about it, in words.
    fn way_out(&self) -> &'static str {
        match self.kind {
            FaultKind::Busy => {
                "another process holds the database; wait for it or end it, and see `haft doctor` for which one"
            }
            FaultKind::Full => {
                "make room on the disk, or let old outputs go with `haft gc`; nothing was lost"
            }
            FaultKind::Io => {
                "check the disk and who may use the state folder; nothing that was confirmed is lost"
            }
            FaultKind::Corrupt => {
                "move the database away and bring back a backup (`haft backup` makes them, and one is made before \
                 every change of its layout)"
            }
            FaultKind::Lost => "check that the database server is there; haft connects again by itself",
            FaultKind::Refused | FaultKind::Other => "",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.way_out() {
            "" => Ok(()),
            way_out => write!(f, "; {way_out}"),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        StoreError(fault.to_string())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Fault::new(FaultKind::Corrupt, format!("a stored document cannot be read: {error}"))
    }
}

/// Which words the database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "one of the two is built in"))]
    Sqlite,
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "one of the two is built in"))]
    Postgres,
}

/// A connection. Arguments are written `?1`, `?2`, …
pub(crate) trait Sql {
    fn dialect(&self) -> Dialect;

    /// Changes something; says how many rows.
    fn execute(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<u64, Fault>;

    /// Asks something.
    fn query(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<Vec<Row>, Fault>;

    /// Several statements without arguments.
    fn script(&mut self, sql: &str) -> Result<(), Fault>;

    /// Begins to write. Nobody else writes until the end.
    fn begin(&mut self) -> Result<(), Fault>;

    /// Makes everything since the beginning stay.
    fn commit(&mut self) -> Result<(), Fault>;

    /// Undoes everything since the beginning. Ends a [snapshot](Self::snapshot), too.
    fn roll_back(&mut self);

    /// From here to [`roll_back`](Self::roll_back) all answers are about the same moment, also while others write.
    fn snapshot(&mut self) -> Result<(), Fault>;

    /// What differs between the database and the layout of this haft, or between its tables and their indexes: such a
    /// difference can hide rows from questions, or show rows that are not there.
    fn difference(&mut self) -> Result<Option<String>, Fault>;

    /// Nothing is to be done for a while: time to put things in order.
    fn tidy(&mut self) {}

    /// The first row of an answer.
    fn query_one(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<Option<Row>, Fault> {
        Ok(self.query(sql, arguments)?.into_iter().next())
    }
}
