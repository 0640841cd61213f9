//! The authorizer's vocabulary: every action code of SQLite by its name in policy.yaml.
//!
//! It holds names only; what is allowed stands in policy.yaml.

use serde::{Deserialize, Serialize};

macro_rules! actions {
    ($($variant:ident $name:literal,)*) => {
        /// A kind of action that SQLite's authorizer reports (<https://sqlite.org/c3ref/c_alter_table.html>).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ActionKind {
            $(#[doc = concat!("`", $name, "` in policy.yaml.")] $variant,)*
        }

        impl ActionKind {
            /// Every kind, in the order of this list.
            pub const ALL: &'static [ActionKind] = &[$(ActionKind::$variant,)*];

            /// The name in policy.yaml.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(ActionKind::$variant => $name,)* }
            }

            /// The kind of this name in policy.yaml.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(ActionKind::$variant),)* _ => None }
            }

            /// The variant's Rust name, for generated code.
            #[must_use]
            pub fn variant(self) -> &'static str {
                match self { $(ActionKind::$variant => stringify!($variant),)* }
            }
        }
    };
}

actions! {
    Select "select",
    Read "read",
    Function "function",
    Recursive "recursive",
    Pragma "pragma",
    Insert "insert",
    Update "update",
    Delete "delete",
    CreateTable "create_table",
    CreateIndex "create_index",
    CreateView "create_view",
    CreateTrigger "create_trigger",
    CreateVtable "create_vtable",
    DropTable "drop_table",
    DropIndex "drop_index",
    DropView "drop_view",
    DropTrigger "drop_trigger",
    DropVtable "drop_vtable",
    AlterTable "alter_table",
    Analyze "analyze",
    Reindex "reindex",
    CreateTempTable "create_temp_table",
    CreateTempIndex "create_temp_index",
    CreateTempView "create_temp_view",
    CreateTempTrigger "create_temp_trigger",
    DropTempTable "drop_temp_table",
    DropTempIndex "drop_temp_index",
    DropTempView "drop_temp_view",
    DropTempTrigger "drop_temp_trigger",
    Transaction "transaction",
    Savepoint "savepoint",
    Attach "attach",
    Detach "detach",
    Unknown "unknown",
}

impl ActionKind {
    /// Whether it changes anything that stays behind. Pragmas do not: a policy can only name reading ones.
    #[must_use]
    pub fn writes(self) -> bool {
        // Every kind by name and no wildcard: a new one must be judged before this compiles.
        match self {
            Self::Select | Self::Read | Self::Function | Self::Recursive | Self::Pragma => false,
            Self::Insert | Self::Update | Self::Delete => true,
            Self::CreateTable | Self::CreateIndex | Self::CreateView | Self::CreateTrigger => true,
            Self::CreateVtable | Self::Analyze | Self::Reindex => true,
            Self::DropTable | Self::DropIndex | Self::DropView | Self::DropTrigger => true,
            Self::DropVtable | Self::AlterTable => true,
            Self::CreateTempTable | Self::CreateTempIndex => true,
            Self::CreateTempView | Self::CreateTempTrigger => true,
            Self::DropTempTable | Self::DropTempIndex | Self::DropTempView | Self::DropTempTrigger => true,
            Self::Transaction | Self::Savepoint | Self::Attach | Self::Detach | Self::Unknown => true,
        }
    }

    /// Whether it can delete or overwrite what was there before. An INSERT can: `INSERT OR REPLACE` is
    /// reported as an Insert alone. So can a trigger, whose body runs later under other names.
    #[must_use]
    pub fn can_lose(self) -> bool {
        match self {
            Self::Select | Self::Read | Self::Function | Self::Recursive | Self::Pragma => false,
            Self::CreateTable | Self::CreateIndex | Self::CreateView | Self::CreateVtable => false,
            Self::Analyze | Self::Reindex => false,
            Self::CreateTempTable | Self::CreateTempIndex | Self::CreateTempView => false,
            Self::Insert | Self::Update | Self::Delete => true,
            Self::DropTable | Self::DropIndex | Self::DropView | Self::DropTrigger => true,
            Self::DropVtable | Self::AlterTable => true,
            Self::CreateTrigger | Self::CreateTempTrigger => true,
            Self::DropTempTable | Self::DropTempIndex | Self::DropTempView | Self::DropTempTrigger => true,
            Self::Transaction | Self::Savepoint | Self::Attach | Self::Detach | Self::Unknown => true,
        }
    }
}

/// One thing a compiled statement does, as the authorizer reported it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    /// The kind.
    pub kind: ActionKind,
    /// The authorizer's third argument: most often a table, index or pragma name.
    pub object: String,
    /// The fourth: a column, the table of an index or trigger, a pragma's value.
    pub detail: Option<String>,
    /// The database: `main`, `temp`, or none.
    pub database: Option<String>,
    /// The innermost trigger or view through which this happens.
    pub accessor: Option<String>,
}
