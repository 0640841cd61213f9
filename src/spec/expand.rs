//! `${NAME}` and `${NAME:-default}` in the string values of a user's YAML file, from the environment.
//!
//! It works on values that are parsed already, so comments and keys are out of its reach. It reads no
//! environment itself.

/// The text with every variable replaced. An empty variable counts as none where a default stands;
/// `$${` stands for `${`.
///
/// # Errors
/// What is wrong, as a fragment: a variable that is not set and has no default, or a `${` without an end.
pub fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, found) = (rest.get(..at).unwrap_or_default(), rest.get(at + 2..).unwrap_or_default());
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = found;
            continue;
        }
        expanded.push_str(before);
        let (inside, after) = found
            .split_once('}')
            .ok_or("`${` has no `}`; write `${NAME}` or `${NAME:-default}`, or `$${` for the text itself")?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let plain = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain {
            return Err(format!(
                "`{name}` is no name of a variable; write `${{NAME}}` or `${{NAME:-default}}`"
            ));
        }
        match (variable(name), default) {
            (Some(value), Some(default)) if value.is_empty() => expanded.push_str(default),
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the variable `{name}` is not set; set it, or give a default as `${{{name}:-...}}`"
                ));
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_what_is_wrong_is_said() {
        let variable = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "ODD" => Some("${A}".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("plain $ {A} $A", "plain $ {A} $A"),
            ("${A}${A}-x", "aa-x"),
            ("${B:-b}", "b"),
            ("${A:-b}", "a"),
            ("${EMPTY:-b}${EMPTY}", "b"),
            ("${B:-}", ""),
            ("${B:-a:-b}", "a:-b"),
            ("$${A} ${A}", "${A} a"),
            ("${ODD}", "${A}"),
        ] {
            assert_eq!(expand(text, &variable).as_deref(), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("${B}", "the variable `B` is not set"),
            ("${A", "`${` has no `}`"),
            ("${}", "`` is no name"),
            ("${1A}", "`1A` is no name"),
            ("${A-b}", "`A-b` is no name"),
        ] {
            let said = expand(text, &variable).unwrap_err();
            assert!(said.starts_with(part), "{text}: {said}");
        }
    }
}
