//! Which of the known names did a misspelt one mean?

/// The known name nearest to `wrong`, when one is near enough to be meant.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wrong.chars().count();
    if length > 64 {
        return None;
    }
    let folded = fold(wrong);
    let near = |name: &'a str| {
        let known = fold(name);
        let begun = (length >= 4 && known.starts_with(&folded))
            || (known.len() >= 3 && length >= 4 && folded.starts_with(&known));
        let far = if begun { 1 } else { distance(&folded, &known) };
        let longest = length.max(known.len());
        (far <= longest / 3).then_some((far, name))
    };
    known.into_iter().filter_map(near).min().map(|(_, name)| name)
}

/// The help line for a misspelt name.
pub(crate) fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, known).map(|name| format!("did you mean `{name}`?"))
}

/// Letters that scans and typists confuse, made alike: case, and `l`, `1`, `I`.
fn fold(name: &str) -> Vec<char> {
    name.chars().map(|c| if matches!(c, 'l' | '1' | 'I') { 'i' } else { c.to_ascii_lowercase() }).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) from one to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["recurrence", "req_rate", "origins"];
        assert_eq!(nearest("recurence", known), Some("recurrence"));
        assert_eq!(nearest("reqrate", known), Some("req_rate"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("lms200", ["Ims200", "Ims304"]), Some("Ims200"));
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("R", ["S", "t"]), None);
        assert_eq!(nearest("sched", ["schedule", "use"]), Some("schedule"));
        assert_eq!(nearest("seconds", ["sec", "min"]), Some("sec"));
    }
}
