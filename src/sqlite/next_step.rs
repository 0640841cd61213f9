//! What to do next, behind errors that SQLite words: for policies whose errors have to say it.
//!
//! Names come from the schema as it is now. It changes no code and no words of SQLite's.

use super::fault::Fault;
use super::guard::Guarded;
use super::names::{near, table_names};
use super::objects::Catalog;
use super::shown::shown;
use crate::error::{ErrorCode, ToolError};
use crate::policy::Policy;

/// The fault with a next step behind SQLite's own words, under a policy for SELECT alone.
#[must_use]
pub fn added(guarded: &Guarded, policy: &Policy, fault: Fault) -> Fault {
    match fault {
        // What says what to do says it behind a semicolon.
        Fault::Error(error) if policy.selects_only && !error.message.contains("; ") => {
            let step = step(guarded, &error);
            Fault::Error(ToolError { message: format!("{}{step}", error.message), ..error })
        }
        other => other,
    }
}

fn step(guarded: &Guarded, error: &ToolError) -> String {
    match error.code {
        ErrorCode::UnknownTable => {
            let wanted = error.message.rsplit(": ").next().unwrap_or_default();
            let wanted = wanted.strip_prefix("main.").unwrap_or(wanted);
            let names = guarded.bounds().and_then(|bounds| {
                let all = guarded.in_read(|conn| Catalog::read(conn).map(|catalog| table_names(&catalog)))?;
                Ok(shown(&bounds.hidden, all))
            });
            match names {
                Ok(names) => format!("; {}; list_tables shows them all", near(wanted, &names)),
                Err(_) => "; list_tables shows those that exist".to_owned(),
            }
        }
        ErrorCode::UnknownColumn => "; describe_table shows the columns of a table".to_owned(),
        ErrorCode::SyntaxError => "; correct the SQL there and send it again".to_owned(),
        ErrorCode::SqlError => "; change the statement and send it again".to_owned(),
        _ => String::new(),
    }
}
