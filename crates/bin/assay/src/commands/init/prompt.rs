//! A prompt on a terminal: repeated until what is typed can be read.

use std::io::{self, BufRead, Write};

/// Prints a prompt and reads a line. An empty line, and the end of the input, mean the default. What `read` refuses is
/// explained, and the prompt is repeated.
pub fn prompt<T>(
    words: &str,
    default: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
    read: impl Fn(&str) -> Result<T, String>,
) -> io::Result<T> {
    loop {
        write!(output, "{words} [{default}] ")?;
        output.flush()?;
        let mut line = String::new();
        let is_end = input.read_line(&mut line)? == 0;
        let typed = line.trim();
        match read(if typed.is_empty() { default } else { typed }) {
            Ok(value) => return Ok(value),
            Err(why) if is_end => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)),
            Err(why) => writeln!(output, "  {why}")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompted(typed: &str, default: &str) -> (io::Result<u32>, String) {
        let mut output = Vec::new();
        let read = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not an integer"));
        let value = prompt("How many?", default, &mut typed.as_bytes(), &mut output, read);
        (value, String::from_utf8(output).unwrap())
    }

    #[test]
    fn an_empty_line_and_the_end_of_the_input_mean_the_default() {
        assert_eq!(prompted("\n", "3").0.unwrap(), 3);
        assert_eq!(prompted("", "3").0.unwrap(), 3);
        assert_eq!(prompted(" 7 \n", "3").0.unwrap(), 7);
    }

    #[test]
    fn what_cannot_be_read_is_explained_and_prompted_for_again() {
        let (value, shown) = prompted("x\n5\n", "3");
        assert_eq!(value.unwrap(), 5);
        assert_eq!(shown, "How many? [3]   `x` is not an integer\nHow many? [3] ");
    }

    #[test]
    fn a_default_that_cannot_be_read_does_not_repeat_for_ever() {
        assert!(prompted("", "none").0.is_err());
    }
}
