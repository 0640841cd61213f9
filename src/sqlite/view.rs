//! Creates a view for an agent: one SELECT, checked by compiling, with its description inside.
//!
//! The text of the view is composed here and compiled again as a whole; it is accepted only if it does
//! nothing but create that view.

use super::fault::Fault;
use super::objects::{Catalog, quoted, text};
use super::write::{Moments, Writer};
use crate::audit::AuditRow;
use crate::error::ErrorCode;
use crate::policy::decide::{ObjectKind, Objects};
use crate::policy::{ActionKind, Policy, Refusal};
use std::sync::Arc;
use std::time::Instant;

/// A view to create.
#[derive(Clone, Copy, Debug)]
pub struct NewView<'a> {
    /// Its name, already checked to be a plain identifier.
    pub name: &'a str,
    /// The SELECT.
    pub select_sql: &'a str,
    /// What it is for; line breaks are collapsed.
    pub description: Option<&'a str>,
    /// Whether a view of that name may be replaced.
    pub replace: bool,
    /// The audit row, but for duration and the old definition.
    pub audit: &'a AuditRow,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CreatedView {
    /// The definition it replaced.
    pub replaced: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

impl Writer {
    /// Creates or replaces a view, with its audit row in the same transaction.
    ///
    /// # Errors
    /// Refusals, SQLite's errors, a name that is taken.
    pub fn create_view(
        &mut self,
        policy: &'static Policy,
        view: NewView<'_>,
        moments: &mut dyn Moments,
    ) -> Result<CreatedView, Fault> {
        let began = Instant::now();
        if self.guarded().protected().owns(view.name) {
            return Err(Refusal::Protected { object: view.name.to_owned() }.into());
        }
        let bounds = self.guarded().bounds()?;
        if bounds.narrowing.protects(view.name) {
            return Err(Refusal::PolicyProtected { object: view.name.to_owned() }.into());
        }
        let select = self.checked_select(policy, view.select_sql)?;
        self.begin()?;
        let result = self.create_in_transaction(policy, view, &select, moments, began);
        if result.is_err() {
            self.roll_back();
        }
        result
    }

    /// The SELECT's text without its terminator.
    pub(super) fn checked_select(&self, policy: &'static Policy, sql: &str) -> Result<String, Fault> {
        let compiled = self.guarded().compile(policy, sql)?;
        let judged = &compiled.judged;
        let plain = judged.readonly
            && !judged.facts.pragma
            && !judged.explain
            && judged.facts.structural.is_none()
            && compiled.statement.column_count() > 0;
        if !plain {
            return Err(Refusal::NotSelect.into());
        }
        if compiled.statement.parameter_count() > 0 {
            return Err(Fault::error(
                ErrorCode::InvalidParams,
                "a view cannot have parameters: write the values into `select_sql`",
            ));
        }
        // Without parameters the expanded text is the statement's own text, up to its end.
        let text = compiled.statement.expanded_sql().unwrap_or_else(|| sql.to_owned());
        let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == ';').to_owned();
        drop(compiled);
        // Whatever follows it must be a statement of its own, or the text ends within a comment, which
        // would hide what is shown behind the view's definition.
        match self.guarded().compile(policy, &format!("{text}\n;SELECT 1")) {
            Err(Fault::Error(error)) if error.code == ErrorCode::MultipleStatements => Ok(text),
            Err(fault) => Err(fault),
            Ok(_) => Err(Fault::error(
                ErrorCode::SyntaxError,
                "`select_sql` ends in a comment that is not closed: close it with `*/`",
            )),
        }
    }

    /// A view's INSTEAD OF triggers would go with it, and nothing would keep their text.
    fn refuse_triggers(&self, name: &str) -> Result<(), Fault> {
        let sql =
            "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE";
        let found = self
            .guarded()
            .trusted()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map([name], |row| text(row, 0))?.collect())
            .map_err(|error| self.guarded().fault(&error))?;
        let found: Vec<String> = found;
        match found.first() {
            None => Ok(()),
            Some(trigger) => Err(Fault::error(
                ErrorCode::Refused,
                format!(
                    "the view `{name}` has the trigger `{trigger}`, which replacing it would drop; drop the trigger first, or choose another name"
                ),
            )),
        }
    }

    fn create_in_transaction(
        &mut self,
        policy: &'static Policy,
        view: NewView<'_>,
        select: &str,
        moments: &mut dyn Moments,
        began: Instant,
    ) -> Result<CreatedView, Fault> {
        let conn = self.guarded().trusted();
        let fault = |error: rusqlite::Error| self.guarded().fault(&error);
        let name = quoted(view.name);
        let replaced = match Catalog::read(conn).map_err(fault)?.kind(view.name) {
            None => None,
            Some(ObjectKind::View) if view.replace => {
                let sql =
                    "SELECT sql FROM main.sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE";
                let old = conn.query_row(sql, [view.name], |row| text(row, 0)).map_err(fault)?;
                self.refuse_triggers(view.name)?;
                conn.execute_batch(&format!("DROP VIEW main.{name}")).map_err(fault)?;
                Some(old)
            }
            Some(ObjectKind::View) => {
                return Err(Fault::Exists { kind: "view".to_owned(), name: view.name.to_owned() });
            }
            Some(_) => return Err(Fault::Exists { kind: "table".to_owned(), name: view.name.to_owned() }),
        };
        let bytes = self.schema_bytes()?;
        let text = definition(view.name, view.description, select);
        let compiled = self.guarded().compile(policy, &text)?;
        let creates = matches!(&compiled.judged.facts.structural,
            Some((ActionKind::CreateView, made)) if made.eq_ignore_ascii_case(view.name));
        if !creates {
            return Err(Refusal::NotSelect.into());
        }
        let judged = Arc::clone(&compiled.judged);
        {
            let mut compiled = compiled;
            let _running = self.guarded().enter(&judged);
            compiled.statement.raw_execute().map_err(fault)?;
        }
        self.check_schema_size(bytes)?;
        // Compiling a SELECT from it finds what CREATE VIEW does not look for: a view that names itself.
        let columns = conn
            .prepare(&format!("SELECT * FROM main.{name}"))
            .map(|statement| super::query::column_names(&statement))
            .map_err(fault)?;
        let mut audit = view.audit.clone();
        if let Some(old) = &replaced {
            audit.detail = Some(with_old_definition(audit.detail.as_deref(), old));
        }
        audit.rows = Some(0);
        audit.duration_ms += i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.watch_out(moments, 0);
        self.write_audit(&audit, &judged)?;
        self.commit()?;
        Ok(CreatedView { replaced, columns })
    }
}

/// `CREATE VIEW name AS`, the description as a comment of one line, the SELECT.
fn definition(name: &str, description: Option<&str>, select: &str) -> String {
    let described = description.map(one_line).filter(|text| !text.is_empty());
    match described {
        Some(text) => format!("CREATE VIEW {name} AS\n-- description: {text}\n{select}"),
        None => format!("CREATE VIEW {name} AS\n{select}"),
    }
}

/// Whitespace of any kind, control characters and NUL become single spaces, so that the text cannot
/// leave its comment.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn with_old_definition(detail: Option<&str>, old: &str) -> String {
    let mut map: serde_json::Map<String, serde_json::Value> =
        detail.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    map.insert("replaced".to_owned(), serde_json::Value::String(old.to_owned()));
    serde_json::Value::Object(map).to_string()
}
