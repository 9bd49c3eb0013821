//! Command lines that repeat a run, quoted for a shell.

/// The words of a command line, quoted where a shell would take them apart.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same command with the seed, and without the run directory, which would not be empty, and without
/// the place of the program.
pub fn same_stream(command: &[String], seed: u64) -> String {
    let program = command.first().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned());
    let mut words: Vec<String> = program.into_iter().collect();
    let mut skip_value = false;
    for word in command.iter().skip(1) {
        if std::mem::take(&mut skip_value) || word.starts_with("--run-dir=") || word.starts_with("--seed=") {
            continue;
        }
        if word == "--run-dir" || word == "--seed" {
            skip_value = true;
            continue;
        }
        words.push(word.clone());
    }
    words.push("--seed".to_owned());
    words.push(seed.to_string());
    command_line(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(
            command_line(&words("assay run a.pg --proxy 10.0.0.1:80")),
            "assay run a.pg --proxy 10.0.0.1:80"
        );
        assert_eq!(
            command_line(&["p99 < 20ms".into(), "it's".into(), String::new()]),
            r"'p99 < 20ms' 'it'\''s' ''"
        );
    }

    #[test]
    fn the_same_stream_names_the_seed_once_and_no_directory() {
        let command =
            words("target/release/assay run a.pg --seed 3 --run-dir out --rehearse 60s --run-dir=x");
        assert_eq!(same_stream(&command, 7), "assay run a.pg --rehearse 60s --seed 7");
    }
}
