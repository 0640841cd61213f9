//! The entry in a client's TOML file: it goes in, comments and order stay. Which file it is, is not known here.

use super::Launch;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

/// The text with the server's table under `key`; other keys of a table that is there already stay.
///
/// # Errors
/// The text is no TOML, or something else stands in the way; in words.
pub(super) fn with_entry(text: &str, key: &str, launch: &Launch) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| format!("it is not TOML: {}", one_line(&error)))?;
    // The table of tables has no line of its own.
    let servers = table(document.as_table_mut(), key, true)?;
    let entry = table(servers, &launch.name, false)?;
    set(entry, "command", |there| there.as_str() == Some(&launch.program), || value(&launch.program));
    let same = |there: &Item| {
        let there =
            there.as_array().map(|items| items.iter().map(toml_edit::Value::as_str).collect::<Vec<_>>());
        there.is_some_and(|there| {
            there.iter().copied().eq(launch.arguments.iter().map(|word| Some(word.as_str())))
        })
    };
    set(entry, "args", same, || value(launch.arguments.iter().collect::<Array>()));
    Ok(document.to_string())
}

fn table<'a>(
    parent: &'a mut dyn TableLike,
    key: &str,
    implicit: bool,
) -> Result<&'a mut dyn TableLike, String> {
    if !parent.contains_key(key) {
        let mut table = Table::new();
        table.set_implicit(implicit);
        parent.insert(key, Item::Table(table));
    }
    let found = parent.get_mut(key).and_then(Item::as_table_like_mut);
    found.ok_or_else(|| format!("`{key}` is there and is not a table"))
}

fn set(table: &mut dyn TableLike, key: &str, same: impl Fn(&Item) -> bool, item: impl Fn() -> Item) {
    match table.get_mut(key) {
        Some(there) if same(there) => {}
        Some(there) => {
            // The blank and the comment around the old value stay.
            let around = there.as_value().map(|value| value.decor().clone());
            *there = item();
            if let (Some(around), Some(value)) = (around, there.as_value_mut()) {
                *value.decor_mut() = around;
            }
        }
        None => {
            table.insert(key, item());
        }
    }
}

/// The library's message is a picture of several lines.
fn one_line(error: &toml_edit::TomlError) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    format!("{first}: {}", error.message().lines().collect::<Vec<_>>().join(" "))
}
