//! The number of clients of a cluster. `8`, `2,4,8`, or `2..20 by 2` (also `2..20/2`).

/// More clients than this are none that one process can be.
const MOST: u32 = 100_000;

/// Numbers of clients, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCounts(pub Vec<u32>);

/// From the first number to the last, in steps.
pub fn range(first: u32, last: u32, step: u32) -> ClientCounts {
    ClientCounts((first..=last).step_by(step.max(1) as usize).collect())
}

/// Reads numbers of clients.
pub fn client_counts(text: &str) -> Result<ClientCounts, String> {
    let number = |text: &str| {
        let read = text.trim().parse::<u32>().ok().filter(|number| (1..=MOST).contains(number));
        read.ok_or_else(|| format!("`{}` is no number of clients from 1 to {MOST}", text.trim()))
    };
    let Some((first, rest)) = text.split_once("..") else {
        return text.split(',').map(number).collect::<Result<_, _>>().map(ClientCounts);
    };
    let (last, step) = rest.split_once("by").or_else(|| rest.split_once('/')).unwrap_or((rest, "1"));
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    if last < first {
        return Err(format!("{last} is less than {first}; write it like 2..20 by 2"));
    }
    Ok(range(first, last, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_or_counted_in_steps() {
        assert_eq!(client_counts("8"), Ok(ClientCounts(vec![8])));
        assert_eq!(client_counts("2,4, 8"), Ok(ClientCounts(vec![2, 4, 8])));
        assert_eq!(client_counts("2..9 by 3"), Ok(ClientCounts(vec![2, 5, 8])));
        assert_eq!(client_counts("2..6/2"), Ok(ClientCounts(vec![2, 4, 6])));
        assert_eq!(client_counts("1..3"), Ok(ClientCounts(vec![1, 2, 3])));
        for wrong in ["", "0", "4..2", "2..", "2..8 by 0", "a"] {
            assert!(client_counts(wrong).is_err(), "{wrong}");
        }
    }
}
