//! The format of the next line. A log that names its fields itself (W3C extended) names others when they change; in others, lines that
//! no format fits are recognised again.

use super::detect::{OTHERS_LINES, SAMPLE_LINES, detect, trim};
use super::{DetectedFormats, DirectiveError, FactSet, Format, LineError, UnusedField, read_line, w3c};
use crate::access::Access;

/// Formats of a log: a line that cannot be read is tried by all of them.
const MAX_FORMATS: usize = 8;
/// Formats are detected again once unreadable lines have increased by one in this number, so that a log of rubbish does not take long.
const REDETECT_ONE_IN: u64 = 4;

const DAY_US: i64 = 86_400_000_000;
/// Lines are not always in order: one of a request before midnight comes at most so long after it.
const LATE_US: i64 = 600_000_000;

/// The format of the next line of a log.
#[derive(Debug, Clone)]
pub(crate) struct FormatTracker {
    /// The formats of the log, and how many lines were read by each.
    formats: Vec<FormatCount>,
    /// Place of the format that the last line was read by.
    last: usize,
    /// The log named its fields by a line that cannot be used: what the lines after it hold is not known.
    is_lost: bool,
    /// Of the lines that were read.
    key: u64,
    /// Facts that all formats of the lines so far state.
    facts: FactSet,
    /// Somebody gave the format: it holds for all lines.
    is_given: bool,
    /// Day of the last `#Date:`, since 1970, and the time of the last line.
    day: Option<i64>,
    last_us: Option<i64>,
    /// Lines that could not be read.
    malformed: u64,
    /// Lines of them to come before others are recognised again.
    retry_after: u64,
    /// More lines were wanted than there were.
    wanted_more: bool,
}

#[derive(Debug, Clone)]
struct FormatCount {
    format: Format,
    lines: u64,
}

impl FormatCount {
    fn new(format: &Format) -> Self {
        Self { format: format.clone(), lines: 0 }
    }
}

impl FormatTracker {
    /// Before the first line of a log.
    pub(crate) fn new(recognised: &DetectedFormats) -> Self {
        let DetectedFormats { format, others, .. } = recognised;
        Self {
            formats: std::iter::once(format).chain(others).map(FormatCount::new).collect(),
            last: 0,
            is_lost: false,
            key: format.key(),
            facts: format.facts(),
            is_given: recognised.tried == 0 && !format.is_self_described,
            day: None,
            last_us: None,
            malformed: 0,
            retry_after: 0,
            wanted_more: false,
        }
    }

    /// The format that the last line was read by.
    pub(crate) fn format(&self) -> &Format {
        &self.formats[self.last].format
    }

    pub(crate) fn facts(&self) -> FactSet {
        self.facts
    }

    /// Names of the formats, and how many lines were read by each.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, u64)> {
        let read = self.formats.iter().filter(|counted| counted.lines > 0);
        read.map(|counted| (counted.format.name.as_str(), counted.lines))
    }

    /// Fields that no line is read by.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &UnusedField> {
        self.formats.iter().flat_map(|counted| counted.format.unused())
    }

    /// Takes a remark. One that names fields changes the format of the lines after it, unless a format was given; an error says why it
    /// cannot be used, if the log had such a line before. One that says a day holds for lines that have none.
    pub(crate) fn read_remark(&mut self, line: &[u8]) -> Result<(), DirectiveError> {
        if let Some(day) = w3c::day_of_directive(line) {
            self.day = Some(day);
            self.last_us = None;
            self.set_day();
            return Ok(());
        }
        if self.is_given {
            return Ok(());
        }
        let of_log = self.formats.iter().position(|counted| counted.format.is_self_described);
        match (w3c::from_directive(line), of_log) {
            // A directive that cannot be used is like any comment, unless such a line has named the fields before.
            (None, _) | (Some(Err(_)), None) => Ok(()),
            (Some(Ok(format)), Some(index)) => {
                self.formats[index].format = format;
                (self.last, self.is_lost) = (index, false);
                self.set_day();
                Ok(())
            }
            (Some(Ok(format)), None) => {
                self.last = self.formats.len();
                self.formats.push(FormatCount::new(&format));
                self.set_day();
                Ok(())
            }
            (Some(Err(why)), Some(_)) => {
                self.is_lost = true;
                Err(DirectiveError(why))
            }
        }
    }

    /// Reads a line into an access that holds nothing yet.
    #[inline]
    pub(crate) fn read<'a>(
        &mut self,
        line: &'a [u8],
        access: &mut Access<'a>,
    ) -> Result<(), Option<LineError>> {
        if self.is_lost {
            return Err(None);
        }
        match read_line(self.format(), line, access) {
            Ok(()) => {
                self.formats[self.last].lines += 1;
                if self.format().day.is_some() {
                    self.pass_midnight(access);
                }
                Ok(())
            }
            Err(malformed) => self.read_by_other_format(line, access).ok_or(Some(malformed)),
        }
    }

    /// Hands the day to the formats that need it.
    fn set_day(&mut self) {
        let formats = self.formats.iter_mut().map(|counted| &mut counted.format);
        formats.filter(|format| format.lacks_day()).for_each(|format| format.day = self.day);
    }

    /// Begins another day where a time of day is far before the last one: the log says only its first day.
    #[cold]
    fn pass_midnight(&mut self, access: &mut Access<'_>) {
        let Some(time_us) = access.time_us else { return };
        let later_us = self.last_us.map_or(0, |last_us| time_us - last_us);
        if later_us > DAY_US - LATE_US {
            access.time_us = Some(time_us - DAY_US);
            return;
        }
        if later_us < -DAY_US / 2 {
            self.day = self.day.map(|day| day + 1);
            self.set_day();
            access.time_us = Some(time_us + DAY_US);
        }
        self.last_us = access.time_us;
    }

    #[cold]
    fn read_by_other_format<'a>(&mut self, line: &'a [u8], access: &mut Access<'a>) -> Option<()> {
        let last = self.last;
        let index = self.formats.iter().enumerate().position(|(index, counted)| {
            if index == last {
                return false;
            }
            // The format before has filled some of it.
            *access = Access::default();
            read_line(&counted.format, line, access).is_ok()
        })?;
        self.last = index;
        self.formats[index].lines += 1;
        Some(())
    }

    /// Takes notice of a line that could not be read, with which `ahead` begins. True: the lines from there on are to be read again, since
    /// their format was found, or with more lines behind them, to find it.
    #[cold]
    pub(crate) fn should_reread(&mut self, ahead: &[u8]) -> bool {
        if self.is_given || self.is_lost || ahead.is_empty() || self.formats.len() >= MAX_FORMATS {
            return false;
        }
        // A line that is read again with more behind it was counted the first time.
        self.malformed += u64::from(!self.wanted_more);
        if self.retry_after > 0 {
            self.retry_after -= 1;
            return false;
        }
        let lines = ahead.split(|byte| *byte == b'\n').map(trim);
        let mut lines = lines.filter(|line| !line.is_empty() && line[0] != b'#');
        let mut sample: Vec<&[u8]> = lines.by_ref().take(OTHERS_LINES).collect();
        // Most lines that are broken stand alone.
        if sample.iter().any(|line| self.can_read(line)) {
            self.wanted_more = false;
            return false;
        }
        sample.extend(lines.take(SAMPLE_LINES - OTHERS_LINES));
        self.wanted_more = sample.len() < SAMPLE_LINES && !self.wanted_more;
        if self.wanted_more {
            return true;
        }
        let tried = sample.len();
        sample.retain(|line| !self.can_read(line));
        let is_block = sample.len() * 2 >= tried;
        if is_block && self.redetect(&sample) {
            return true;
        }
        // The more lines have failed, the rarer is a search: a file of rubbish is looked at a few times only.
        let again = if is_block { self.malformed / REDETECT_ONE_IN } else { 0 };
        self.retry_after = again.max(sample.len() as u64);
        false
    }

    /// Adds the formats of lines that cannot be read, if most of them have any.
    fn redetect(&mut self, lines: &[&[u8]]) -> bool {
        // `detect` leaves out a last line without an end.
        let text = [&lines.join(&b'\n')[..], b"\n"].concat();
        let Ok(DetectedFormats { format, others, fit, .. }) = detect(&text) else { return false };
        let is_known = self.formats.iter().any(|counted| counted.format.key() == format.key());
        if is_known || fit < OTHERS_LINES || fit * 2 < lines.len() {
            return false;
        }
        self.last = self.formats.len();
        self.formats.extend(std::iter::once(&format).chain(&others).map(FormatCount::new));
        true
    }

    fn can_read(&self, line: &[u8]) -> bool {
        let can_read =
            |counted: &FormatCount| read_line(&counted.format, line, &mut Access::default()).is_ok();
        self.formats.iter().any(can_read)
    }

    /// Reason for which a line could not be read, for people.
    pub(crate) fn explain(&self, malformed: Option<&LineError>) -> String {
        match malformed {
            Some(malformed) => self.format().explain(malformed),
            None => format!("the line `{}` before it cannot be used", w3c::DIRECTIVE),
        }
    }

    /// True once for a line that was read by another format than those before it.
    #[inline]
    pub(crate) fn format_changed(&mut self) -> bool {
        let format = &self.formats[self.last].format;
        let format_changed = self.key != format.key();
        if format_changed {
            self.key = format.key();
            self.facts = self.facts.intersection(format.facts());
        }
        format_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::detect;

    const FIRST: &str = "#Fields: date time cs-method cs-uri-stem sc-status sc-bytes";
    const LINE: &str = "2025-10-10 13:55:36 GET /a 200 5";

    fn of_log() -> FormatTracker {
        let recognised = detect(format!("{FIRST}\n{LINE}\n{LINE}\n").as_bytes()).unwrap();
        FormatTracker::new(&recognised)
    }

    fn status(current: &mut FormatTracker, line: &str) -> Option<u16> {
        let mut access = Access::default();
        current.read(line.as_bytes(), &mut access).ok().map(|()| access.status)
    }

    #[test]
    fn lines_after_a_line_that_names_other_fields_are_read_by_these() {
        let mut current = of_log();
        assert_eq!((status(&mut current, LINE), current.format_changed()), (Some(200), false));
        current.read_remark(b"#Fields: date time sc-status cs-uri-stem").unwrap();
        let line = "2025-10-10 13:55:36 404 /a";
        assert_eq!((status(&mut current, line), current.format_changed()), (Some(404), true));
        assert_eq!((status(&mut current, LINE), current.format_changed()), (None, false));
        current.read_remark(b"#Date: 2025-10-10 13:55:36").unwrap();
        assert_eq!(status(&mut current, line), Some(404));
        current.read_remark(FIRST.as_bytes()).unwrap();
        assert_eq!((status(&mut current, LINE), current.format_changed()), (Some(200), true));
    }

    #[test]
    fn lines_with_times_of_day_alone_are_of_the_day_that_the_log_says() {
        let text = "#Date: 2025-10-10 13:00:00\n#Fields: time cs-method cs-uri-stem sc-status\n13:55:36 GET /a 200\n";
        let mut current = FormatTracker::new(&detect(text.as_bytes()).unwrap());
        let mut read = |line: &str| {
            if line.starts_with('#') {
                current.read_remark(line.as_bytes()).unwrap();
                return None;
            }
            let mut access = Access::default();
            current.read(line.as_bytes(), &mut access).unwrap();
            access.time_us.map(|time_us| time_us / 1_000_000)
        };
        let at = 1_760_104_536;
        for (line, expected) in [
            ("#Date: 2025-10-10 13:00:00", None),
            ("#Fields: time cs-method cs-uri-stem sc-status", None),
            ("13:55:36 GET /a 200", Some(at)),
            // Written at the end of a request.
            ("13:55:30 GET /a 200", Some(at - 6)),
            ("23:55:36 GET /a 200", Some(at + 36_000)),
            ("01:55:36 GET /a 200", Some(at + 43_200)),
            ("02:55:36 GET /a 200", Some(at + 46_800)),
            ("23:59:59 GET /a 200", Some(at + 122_663)),
            ("00:00:01 GET /a 200", Some(at + 122_665)),
            ("23:59:58 GET /a 200", Some(at + 122_662)),
            ("00:00:02 GET /a 200", Some(at + 122_666)),
            ("#Date: 12-Oct-2025 00:00:00", None),
            ("01:55:36 GET /a 200", Some(at + 129_600)),
            ("#Fields: date time cs-method cs-uri-stem sc-status", None),
            ("2025-10-10 13:55:36 GET /a 200", Some(at)),
            ("#Fields: time cs-uri-stem", None),
            ("13:55:36 /a", Some(at + 172_800)),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn the_same_fields_named_again_are_no_change() {
        let mut current = of_log();
        current.read_remark(b"#Fields: time cs-uri").unwrap();
        current.read_remark(FIRST.as_bytes()).unwrap();
        assert!(!current.format_changed());
    }

    #[test]
    fn lines_after_fields_that_cannot_be_used_are_not_read_until_others_are_named() {
        for unusable in [&b"#Fields: date time sc-status"[..], b"#Fields:", b"#Fields: date time cs-uri \xff"]
        {
            let mut current = of_log();
            assert!(!current.read_remark(unusable).unwrap_err().to_string().is_empty());
            assert_eq!(status(&mut current, LINE), None);
            assert!(current.explain(None).contains("#Fields:"));
            current.read_remark(FIRST.as_bytes()).unwrap();
            assert_eq!(status(&mut current, LINE), Some(200));
        }
    }

    #[test]
    fn however_many_lines_cannot_be_read_they_are_recognised_again_a_few_times_only() {
        let line = "192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n";
        let mut current = FormatTracker::new(&detect(line.as_bytes()).unwrap());
        let rubbish = "what nobody can read\n".repeat(300);
        let mut looks = 0;
        for _ in 0..1_000_000 {
            looks += u32::from(current.retry_after == 0);
            assert!(!current.should_reread(rubbish.as_bytes()));
        }
        assert!((20..60).contains(&looks), "{looks}");
        assert!(
            FormatTracker::new(&detect(line.as_bytes()).unwrap()).should_reread(b"x\n"),
            "with more lines"
        );
        let mut given = FormatTracker::new(&DetectedFormats::given(&Format::parse("combined").unwrap()));
        assert!(!given.should_reread(line.repeat(300).as_bytes()));
    }

    #[test]
    fn a_format_that_was_given_is_that_of_all_lines() {
        let mut current = FormatTracker::new(&DetectedFormats::given(&Format::parse(FIRST).unwrap()));
        current.read_remark(b"#Fields: nothing").unwrap();
        current.read_remark(b"#Fields: date time sc-status cs-uri-stem").unwrap();
        assert_eq!(status(&mut current, LINE), Some(200));
    }
}
