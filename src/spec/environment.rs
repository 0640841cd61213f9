//! `${NAME}` and `${NAME:-default}` in the texts of overlay files, filled in from the environment.
//!
//! Only texts that were parsed come here: keys, comments and SQL never do. What a variable holds is taken as it
//! is and not looked at again.

use super::diagnostic::suggestion;

/// The text with its variables filled in. `$${` stands for `${`.
///
/// `environment` gives the value of a name; none where it is not set. As in a shell, `:-` also holds for a
/// variable that is empty.
///
/// # Errors
///
/// The first variable that is not set and has no default, or is not well formed.
pub fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        if before.ends_with('$') {
            // One of the two dollars goes.
            out.push('{');
            rest = after;
            continue;
        }
        let Some((inside, behind)) = after.split_once('}') else {
            return Err(malformed());
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_variable(name) {
            return Err(malformed());
        }
        match (environment(name), default) {
            (Some(value), None) => out.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
            (_, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the environment has no `{name}`; set it, or give a default as `${{{name}:-...}}`"
                ));
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn malformed() -> String {
    let known = suggestion("", &["${NAME}", "${NAME:-default}"]);
    format!("`${{` does not begin a variable here{known}; for the characters themselves write `$${{`")
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "TEAM" => Some("sales".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${TEAM}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in_once() {
        for (text, expected) in [
            ("", ""),
            ("plain $5 and $TEAM", "plain $5 and $TEAM"),
            ("${TEAM}", "sales"),
            ("the ${TEAM} team, ${TEAM}!", "the sales team, sales!"),
            ("${TEAM:-none}", "sales"),
            ("${UNSET:-none of it}", "none of it"),
            ("${UNSET:-}", ""),
            ("[${EMPTY}]", "[]"),
            ("${EMPTY:-full}", "full"),
            ("${NESTED}", "${TEAM}"),
            ("$${TEAM}", "${TEAM}"),
            ("^a{2}$", "^a{2}$"),
        ] {
            assert_eq!(expand(text, &environment), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_not_set_or_not_well_formed_is_said() {
        for (text, words) in [
            ("${UNSET}", "the environment has no `UNSET`; set it, or give a default as `${UNSET:-...}`"),
            ("a ${", "`${` does not begin a variable here"),
            ("${}", "`${` does not begin a variable here"),
            ("${1A}", "`${` does not begin a variable here"),
            ("${A B}", "write `$${`"),
        ] {
            let said = expand(text, &environment).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
