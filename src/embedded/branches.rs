//! Branches of a database: files of their own, copied while nobody writes, and named by the catalog.
//!
//! Whether main or a branch has changed is told by the stamp that goes with each commit (`sqlite::batch`): it is in the
//! file, so no kill can part it from the change.

use super::databases::SqlDb;
use super::keeper::{new_file, remove};
use super::records::BranchRow;
use crate::error::{ErrorCode, ToolError};
use crate::state::db::{Branch, MOST_BRANCHES, check_branch, check_no_main};
use crate::state::{Outcome, not_found};
use std::path::Path;

impl SqlDb {
    pub(super) async fn make_branch(&self, name: &str) -> Outcome<()> {
        check_branch(name)?;
        let _alone = self.turn.write().await;
        let rows = self.keeper.catalog.branch_rows(&self.primitive.id).await?;
        if rows.iter().any(|row| row.name == name) {
            return Err(conflict(format!(
                "there is a branch `{name}` already; choose another name, or use that one"
            )));
        }
        if rows.len() >= MOST_BRANCHES {
            return Err(conflict(format!(
                "the database has {MOST_BRANCHES} branches, which is the most; promote or discard one"
            )));
        }
        let _moving = self.keeper.moving().await;
        let file = new_file();
        let copied = self.keeper.copy(&self.main().await?, &self.folder.join(&file), false).await?;
        let created_at = self.keeper.clock.now();
        let row = BranchRow { name: name.to_owned(), file, base: copied.stamp, created_at };
        self.keeper.catalog.add_branch(&self.primitive.id, row).await
    }

    pub(super) async fn promote(&self, name: &str, force: bool) -> Outcome<Option<String>> {
        check_no_main(name)?;
        let _alone = self.turn.write().await;
        let row = self.branch(name).await?;
        let main = self.main().await?;
        let mut kept = None;
        if self.stamp(&main).await? != row.base {
            if !force {
                return Err(conflict(format!(
                    "main has changed since `{name}` was made, and nothing was promoted; look at both with db_query and carry over what main has new, or promote with `force`: true, which keeps main as a snapshot and then replaces it"
                )));
            }
            let label = format!("before the promotion of {name}");
            let made = self.keeper.snapshot(&self.primitive, &self.folder, &main, Some(label), true).await?;
            kept = Some(made.id);
        }
        let catalog = &self.keeper.catalog;
        catalog.set_main_file(&self.primitive.id, row.file, Some(row.name)).await?;
        self.drop_file(&main);
        Ok(kept)
    }

    pub(super) async fn discard(&self, name: &str, force: bool) -> Outcome<()> {
        check_no_main(name)?;
        let _alone = self.turn.write().await;
        let row = self.branch(name).await?;
        let file = self.folder.join(&row.file);
        if !force && self.stamp(&file).await? != row.base {
            return Err(conflict(format!(
                "`{name}` has changes that main has not got, and was not discarded; promote it, or discard with `force`: true, after which they are gone"
            )));
        }
        self.keeper.catalog.remove_branch(&self.primitive.id, name).await?;
        self.drop_file(&file);
        Ok(())
    }

    pub(super) async fn list_branches(&self) -> Outcome<Vec<Branch>> {
        // Nothing is promoted or discarded meanwhile.
        let _here = self.turn.read().await;
        let mut branches = Vec::new();
        for row in self.keeper.catalog.branch_rows(&self.primitive.id).await? {
            let changed = self.stamp(&self.folder.join(&row.file)).await? != row.base;
            branches.push(Branch { name: row.name, created_at: row.created_at, changed });
        }
        Ok(branches)
    }

    pub(super) async fn branch(&self, name: &str) -> Outcome<BranchRow> {
        let rows = self.keeper.catalog.branch_rows(&self.primitive.id).await?;
        rows.into_iter().find(|row| row.name == name).ok_or_else(|| {
            let name = crate::render::one_line(name, 80);
            not_found(format!("the database has no branch `{name}`; db_branch with action list shows them"))
        })
    }

    fn drop_file(&self, file: &Path) {
        self.keeper.crew.forget(file);
        remove(file);
    }
}

fn conflict(words: String) -> ToolError {
    ToolError::new(ErrorCode::Conflict, words)
}
