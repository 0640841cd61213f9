//! Names that agents give for tables and columns: the stored name, whatever the case, or an error with names
//! that are near.
//!
//! It reads nothing itself; the catalog and the columns come from `objects` and `introspect`.

use super::fault::Fault;
use super::introspect::Column;
use super::objects::Catalog;
use crate::error::ErrorCode;
use crate::policy::decide::ObjectKind;
use crate::render::one_line;

/// The stored name of a table or view and whether it is a view.
pub(super) fn find_table(catalog: &Catalog, table: &str) -> Option<(String, bool)> {
    catalog.entry(table).map(|entry| (entry.name.clone(), entry.kind == ObjectKind::View))
}

/// Names of tables and views that an agent may mean.
pub(super) fn table_names(catalog: &Catalog) -> Vec<String> {
    catalog.shown().into_iter().take(500).map(|entry| entry.name.clone()).collect()
}

/// The error for a table that is not there, with near names first.
pub(super) fn unknown_table(table: &str, names: &[String]) -> Fault {
    Fault::error(
        ErrorCode::UnknownTable,
        format!(
            "there is no table or view `{}`; {}; list_tables shows them all",
            one_line(table, 80),
            near(table, names)
        ),
    )
}

/// Near names, or some of the known ones.
pub(super) fn near(wanted: &str, names: &[String]) -> String {
    // A long text is near no name, and the comparison of two long ones takes for ever.
    const LONGEST: usize = 200;
    let comparable = |name: &str| name.len() <= LONGEST;
    let wanted = if comparable(wanted) { wanted.to_lowercase() } else { String::new() };
    let mut close: Vec<(f64, &String)> = names
        .iter()
        .filter(|name| comparable(name))
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = |name: &&String| format!("`{}`", one_line(name, 80));
    let list = |names: Vec<&String>| names.iter().map(shown).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        "there are none".to_owned()
    } else if close.is_empty() {
        format!("there are {}", list(names.iter().take(20).collect()))
    } else {
        let rest =
            names.iter().filter(|name| !close.iter().any(|(_, c)| c == name)).take(10).collect::<Vec<_>>();
        let near = list(close.iter().take(5).map(|(_, name)| *name).collect());
        if rest.is_empty() {
            format!("near is {near}")
        } else {
            format!("near is {near}; there are also {}", list(rest))
        }
    }
}

/// The stored name of a column, with near names in the error.
pub(super) fn real_name(columns: &[&Column], table: &str, wanted: &str) -> Result<String, Fault> {
    let exact = columns.iter().find(|column| column.name == wanted);
    let any_case = || columns.iter().find(|column| column.name.eq_ignore_ascii_case(wanted));
    exact.or_else(any_case).map(|column| column.name.clone()).ok_or_else(|| {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        Fault::error(
            ErrorCode::UnknownColumn,
            format!(
                "`{}` has no column `{}`; {}",
                one_line(table, 80),
                one_line(wanted, 80),
                near(wanted, &names)
            ),
        )
    })
}
