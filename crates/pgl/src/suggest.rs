//! Which of the known names did a misspelt one mean?

/// The known name nearest to `wrong`, when one is near enough to be meant.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.chars().map(fold).collect();
    if wrong.len() > 64 {
        return None;
    }
    let mut name: Vec<char> = Vec::with_capacity(64);
    let mut rows = Rows::default();
    let near = |known: &'a str| {
        name.clear();
        name.extend(known.chars().take(128).map(fold));
        let begun = (wrong.len() >= 4 && name.starts_with(&wrong))
            || (name.len() >= 3 && wrong.len() >= 4 && wrong.starts_with(&name));
        let most = wrong.len().max(name.len()) / 3;
        let far = match begun {
            true => 1,
            // As many letters as one name has more must be put in.
            false if wrong.len().abs_diff(name.len()) > most => return None,
            false => rows.distance(&wrong, &name),
        };
        (far <= most).then_some((far, known))
    };
    known.into_iter().filter_map(near).min().map(|(_, name)| name)
}

/// The help line for a misspelt name.
pub(crate) fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, known).map(|name| format!("did you mean `{name}`?"))
}

/// Letters that scans and typists confuse, made alike: case, and `l`, `1`, `I`.
fn fold(c: char) -> char {
    if matches!(c, 'l' | '1' | 'I') { 'i' } else { c.to_ascii_lowercase() }
}

/// Three rows of the table of distances, used again for every name.
#[derive(Default)]
struct Rows {
    before: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl Rows {
    /// Edits (insert, delete, replace, swap of neighbours) from one to the other.
    fn distance(&mut self, a: &[char], b: &[char]) -> usize {
        self.before.clear();
        self.last.clear();
        self.last.extend(0..=b.len());
        for (i, x) in a.iter().enumerate() {
            self.row.clear();
            self.row.push(i + 1);
            for (j, y) in b.iter().enumerate() {
                let replaced = self.last[j] + usize::from(x != y);
                let mut best = replaced.min(self.last[j + 1] + 1).min(self.row[j] + 1);
                if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                    best = best.min(self.before[j - 1] + 1);
                }
                self.row.push(best);
            }
            std::mem::swap(&mut self.before, &mut self.last);
            std::mem::swap(&mut self.last, &mut self.row);
        }
        self.last[b.len()]
    }
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
