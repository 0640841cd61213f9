//! Streams the rows of a table through a search pattern.
//!
//! The SELECT is composed of quoted names and the agent's WHERE expression, which must be one expression
//! by itself; it is compiled and judged like any agent SQL. The pattern engine is `search/`.

use super::fault::Fault;
use super::guard::Guarded;
use super::introspect::{Column, columns, rowid_alias};
use super::names::{find_table, real_name, table_names, unknown_table};
use super::objects::{Catalog, quoted};
use super::query::cell_of;
use super::search_beside;
use super::shown::{rowid_is_hidden, shown, shown_columns};
use super::watch::Stop;
use crate::error::{ErrorCode, ToolError};
use crate::policy::Policy;
use crate::policy::decide::{ObjectKind, Objects};
use crate::render::{Caps, Cell};
use crate::search::{Pattern, SearchEnd, SearchReport};
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The regular expression or literal.
    pub pattern: String,
    /// Whether it is a literal.
    pub fixed_strings: bool,
    /// Whether letter case is ignored.
    pub ignore_case: bool,
    /// The table or view.
    pub table: String,
    /// Columns to search; empty for all.
    pub columns: Vec<String>,
    /// An SQL expression that candidate rows must satisfy.
    pub filter: Option<String>,
    /// The column that names a row; needed for views.
    pub key_column: Option<String>,
    /// Matches to show at most.
    pub limit: u64,
    /// The greatest limit a call may ask for.
    pub max_rows: u64,
    /// Characters of context on each side of a match.
    pub context_chars: usize,
    /// Candidate rows to look at, at most; 0 for all.
    pub max_candidates: u64,
    /// Caps of the text.
    pub caps: Caps,
}

impl Search {
    /// The compiled pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compiled(&self) -> Result<Pattern, ToolError> {
        Pattern::new(&self.pattern, self.fixed_strings, self.ignore_case)
    }
}

/// Runs a search.
///
/// # Errors
/// Unknown table or column, a bad WHERE, refusals, stops, SQLite's errors.
pub fn run(
    guarded: &Guarded,
    policy: &'static Policy,
    search: &Search,
    before_log: &mut dyn FnMut(),
) -> Result<super::query::TextResult, Fault> {
    let pattern = search.compiled()?;
    let plan = Plan::of(guarded, search)?;
    if let Some(filter) = &search.filter {
        check_filter(guarded, policy, filter, &plan)?;
    }
    let sql = plan.select(search.filter.as_deref());
    let mut compiled = guarded.compile(policy, &sql)?;
    if compiled.judged.facts.reads_log {
        before_log();
    }
    let keys = plan.key.len();
    let mut report = SearchReport::new(plan.searched.len(), search.limit, search.context_chars, search.caps);
    let mut end = SearchEnd { maximum: search.max_rows, candidates_cut: None };
    if let Some(found) = search_beside::run(guarded, policy, search, &plan, &pattern)? {
        found.into_iter().for_each(|found| report.take(found, &plan.searched));
        return Ok(text_of(report, end));
    }
    let _running = guarded.enter(&compiled.judged);
    let mut rows = compiled.statement.raw_query();
    let mut looks = Looks::default();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(guarded.fault(&error)),
        };
        if search.max_candidates > 0 && report.candidates() >= search.max_candidates {
            end.candidates_cut = Some(search.max_candidates);
            break;
        }
        report.begin_row();
        let mut look = || -> rusqlite::Result<()> {
            let single = [row.get_ref(0).map(cell_of)?];
            let composite: Vec<Cell<'_>>;
            let key: &[Cell<'_>] = if keys == 1 {
                &single
            } else {
                composite =
                    (0..keys).map(|at| row.get_ref(at).map(cell_of)).collect::<rusqlite::Result<_>>()?;
                &composite
            };
            for (at, column) in plan.searched.iter().enumerate() {
                looks.value(row.get_ref(keys + at)?, |text| report.value(&pattern, key, column, text));
            }
            Ok(())
        };
        look().map_err(|error| guarded.fault(&error))?;
        looks.go_on(guarded)?;
    }
    Ok(text_of(report, end))
}

fn text_of(report: SearchReport, end: SearchEnd) -> super::query::TextResult {
    let rendered = report.finish(end);
    super::query::TextResult { text: rendered.text, rows: rendered.rows }
}

/// When to look at the watch: the pattern engine runs between SQLite's own looks at it.
#[derive(Debug, Default)]
pub(super) struct Looks {
    rows: u32,
    bytes: usize,
}

impl Looks {
    /// Hands a value that can match to the pattern engine.
    pub(super) fn value(&mut self, value: ValueRef<'_>, mut look: impl FnMut(&[u8])) {
        match value {
            ValueRef::Text(text) => {
                self.bytes += text.len();
                look(text);
            }
            ValueRef::Integer(value) => look(value.to_string().as_bytes()),
            ValueRef::Real(value) => look(format!("{value:?}").as_bytes()),
            ValueRef::Null | ValueRef::Blob(_) => {}
        }
    }

    /// A row is done: stops where the watch says so, asked every few rows, sooner where they are large.
    pub(super) fn go_on(&mut self, guarded: &Guarded) -> Result<(), Fault> {
        self.rows += 1;
        if self.rows < 64 && self.bytes < 64 * 1024 {
            return Ok(());
        }
        *self = Self::default();
        if guarded.watch().must_stop() {
            return Err(Fault::Stopped(guarded.watch().stopped().unwrap_or(Stop::Deadline)));
        }
        Ok(())
    }
}

/// What to select.
pub(super) struct Plan {
    pub(super) table: String,
    /// SQL expressions of the key.
    key: Vec<String>,
    /// The name of the rowid, where that alone is the key.
    pub(super) rowid: Option<&'static str>,
    pub(super) searched: Vec<String>,
}

impl Plan {
    fn of(guarded: &Guarded, search: &Search) -> Result<Self, Fault> {
        let (found, names, catalog) = guarded.in_read(|conn| {
            let catalog = Catalog::read(conn)?;
            let found = match find_table(&catalog, &search.table) {
                Some((name, view)) => Some((columns(conn, &name)?, name, view)),
                None => None,
            };
            let names = if found.is_none() { table_names(&catalog) } else { Vec::new() };
            Ok((found, names, catalog))
        })?;
        let bounds = guarded.bounds()?;
        let hidden = &bounds.hidden;
        let Some((columns, table, view)) = found else {
            return Err(unknown_table(&search.table, &shown(hidden, names)));
        };
        hidden.must_show(&table)?;
        for name in search.columns.iter().chain(&search.key_column) {
            hidden.must_show_column(&table, name)?;
        }
        let all = columns.clone();
        let columns = shown_columns(hidden, &table, columns);
        let visible: Vec<&Column> = columns.iter().filter(|column| column.hidden != 1).collect();
        let searched: Vec<String> = if search.columns.is_empty() {
            visible.iter().filter(|c| may_hold_text(&c.declared_type)).map(|c| c.name.clone()).collect()
        } else {
            search
                .columns
                .iter()
                .map(|name| real_name(&visible, &table, name))
                .collect::<Result<Vec<_>, _>>()?
        };
        if searched.is_empty() {
            return Err(ToolError::arguments(format!(
                "`{table}` has no column that is declared to hold text: name the ones to search in `columns`"
            ))
            .into());
        }
        let mut rowid = None;
        let key = match &search.key_column {
            Some(name) => vec![quoted(&real_name(&visible, &table, name)?)],
            None if view => {
                return Err(ToolError::arguments(format!(
                    "`{table}` is a view and has no rowid: name the column that identifies a row in `key_column`"
                ))
                .into());
            }
            None if catalog.entry(&table).is_some_and(|entry| entry.without_rowid) => primary_key(&columns),
            // The rowid is the value of an INTEGER PRIMARY KEY, and may be hidden with it.
            None if rowid_is_hidden(hidden, &table, &all) => Vec::new(),
            None => match rowid_alias(&columns) {
                Some(alias) => {
                    // Only an ordinary table has its rows in the order of their rowids.
                    rowid = (catalog.kind(&table) == Some(ObjectKind::Table)).then_some(alias);
                    vec![alias.to_owned()]
                }
                None => primary_key(&columns),
            },
        };
        if key.is_empty() {
            return Err(ToolError::arguments(format!(
                "`{table}` shows nothing that identifies a row by itself: name the column that identifies a row in `key_column`"
            ))
            .into());
        }
        Ok(Self { table, key, rowid, searched })
    }

    /// Key and searched columns, as SQL.
    pub(super) fn columns(&self) -> String {
        let columns = self.key.iter().cloned().chain(self.searched.iter().map(|name| quoted(name)));
        columns.collect::<Vec<_>>().join(", ")
    }

    fn select(&self, filter: Option<&str>) -> String {
        let columns = self.columns();
        let table = quoted(&self.table);
        match filter {
            // The line break ends a comment that the expression may close with.
            Some(filter) => format!("SELECT {columns} FROM main.{table} WHERE (\n{filter}\n)"),
            None => format!("SELECT {columns} FROM main.{table}"),
        }
    }
}

/// The expression must stand on its own within a CASE, too, where no parenthesis is open. Text that closes the
/// one behind WHERE (`1) LIMIT (5`, `1) OR (1`) does not fit in there, and what fits in there alone
/// (`1 THEN 2 WHEN 3`) does not fit behind WHERE.
fn check_filter(guarded: &Guarded, policy: &'static Policy, filter: &str, plan: &Plan) -> Result<(), Fault> {
    if filter.trim().is_empty() {
        return Err(ToolError::arguments("`where` is empty: leave it out or give an SQL expression").into());
    }
    let alone = format!("SELECT CASE WHEN\n{filter}\nTHEN 1 END FROM main.{}", quoted(&plan.table));
    let compiled = guarded.compile(policy, &alone).map_err(|fault| match fault {
        Fault::Error(error)
            if error.code == ErrorCode::SyntaxError || error.code == ErrorCode::MultipleStatements =>
        {
            ToolError::new(error.code, format!("`where` must be one SQL expression: {}", error.message))
                .into()
        }
        other => other,
    })?;
    if compiled.statement.column_count() != 1 {
        return Err(ToolError::arguments("`where` must be one SQL expression").into());
    }
    if compiled.statement.parameter_count() > 0 {
        return Err(ToolError::arguments("`where` takes no parameters: write the values into it").into());
    }
    Ok(())
}

/// Whether a column of this declared type is searched when none is named: one of INTEGER or REAL
/// affinity is not (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
fn may_hold_text(declared_type: &str) -> bool {
    let declared = declared_type.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    let integer = has("INT");
    let real = !has("CHAR") && !has("CLOB") && !has("TEXT") && (has("REAL") || has("FLOA") || has("DOUB"));
    !integer && !real
}

fn primary_key(columns: &[Column]) -> Vec<String> {
    let mut key: Vec<&Column> = columns.iter().filter(|column| column.primary_key > 0).collect();
    key.sort_by_key(|column| column.primary_key);
    key.iter().map(|column| quoted(&column.name)).collect()
}
