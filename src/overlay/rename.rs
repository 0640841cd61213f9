//! A renamed tool in the words of the others.
//!
//! Built-in words speak of tools by name; an agent that reads them must find those tools.

use super::merge::Merge;

impl Merge {
    /// Other tools' words and the instructions speak of a renamed tool by its new name. Names of one word are
    /// words of the language as well (`snapshot`), so they are left alone.
    pub(super) fn rename_in_words(&mut self, served: &str, renames: &[(String, String)]) {
        let renames: Vec<&(String, String)> = renames.iter().filter(|(old, _)| old.contains('_')).collect();
        if renames.is_empty() {
            return;
        }
        let replaced = |text: &mut String| *text = with_names(text, &renames);
        let ids: Vec<String> = self.tools_of(served).map(|tool| tool.id.clone()).collect();
        for tool in self.effective.manifest.tools.iter_mut().filter(|tool| ids.contains(&tool.id)) {
            let words = &mut tool.words;
            for text in [
                &mut words.purpose,
                &mut words.usage,
                &mut words.returns,
                &mut words.refuses,
                &mut words.effects,
            ] {
                replaced(text);
            }
            for param in &mut tool.params {
                replaced(&mut param.description);
            }
        }
        let prompts =
            self.manifest().profile(served).map(|profile| profile.prompts.clone()).unwrap_or_default();
        for prompt in self.effective.manifest.prompts.iter_mut().filter(|prompt| prompts.contains(&prompt.id))
        {
            replaced(&mut prompt.text);
        }
        if let Some(profile) = self.served_mut(served) {
            replaced(&mut profile.instructions);
        }
    }
}

/// The text with whole words replaced, all at once.
fn with_names(text: &str, renames: &[&(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    while !rest.is_empty() {
        let start = rest.find(is_letter).unwrap_or(rest.len());
        let (gap, word_on) = rest.split_at(start);
        let end = word_on.find(|c| !is_letter(c)).unwrap_or(word_on.len());
        let (word, behind) = word_on.split_at(end);
        out.push_str(gap);
        out.push_str(renames.iter().find(|(old, _)| old == word).map_or(word, |(_, new)| new));
        rest = behind;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_replaced_all_at_once() {
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        let (swapped, back) = (pair("a_b", "c_d"), pair("c_d", "a_b"));
        let renames = [&swapped, &back];
        for (text, expected) in [
            ("", ""),
            ("use a_b, then c_d.", "use c_d, then a_b."),
            ("{% if \"a_b\" in tools %}a_b{% endif %}", "{% if \"c_d\" in tools %}c_d{% endif %}"),
            ("a_bb xa_b a_b_c žluťoučký a_b", "a_bb xa_b a_b_c žluťoučký c_d"),
        ] {
            assert_eq!(with_names(text, &renames), expected, "{text}");
        }
    }
}
