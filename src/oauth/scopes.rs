//! What the scopes of a token open: `group:NAME` a group, `tool:NAME` and `tools:read` some of its tools.
//!
//! Without a scope about tools, a token may use all of them. Scopes of others are passed over: a token may have them for
//! other servers.

use crate::state::keys::Scope;
use serde_json::Value;
use std::collections::BTreeSet;

/// The scopes of a token that are about this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    groups: BTreeSet<String>,
    tools: BTreeSet<String>,
    reads: bool,
}

impl Scopes {
    /// Of a claim: words with spaces between them (RFC 8693, 4.2), or a list of words, as some issuers have it.
    #[must_use]
    pub fn of(claim: Option<&Value>) -> Self {
        let mut scopes = Self::default();
        match claim {
            Some(Value::String(words)) => words.split_ascii_whitespace().for_each(|word| scopes.add(word)),
            Some(Value::Array(words)) => {
                words.iter().filter_map(Value::as_str).for_each(|word| scopes.add(word));
            }
            _ => {}
        }
        scopes
    }

    fn add(&mut self, word: &str) {
        match word.split_once(':') {
            Some(("group", name)) => drop(self.groups.insert(name.to_owned())),
            Some(("tool", name)) => drop(self.tools.insert(name.to_owned())),
            _ if word == "tools:read" => self.reads = true,
            _ => {}
        }
    }

    /// Whether they open this group.
    #[must_use]
    pub fn open(&self, group: &str) -> bool {
        self.groups.contains(group)
    }

    /// Which tools they allow: named ones come before those that read.
    #[must_use]
    pub fn tools(&self) -> Scope {
        match (self.tools.is_empty(), self.reads) {
            (false, _) => Scope::Tools(self.tools.iter().cloned().collect()),
            (true, true) => Scope::ReadOnly,
            (true, false) => Scope::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scopes_open_groups_and_narrow_tools() {
        let tools = |names: &[&str]| Scope::Tools(names.iter().map(|name| (*name).to_owned()).collect());
        let rows = [
            (json!("group:a openid group:b"), &["a", "b"][..], Scope::All),
            (json!("group:a tools:read"), &["a"], Scope::ReadOnly),
            (json!("group:a tool:kv_set tool:kv_get"), &["a"], tools(&["kv_get", "kv_set"])),
            (json!("tool:kv_get tools:read group:a"), &["a"], tools(&["kv_get"])),
            (json!(["group:a", 5, "tools:read"]), &["a"], Scope::ReadOnly),
            (json!("openid"), &[], Scope::All),
            (json!(null), &[], Scope::All),
            (json!({"group": "a"}), &[], Scope::All),
        ];
        for (claim, groups, expected) in rows {
            let scopes = Scopes::of(Some(&claim));
            for group in ["a", "b", "c", ""] {
                assert_eq!(scopes.open(group), groups.contains(&group), "{claim} {group}");
            }
            assert_eq!(scopes.tools(), expected, "{claim}");
        }
        assert!(!Scopes::of(None).open("a"));
    }
}
