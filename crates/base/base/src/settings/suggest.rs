//! Suggestions for misspelt names.

/// Longest misspelt name: a longer word is none.
const LONGEST: usize = 64;

/// The known name nearest to `wrong`, when one is near enough to be meant: a third of its letters may be wrong (put in, left
/// out, replaced, or swapped with their neighbour), or one of the two is the beginning of the other.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = wrong.chars().count();
    if letters > LONGEST {
        return None;
    }
    let wrong = folded(wrong);
    let near = |name: &'a str| {
        let folded = folded(name);
        let others = folded.chars().count();
        let begun = (letters >= 4 && folded.starts_with(&wrong))
            || (others >= 3 && letters >= 4 && wrong.starts_with(&folded));
        let most = (letters.max(others) / 3).max(usize::from(letters >= 3));
        let far = match begun {
            true => 1,
            // As many letters as one name has more must be put in.
            false if letters.abs_diff(others) > most => return None,
            false => strsim::osa_distance(&wrong, &folded),
        };
        (far <= most).then_some((far, name))
    };
    known.into_iter().filter_map(near).min().map(|(_, name)| name)
}

/// The question for a misspelt name; none where no name is near.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, known).map(|name| format!("did you mean `{name}`?"))
}

/// The question as the end of a sentence: `; did you mean …?`, or nothing.
pub fn or_did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    did_you_mean(wrong, known).map_or_else(String::new, |question| format!("; {question}"))
}

/// Letters that scans and typists confuse, made alike: case, and `l`, `1`, `I`.
fn folded(text: &str) -> String {
    let fold = |c: char| if matches!(c, 'l' | '1' | 'I') { 'i' } else { c.to_ascii_lowercase() };
    text.chars().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        for (wrong, known, meant) in [
            ("recurence", &["recurrence", "req_rate", "origins"][..], Some("recurrence")),
            ("reqrate", &["recurrence", "req_rate", "origins"], Some("req_rate")),
            ("banana", &["recurrence", "req_rate", "origins"], None),
            ("lms200", &["Ims200", "Ims304"], Some("Ims200")),
            ("R", &["S", "t"], None),
            ("sched", &["schedule", "use"], Some("schedule")),
            ("seconds", &["sec", "min"], Some("sec")),
            ("varnisch", &["varnish", "nginx", "squid"], Some("varnish")),
            ("nginks", &["varnish", "nginx", "squid"], Some("nginx")),
            ("varn", &["varnish", "nginx", "squid"], Some("varnish")),
            ("apache", &["varnish", "nginx", "squid"], None),
            ("", &["varnish", "nginx", "squid"], None),
            ("speed", &["memory", "mode", "seed"], Some("seed")),
            ("colour", &["memory", "mode"], None),
        ] {
            assert_eq!(nearest(wrong, known.iter().copied()), meant, "{wrong}");
        }
        assert_eq!(or_did_you_mean("squit", ["squid"]), "; did you mean `squid`?");
        assert_eq!(or_did_you_mean("nginx", ["squid"]), "");
    }

    #[test]
    fn swapped_neighbours_are_one_mistake() {
        assert_eq!(nearest("ngnix", ["varnish", "nginx"]), Some("nginx"));
        assert_eq!(nearest("memroy", ["memory", "mode"]), Some("memory"));
    }

    #[test]
    fn a_word_that_is_no_name_is_not_compared() {
        assert_eq!(nearest(&"x".repeat(1_000_000), ["xx"]), None);
    }
}
