//! A narrowing applied to one schema: which tables and columns are hidden there, and the verdict over
//! single actions.
//!
//! Pure: `sqlite/hiding.rs` finds out what depends on what is hidden. A bound only ever refuses.

use super::narrowing::Narrowing;
use super::{Action, ActionKind, Policy, Refusal};
use std::collections::BTreeMap;

/// What is hidden in one schema. Names are in ASCII lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    tables: BTreeMap<String, Thing>,
    columns: BTreeMap<String, BTreeMap<String, Thing>>,
    views: BTreeMap<String, Thing>,
}

/// One hidden thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// Its name as stored.
    pub name: String,
    /// Why it is hidden, where the file does not name it itself: "it is made from `people.email`".
    pub because: Option<String>,
}

/// What a policy file takes away, on one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The file.
    pub narrowing: Narrowing,
    /// What it hides.
    pub hidden: Hidden,
}

impl Hidden {
    /// Whether nothing is hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.columns.is_empty()
    }

    /// How many tables, columns and views there are, to tell when nothing more is found.
    #[must_use]
    pub fn len(&self) -> usize {
        let columns: usize = self.columns.values().map(BTreeMap::len).sum();
        self.tables.len() + columns + self.views.len()
    }

    /// Hides a table, a view or a virtual table as a whole.
    pub fn hide_table(&mut self, name: &str, because: Option<String>) {
        let thing = Thing { name: name.to_owned(), because };
        self.tables.entry(name.to_ascii_lowercase()).or_insert(thing);
    }

    /// Hides a column.
    pub fn hide_column(&mut self, table: &str, column: &str, because: Option<String>) {
        let thing = Thing { name: column.to_owned(), because };
        let of_table = self.columns.entry(table.to_ascii_lowercase()).or_default();
        of_table.entry(column.to_ascii_lowercase()).or_insert(thing);
    }

    /// Notes a view that reads something hidden: nobody can use it, so nobody is shown it.
    pub fn note_view(&mut self, name: &str, because: String) {
        let thing = Thing { name: name.to_owned(), because: Some(because) };
        self.views.entry(name.to_ascii_lowercase()).or_insert(thing);
    }

    /// The table, view or virtual table of this name, if it is hidden as a whole.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Thing> {
        self.tables.get(&name.to_ascii_lowercase())
    }

    /// The column, if it is hidden by itself.
    #[must_use]
    pub fn column(&self, table: &str, column: &str) -> Option<&Thing> {
        self.columns.get(&table.to_ascii_lowercase())?.get(&column.to_ascii_lowercase())
    }

    /// The hidden columns of a table, in order of their names.
    pub fn columns_of(&self, table: &str) -> impl Iterator<Item = &Thing> {
        self.columns.get(&table.to_ascii_lowercase()).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether lists leave out the table or view: hidden as a whole, or a view over something hidden.
    #[must_use]
    pub fn is_left_out(&self, name: &str) -> bool {
        self.table(name).is_some() || self.views.contains_key(&name.to_ascii_lowercase())
    }

    /// Every hidden table and column with the reason, for people: `(name, reason)`.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Option<String>)> {
        let whole = self.tables.values().map(|thing| (thing.name.clone(), thing.because.clone()));
        let columns = self.columns.iter().flat_map(|(table, columns)| {
            columns.values().map(move |thing| (format!("{table}.{}", thing.name), thing.because.clone()))
        });
        let views = self.views.values().map(|thing| (thing.name.clone(), thing.because.clone()));
        whole.chain(columns).chain(views).collect()
    }

    /// The table that a join by NATURAL or USING in this text might compare in secret.
    ///
    /// SQLite reports no read of the columns that such a join compares. So this one question is answered
    /// from the text, and on the safe side: quotes, strings and comments count like any other text.
    #[must_use]
    pub fn joined(&self, text: &str) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        let text = spread(text);
        let (natural, using) = (names(&text, "natural"), names(&text, "using"));
        // There the word names a module.
        if !natural && (!using || text.starts_with("create virtual table ")) {
            return None;
        }
        let whole = self.tables.values().map(|thing| &thing.name);
        let found = whole.chain(self.views.values().map(|thing| &thing.name));
        let found = found.map(String::as_str).find(|name| names(&text, &spread(name)));
        found.or_else(|| {
            let joined = self.columns.iter().find(|(table, columns)| {
                names(&text, &spread(table))
                    && (natural || columns.values().any(|column| names(&text, &spread(&column.name))))
            });
            joined.map(|(table, _)| table.as_str())
        })
    }

    /// Whether the text, of a view or trigger say, names this table or column.
    #[must_use]
    pub fn mentions(text: &str, name: &str) -> bool {
        names(&spread(text), &spread(name))
    }

    /// Whether a table or view may be named.
    ///
    /// # Errors
    /// The refusal where it is hidden.
    pub fn must_show(&self, name: &str) -> Result<(), Refusal> {
        let thing = self.table(name).or_else(|| self.views.get(&name.to_ascii_lowercase()));
        thing.map_or(Ok(()), |thing| {
            let (object, because) = (thing.name.clone(), thing.because.clone());
            Err(Refusal::Hidden { object, because, through: None })
        })
    }

    /// Whether a column may be named.
    ///
    /// # Errors
    /// The refusal where it is hidden.
    pub fn must_show_column(&self, table: &str, column: &str) -> Result<(), Refusal> {
        self.column(table, column).map_or(Ok(()), |thing| {
            let (object, because) = (format!("{table}.{}", thing.name), thing.because.clone());
            Err(Refusal::Hidden { object, because, through: None })
        })
    }

    /// The first hidden table, or column of a table, that both questions say yes to: `` `people.email` ``.
    #[must_use]
    pub fn find_source(
        &self,
        is_table: impl Fn(&str) -> bool,
        is_column: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let of_table = |(table, columns): (&String, &BTreeMap<String, Thing>)| {
            let column = columns.values().find(|thing| is_table(table) && is_column(&thing.name))?;
            Some(format!("`{table}.{}`", column.name))
        };
        let whole = || self.tables.values().find(|thing| is_table(&thing.name));
        self.columns.iter().find_map(of_table).or_else(|| whole().map(|thing| format!("`{}`", thing.name)))
    }

    /// Whether the action reads or changes something hidden, and what.
    fn judge(&self, action: &Action) -> Result<(), Refusal> {
        let through = action.accessor.clone();
        let whole = |name: &str| {
            self.table(name).map_or(Ok(()), |thing| {
                let (object, because) = (thing.name.clone(), thing.because.clone());
                Err(Refusal::Hidden { object, because, through: through.clone() })
            })
        };
        // SQLite's own round over every table.
        if matches!(action.kind, ActionKind::Analyze | ActionKind::Reindex) {
            return Ok(());
        }
        if let Some(accessor) = &action.accessor {
            whole(accessor)?;
        }
        let (table, column) = match action.kind {
            ActionKind::Pragma | ActionKind::Function => return Ok(()),
            ActionKind::Read | ActionKind::Update => (action.object.as_str(), action.detail.as_deref()),
            _ => (table_of(action), None),
        };
        whole(table)?;
        if let Some(thing) = column.and_then(|column| self.column(table, column)) {
            let (object, because) = (format!("{table}.{}", thing.name), thing.because.clone());
            return Err(match action.kind {
                ActionKind::Update => Refusal::HiddenUpdate { object },
                _ => Refusal::Hidden { object, because, through },
            });
        }
        if matches!(action.kind, ActionKind::AlterTable | ActionKind::CreateTrigger)
            && let Some(thing) = self.columns_of(table).min_by_key(|thing| thing.because.is_some())
        {
            let (table, column) = (table.to_owned(), thing.name.clone());
            return Err(Refusal::HoldsHidden { kind: action.kind, table, column });
        }
        Ok(())
    }
}

impl Bounds {
    /// Whether the file lets the action pass under the policy, as far as a single action can tell.
    ///
    /// # Errors
    /// The refusal.
    pub fn at_once(&self, policy: &Policy, action: &Action) -> Result<(), Refusal> {
        let name = || action.object.to_ascii_lowercase();
        match action.kind {
            ActionKind::Function if self.narrowing.refuses_function(policy.id, &name()) => {
                return Err(Refusal::NarrowedFunction { name: name() });
            }
            ActionKind::Pragma if self.narrowing.refuses_pragma(policy.id, &name()) => {
                return Err(Refusal::NarrowedPragma { name: name() });
            }
            // As a table-valued function it is heard of only while the statement runs. FTS5 asks for the data version
            // at every search.
            ActionKind::Pragma
                if self.narrowing.refuses(policy.id, ActionKind::Pragma) && name() != "data_version" =>
            {
                return Err(Refusal::Narrowed { kind: ActionKind::Pragma, through: None });
            }
            ActionKind::CreateTable | ActionKind::CreateView | ActionKind::CreateVtable => {
                // A table that is not there yet would be hidden the moment it is.
                let hides = |object: &str| {
                    let mut whole = self.narrowing.hidden.iter().filter(|hidden| hidden.columns.is_empty());
                    whole.any(|hidden| hidden.table.matches(object))
                };
                let of_sqlite = action.object.get(..7).is_some_and(|s| s.eq_ignore_ascii_case("sqlite_"));
                if !of_sqlite && hides(&action.object) {
                    let object = action.object.clone();
                    return Err(Refusal::Hidden { object, because: None, through: None });
                }
            }
            _ => {}
        }
        self.hidden.judge(action)
    }

    /// Whether the policy allows this kind of action and the file does not refuse it.
    ///
    /// # Errors
    /// The refusal.
    pub fn allows(&self, policy: &Policy, action: &Action) -> Result<(), Refusal> {
        if !policy.actions.contains(&action.kind) {
            return Err(Refusal::action(action));
        }
        if self.narrowing.refuses(policy.id, action.kind) {
            return Err(Refusal::Narrowed { kind: action.kind, through: action.accessor.clone() });
        }
        Ok(())
    }

    /// Whether the file protects what the action changes.
    ///
    /// # Errors
    /// The refusal.
    pub fn protects(&self, action: &Action) -> Result<(), Refusal> {
        // ANALYZE, CREATE and their like write SQLite's own tables; nobody else can.
        let own = |name: &str| name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
        let protects = |name: &&str| !own(name) && self.narrowing.protects(name);
        let found = [action.object.as_str(), table_of(action)].into_iter().find(protects);
        found.map_or(Ok(()), |object| Err(Refusal::PolicyProtected { object: object.to_owned() }))
    }
}

/// The table that an action is about: of an index or trigger, the one it belongs to.
fn table_of(action: &Action) -> &str {
    let belongs = matches!(
        action.kind,
        ActionKind::CreateIndex | ActionKind::CreateTrigger | ActionKind::DropIndex | ActionKind::DropTrigger
    );
    match &action.detail {
        Some(table) if belongs => table,
        _ => &action.object,
    }
}

/// In lower case, with one space for every run of spaces and quotes.
fn spread(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | '`' | '[' | ']'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a name stands in a text on its own, not as a part of a longer one. Both are spread.
fn names(text: &str, name: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    !name.is_empty()
        && text.match_indices(name).any(|(at, found)| {
            let before = text.get(..at).and_then(|start| start.chars().next_back());
            let after = text.get(at + found.len()..).and_then(|rest| rest.chars().next());
            !before.is_some_and(in_name) && !after.is_some_and(in_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_that_hides_its_columns_is_found_in_any_spelling() {
        let mut hidden = Hidden::default();
        hidden.hide_column("people", "e mail", None);
        hidden.hide_table("My \"Secrets\"", None);
        for (text, found) in [
            ("SELECT 1 FROM a NATURAL JOIN people", true),
            ("select 1 from a natural/**/join[People]", true),
            ("SELECT 1 FROM a JOIN \"people\"USING(\"e mail\")", true),
            ("SELECT $a(') FROM a JOIN 'people' USING ('E MAIL') WHERE $b(')", true),
            ("SELECT 1 FROM a JOIN people USING (id)", false),
            ("SELECT 1 FROM a JOIN peoples USING (\"e mail\")", false),
            ("SELECT naturally FROM people", false),
            ("SELECT 1 FROM a NATURAL JOIN \"my \"\"secrets\"\"\"", true),
            ("SELECT 1 FROM a NATURAL JOIN b", false),
        ] {
            assert_eq!(hidden.joined(text).is_some(), found, "{text}");
        }
        assert_eq!(Hidden::default().joined("SELECT 1 FROM a NATURAL JOIN people"), None);
    }
}
