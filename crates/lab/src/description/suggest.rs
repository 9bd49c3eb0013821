//! Which of the known names did a misspelt one mean?

/// `; did you mean …?`, or nothing when none of the names is near.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(wrong, known) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong; nobody means a name by something much longer.
    let near = |name: &'a str| {
        let most = wrong.len().max(name.len()) / 3;
        let begun = wrong.len() >= 4 && name.starts_with(wrong);
        let far = if begun { 1 } else { (wrong.len() <= 64).then(|| distance(wrong, name))? };
        (far <= most).then_some((far, name))
    };
    known.into_iter().filter_map(near).min().map(|(_, name)| name)
}

/// Letters to insert, delete or replace to come from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != *y);
            row.push(replaced.min(last[j + 1] + 1).min(row[j] + 1));
        }
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["varnish", "nginx", "squid"];
        assert_eq!(nearest("varnisch", known), Some("varnish"));
        assert_eq!(nearest("ngnix", known), None);
        assert_eq!(nearest("nginks", known), Some("nginx"));
        assert_eq!(nearest("varn", known), Some("varnish"));
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("apache", known), None);
        assert_eq!(did_you_mean("squit", known), "; did you mean `squid`?");
    }
}
