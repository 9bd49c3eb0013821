//! From the text of a description to a [`Description`], or to an error with file, line and field.

use std::ops::Range;

use minijinja::Environment;
use toml::de::{DeTable, DeValue};

use super::{
    CounterFormat, CounterSource, Description, DescriptionError, Hierarchy, Leg, PeeringVariables,
    TemplateVariables, template,
};

/// Message on a command that is empty, or whose first argument comes out empty.
const NO_PROGRAM: &str = "must name a program";
/// Longest time that it may settle before it is stopped, in seconds.
const MAX_SETTLE_S: f64 = 60.0;
/// Upper bound on a timeout of a description, in seconds.
const MAX_TIMEOUT_S: f64 = 600.0;

/// Mistake and its position: the keys and indices that lead to it, and how many lines further down in it.
struct FieldError {
    path: Vec<PathStep>,
    lines_in: usize,
    what: String,
}

/// One step on the way to a field.
#[derive(Clone)]
enum PathStep {
    Key(&'static str),
    Named(String),
    Index(usize),
}

impl FieldError {
    fn at(path: &[PathStep], what: impl Into<String>) -> Self {
        Self { path: path.to_vec(), lines_in: 0, what: what.into() }
    }

    fn field(key: &'static str, what: impl Into<String>) -> Self {
        Self::at(&[PathStep::Key(key)], what)
    }
}

/// Reads a description; `file` names it in errors.
pub(super) fn read(file: &str, text: &str) -> Result<Description, DescriptionError> {
    let mut description: Description = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        DescriptionError { message: format!("{file}:{line}: {}", error.message().trim_end()) }
    })?;
    description.source = text.to_owned();
    let checked = check_settings(&mut description).and_then(|()| check(&description));
    checked.map_err(|wrong| {
        let line = find_line(text, &wrong.path).unwrap_or(1) + wrong.lines_in;
        DescriptionError { message: format!("{file}:{line}: {}: {}", spell(&wrong.path), wrong.what) }
    })?;
    Ok(description)
}

/// Looks at what can be chosen, and chooses what is so by default.
fn check_settings(description: &mut Description) -> Result<(), FieldError> {
    for (name, setting) in &description.settings {
        let path = [PathStep::Key("setting"), PathStep::Named(name.clone())];
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
            let what = format!("`{name}` must be small letters, digits and `-`, and begin with a letter");
            return Err(FieldError::at(&path, what));
        }
        setting
            .check()
            .map_err(|(key, what)| FieldError::at(&[&path[..], &[PathStep::Key(key)]].concat(), what))?;
        if let Some(chosen) = setting.read(&setting.default) {
            description.chosen.insert(name.clone(), chosen);
        }
    }
    Ok(())
}

fn check(description: &Description) -> Result<(), FieldError> {
    check_head(description)?;
    check_paths(description)?;
    check_timeouts(description)?;
    for (index, source) in description.counters.iter().enumerate() {
        check_counters(description, index, source)?;
    }
    let environment = template::environment();
    let templates = templates(&environment, description)?;
    for &mode in &description.modes {
        for (is_root, disk_bytes) in [(true, 1 << 30), (false, 1 << 30), (true, 0)] {
            let mut settings = TemplateVariables::sample(mode, is_root, disk_bytes);
            settings.chosen.clone_from(&description.chosen);
            try_templates(&templates, &settings)?;
            if description.http2.is_some() {
                settings.http2 = true;
                try_templates(&templates, &settings)?;
                settings.http2 = false;
            }
            settings.origin_http2 = description.origin_http2;
            if settings.origin_http2 {
                try_templates(&templates, &settings)?;
            }
            if !description.tls.is_empty() {
                settings.tls.clone_from(&description.tls);
                try_templates(&templates, &settings)?;
                settings.tls.clear();
            }
            settings.origin_http2 = false;
            if description.hierarchy != Hierarchy::default() {
                settings.peering = Some(PeeringVariables::sample(&description.hierarchy));
                try_templates(&templates, &settings)?;
            }
        }
    }
    // Every value of every setting, one setting at a time.
    let mut settings = TemplateVariables::sample(description.modes[0], true, 1 << 30);
    for (name, setting) in &description.settings {
        for value in setting.samples() {
            settings.chosen.clone_from(&description.chosen);
            settings.chosen.extend(setting.read(&value).map(|chosen| (name.clone(), chosen)));
            try_templates(&templates, &settings)?;
        }
    }
    Ok(())
}

fn check_head(description: &Description) -> Result<(), FieldError> {
    let name = &description.name;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(FieldError::field("name", format!("`{name}` must be small letters, digits and `-`")));
    }
    if matches!(name.as_str(), "builtin" | "direct" | "none") {
        return Err(FieldError::field("name", format!("`{name}` has a meaning of its own; choose another")));
    }
    if description.modes.is_empty() {
        return Err(FieldError::field("modes", "must name at least one of \"reverse\" and \"forward\""));
    }
    if description.version.command.is_empty() {
        return Err(FieldError::at(&[PathStep::Key("version"), PathStep::Key("command")], NO_PROGRAM));
    }
    if let Some(terminator) = &description.tls_terminator {
        let key = PathStep::Key("tls-terminator");
        if terminator.version.command.is_empty() {
            let path = [key, PathStep::Key("version"), PathStep::Key("command")];
            return Err(FieldError::at(&path, NO_PROGRAM));
        }
        if !description.tls.contains(&Leg::Robots) {
            let what = "it is started for robots that speak TLS, and `tls` does not name \"robots\"";
            return Err(FieldError::at(&[key], what));
        }
    }
    let in_capacity = |(key, what)| FieldError::at(&[PathStep::Key("capacity"), PathStep::Key(key)], what);
    description.capacity.check().map_err(in_capacity)
}

/// Everything that is written, made or kept must lie in the work directory.
fn check_paths(description: &Description) -> Result<(), FieldError> {
    let inside = |path: &str| {
        let path = std::path::Path::new(path);
        let normal = |part| matches!(part, std::path::Component::Normal(_));
        path.components().count() > 0 && path.components().all(normal)
    };
    let message = |path: &str| format!("`{path}` must lie below the work directory: no `..`, no leading `/`");
    for (index, path) in description.directories.iter().enumerate() {
        if !inside(path) {
            return Err(FieldError::at(
                &[PathStep::Key("directories"), PathStep::Index(index)],
                message(path),
            ));
        }
    }
    for (index, path) in description.logs.iter().enumerate() {
        if !inside(path) {
            return Err(FieldError::at(&[PathStep::Key("logs"), PathStep::Index(index)], message(path)));
        }
    }
    if let Some(log) = &description.access_log {
        let path = |key| [PathStep::Key("access-log"), PathStep::Key(key)];
        if !inside(&log.path) {
            return Err(FieldError::at(&path("path"), message(&log.path)));
        }
        log.check().map_err(|error| FieldError::at(&path("format"), error.why.to_string()))?;
    }
    for (index, source) in description.counters.iter().enumerate() {
        if let Some(socket) = source.socket.as_ref().filter(|socket| !inside(socket)) {
            let path = [PathStep::Key("counters"), PathStep::Index(index), PathStep::Key("socket")];
            return Err(FieldError::at(&path, message(socket)));
        }
    }
    let terminator = description.tls_terminator.as_ref();
    if let Some(after) =
        terminator.and_then(|terminator| terminator.after.as_ref()).filter(|after| !inside(after))
    {
        return Err(FieldError::at(
            &[PathStep::Key("tls-terminator"), PathStep::Key("after")],
            message(after),
        ));
    }
    for (index, file) in description.files.iter().enumerate() {
        if !inside(&file.path) {
            let path = [PathStep::Key("file"), PathStep::Index(index), PathStep::Key("path")];
            return Err(FieldError::at(&path, message(&file.path)));
        }
    }
    Ok(())
}

fn check_timeouts(description: &Description) -> Result<(), FieldError> {
    for (key, seconds) in [("ready", description.ready.timeout_s), ("stop", description.stop.timeout_s)] {
        if !(seconds > 0.0 && seconds <= MAX_TIMEOUT_S) {
            let what = format!("{seconds} must be above 0 and at most {MAX_TIMEOUT_S} seconds");
            return Err(FieldError::at(&[PathStep::Key(key), PathStep::Key("timeout-s")], what));
        }
    }
    let settle_s = description.stop.settle_s;
    if !(0.0..=MAX_SETTLE_S).contains(&settle_s) {
        let what = format!("{settle_s} must be from 0 to {MAX_SETTLE_S} seconds");
        return Err(FieldError::at(&[PathStep::Key("stop"), PathStep::Key("settle-s")], what));
    }
    if !description.ready.path.starts_with('/') {
        let what = format!("`{}` must begin with `/`", description.ready.path);
        return Err(FieldError::at(&[PathStep::Key("ready"), PathStep::Key("path")], what));
    }
    Ok(())
}

fn check_counters(description: &Description, index: usize, source: &CounterSource) -> Result<(), FieldError> {
    let path = [PathStep::Key("counters"), PathStep::Index(index)];
    let given =
        [!source.command.is_empty(), source.path.is_some(), source.socket.is_some(), source.log.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(FieldError::at(&path, "must say exactly one of `command`, `path`, `socket` and `log`"));
    }
    if source.socket.is_some() != source.say.is_some() {
        return Err(FieldError::at(&path, "`socket` and `say` belong together"));
    }
    if source.names.is_empty() {
        return Err(FieldError::at(&path, "`names` names no counter"));
    }
    if (source.format == CounterFormat::LogWords) != source.log.is_some() {
        return Err(FieldError::at(&path, "`log` and the format \"log-words\" belong together"));
    }
    if let Some(log) = &source.log
        && !description.all_logs().any(|kept| kept == log)
    {
        let what = format!("the log `{log}` is neither the `access-log` nor one of `logs`");
        return Err(FieldError::at(&path, what));
    }
    Ok(())
}

/// A template of a description, parsed.
struct Template<'a> {
    text: &'a str,
    parsed: minijinja::Template<'a, 'a>,
    path: Vec<PathStep>,
    /// Whether it must not come out empty.
    names_program: bool,
}

/// Every template of a description.
fn templates<'a>(
    environment: &'a Environment<'a>,
    description: &'a Description,
) -> Result<Vec<Template<'a>>, FieldError> {
    let parse = |text: &'a str, path: Vec<PathStep>| match environment.template_from_str(text) {
        Ok(parsed) => Ok(Template { text, parsed, path, names_program: false }),
        Err(error) => Err(cannot_fill(text, &path, &error)),
    };
    let mut templates = Vec::new();
    for (index, file) in description.files.iter().enumerate() {
        templates.push(parse(
            &file.text,
            vec![PathStep::Key("file"), PathStep::Index(index), PathStep::Key("text")],
        )?);
    }
    let mut programs = vec![(vec![PathStep::Key("start")], &description.start)];
    for (key, several) in [
        ("prepare", &description.prepare),
        ("companion", &description.companions),
        ("empty", &description.empty),
    ] {
        let place = |index| vec![PathStep::Key(key), PathStep::Index(index)];
        programs.extend(several.iter().enumerate().map(|(index, program)| (place(index), program)));
    }
    let mut commands: Vec<(Vec<PathStep>, &[String])> = Vec::new();
    for (path, program) in programs {
        for value in program.environment.values() {
            templates.push(parse(value, [&path[..], &[PathStep::Key("environment")]].concat())?);
        }
        commands.push((path, &program.command));
    }
    if let Some(terminator) = &description.tls_terminator {
        commands.push((vec![PathStep::Key("tls-terminator")], &terminator.command));
    }
    for (path, command) in commands {
        let path = [&path[..], &[PathStep::Key("command")]].concat();
        if command.is_empty() {
            return Err(FieldError::at(&path, NO_PROGRAM));
        }
        for (index, argument) in command.iter().enumerate() {
            let argument = parse(argument, [&path[..], &[PathStep::Index(index)]].concat())?;
            templates.push(Template { names_program: index == 0, ..argument });
        }
    }
    for (index, source) in description.counters.iter().enumerate() {
        let path = |key| vec![PathStep::Key("counters"), PathStep::Index(index), PathStep::Key(key)];
        for argument in &source.command {
            templates.push(parse(argument, path("command"))?);
        }
        for (key, text) in [("path", &source.path), ("host", &source.host)] {
            templates.extend(text.as_ref().map(|text| parse(text, path(key))).transpose()?);
        }
    }
    Ok(templates)
}

/// Fills in every template, so that a mistake is found when a description is read.
fn try_templates(templates: &[Template], settings: &TemplateVariables) -> Result<(), FieldError> {
    let variables = settings.variables();
    for template in templates {
        let filled = template.parsed.render(&variables);
        let filled = filled.map_err(|error| cannot_fill(template.text, &template.path, &error))?;
        if template.names_program && filled.is_empty() {
            return Err(FieldError::at(&template.path, NO_PROGRAM));
        }
    }
    Ok(())
}

fn cannot_fill(template: &str, path: &[PathStep], error: &minijinja::Error) -> FieldError {
    let number = error.line().unwrap_or(1);
    let line = template.lines().nth(number.saturating_sub(1)).unwrap_or_default().trim();
    let why = match error.kind() {
        minijinja::ErrorKind::UndefinedError => {
            "it uses a variable that there is not (docs/reference/proxies.md lists them)".to_owned()
        }
        kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
    };
    let mut wrong =
        FieldError::at(path, format!("the template cannot be filled in: {why}, in the line `{line}`"));
    // A multi-line string begins on the line below its quotes; a one-line template is on the line itself.
    if template.contains('\n') {
        wrong.lines_in = error.line().unwrap_or(0);
    }
    wrong
}

/// The line that the field at `path`, or the nearest thing above it that is there, begins on.
fn find_line(text: &str, path: &[PathStep]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut span: Range<usize> = 0..0;
    let (PathStep::Key(first), rest) = path.split_first()? else { return None };
    let mut here = root.get_ref().get(*first)?;
    span.clone_from(&here.span());
    for step in rest {
        let next = match (step, here.get_ref()) {
            (PathStep::Key(key), DeValue::Table(table)) => table.get(*key),
            (PathStep::Named(key), DeValue::Table(table)) => table.get(key.as_str()),
            (PathStep::Index(index), DeValue::Array(items)) => items.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        here = next;
        span.clone_from(&here.span());
    }
    Some(line_of(text, span.start))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn spell(path: &[PathStep]) -> String {
    let mut spelt = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if spelt.is_empty() => spelt.push_str(key),
            PathStep::Key(key) => spelt.push_str(&format!(".{key}")),
            PathStep::Named(key) => spelt.push_str(&format!(".{key}")),
            PathStep::Index(index) => spelt.push_str(&format!("[{index}]")),
        }
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"name = "toy"
title = "Toy"
modes = ["reverse"]
directories = ["log"]
logs = ["log/access.log"]

[version]
command = ["toy", "-v"]
after = "toy/"

[[file]]
path = "toy.conf"
text = '''
listen {{ listen.ip }}:{{ listen.port }}
cache {{ memory.bytes }}
'''

[start]
command = ["toy", "-f", "{{ work }}/toy.conf"]

[[counters]]
format = "log-words"
log = "log/access.log"
[counters.names]
hits = ["HIT"]
"#;

    fn error(text: &str) -> String {
        read("toy.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_good_one_is_read_and_kept_as_text() {
        let description = read("toy.toml", GOOD).unwrap();
        assert_eq!(description.name, "toy");
        assert_eq!(description.source, GOOD);
    }

    #[test]
    fn an_unknown_field_is_refused_with_its_line() {
        let error = error(&GOOD.replace("[start]", "[start]\ntimeout = 3"));
        assert!(error.starts_with("toy.toml:19: unknown field `timeout`"), "{error}");
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = error(&GOOD.replace("title = \"Toy\"\n", ""));
        assert!(error.contains("missing field `title`"), "{error}");
    }

    #[test]
    fn a_mistake_in_a_template_is_found_on_its_own_line() {
        let error = error(&GOOD.replace("memory.bytes", "memory.byte"));
        assert!(error.starts_with("toy.toml:15: file[0].text: the template cannot be filled in"), "{error}");
        assert!(error.contains("`cache {{ memory.byte }}`"), "{error}");
    }

    #[test]
    fn a_mistake_in_an_argument_is_found_too() {
        let error = error(&GOOD.replace("{{ work }}", "{{ wrok }}"));
        assert!(error.starts_with("toy.toml:19: start.command[2]: "), "{error}");
    }

    #[test]
    fn a_program_whose_name_comes_out_empty_is_refused() {
        for name in ["", "{% if http2 %}toy{% endif %}"] {
            let error =
                error(&GOOD.replace("command = [\"toy\", \"-f\"", &format!("command = [\"{name}\", \"-f\"")));
            assert!(error.starts_with("toy.toml:19: start.command[0]: must name a program"), "{error}");
        }
    }

    #[test]
    fn templates_are_found_wherever_they_stand() {
        let good = GOOD.replacen("directories", "tls = [\"robots\"]\ndirectories", 1);
        let counters = "format = \"log-words\"\nlog = \"log/access.log\"\n";
        let terminator = "[tls-terminator]\ntitle = \"T\"\nversion = { command = [\"t\"], after = \"\" }\n\
                          command = [\"t\", \"{{ x }}\"]\n[start]";
        for (what, with, place) in [
            ("[start]", "[[prepare]]\ncommand = [\"a\", \"{{ x }}\"]\n[start]", "prepare[0].command[1]"),
            ("[start]", terminator, "tls-terminator.command[1]"),
            ("[start]", "[start]\nenvironment = { A = \"{{ x }}\" }", "start.environment"),
            (counters, "format = \"json\"\npath = \"/{{ x }}\"\n", "counters[0].path"),
            (counters, "format = \"json\"\npath = \"/\"\nhost = \"{{ x }}\"\n", "counters[0].host"),
            (counters, "format = \"json\"\ncommand = [\"a\", \"{{ x }}\"]\n", "counters[0].command"),
        ] {
            let error = error(&good.replacen(what, with, 1));
            assert!(
                error.contains(&format!(": {place}: the template cannot be filled in")),
                "{place}: {error}"
            );
        }
    }

    #[test]
    fn a_path_out_of_the_work_directory_is_refused() {
        let outside = error(&GOOD.replace("\"toy.conf\"", "\"../toy.conf\""));
        assert!(outside.contains("file[0].path: `../toy.conf` must lie below"), "{outside}");
        let absolute = error(&GOOD.replace("[\"log\"]", "[\"/log\"]"));
        assert!(absolute.starts_with("toy.toml:4: directories[0]"), "{absolute}");
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        assert!(error(&GOOD.replace("\"toy\"\ntitle", "\"builtin\"\ntitle")).contains("name: `builtin`"));
        assert!(error(&GOOD.replace("\"toy\"\ntitle", "\"My Toy\"\ntitle")).contains("small letters"));
    }

    #[test]
    fn counters_come_from_exactly_one_place() {
        let both = error(&GOOD.replace("[counters.names]", "path = \"/stats\"\n[counters.names]"));
        assert!(both.contains("counters[0]: must say exactly one"), "{both}");
        let unknown = error(&GOOD.replace("hits = [\"HIT\"]", "hit = [\"HIT\"]"));
        assert!(unknown.contains("unknown variant `hit`"), "{unknown}");
        let term = error(&GOOD.replace("[\"HIT\"]", "[\"x*HIT\"]"));
        assert!(term.contains("is not an integer"), "{term}");
    }

    /// A setting and an access log behind the good description, and the kinds of mistakes in them.
    const MORE: &str = r#"
[setting.policy]
about = "Who goes first."
values = ["lru", "lfu"]
default = "lru"
"#;

    #[test]
    fn every_kind_of_mistake_is_told_with_its_line() {
        let more = format!("{GOOD}{MORE}");
        assert!(read("toy.toml", &more).is_ok());
        for (what, with, begins) in [
            ("title = \"Toy\"", "title = Toy", "toy.toml:2: "),
            ("title = \"Toy\"", "title = 3", "toy.toml:2: invalid type: integer"),
            ("[\"reverse\"]", "[\"backward\"]", "toy.toml:3: unknown variant `backward`"),
            ("[\"reverse\"]", "[]", "toy.toml:3: modes: "),
            ("[\"toy\", \"-v\"]", "[]", "toy.toml:8: version.command: must name a program"),
            ("[start]", "[ready]\ntimeout-s = 0\n[start]", "toy.toml:19: ready.timeout-s: "),
            ("[start]", "[ready]\npath = \"x\"\n[start]", "toy.toml:19: ready.path: "),
            ("[start]", "[stop]\nsettle-s = 90.0\n[start]", "toy.toml:19: stop.settle-s: "),
            ("[start]", "[stop]\nsignal = \"HUP\"\n[start]", "toy.toml:19: unknown variant `HUP`"),
            ("[start]", "[[empty]]\ncommand = []\n[start]", "toy.toml:19: empty[0].command: must name"),
            (
                "[start]",
                "[[companion]]\ncommand = [\"{{ x }}\"]\n[start]",
                "toy.toml:19: companion[0].command[0]: ",
            ),
            (
                "\"log/access.log\"\n[",
                "\"log/other.log\"\n[",
                "toy.toml:21: counters[0]: the log `log/other.log`",
            ),
            ("log = \"log/access.log\"", "path = \"/x\"", "toy.toml:21: counters[0]: `log` and the format"),
            ("log-words", "csv", "toy.toml:22: unknown variant `csv`"),
            ("hits = [\"HIT\"]", "", "toy.toml:21: counters[0]: `names` names no counter"),
            ("hits = [\"HIT\"]", "hits = [\"-\"]", "toy.toml:25: `-` names no counter"),
            (
                "default = \"lru\"",
                "default = \"lri\"",
                "toy.toml:30: setting.policy.default: `lri` is not one of",
            ),
            ("[setting.policy]", "[setting.Policy]", "toy.toml:27: setting.Policy: `Policy` must be small"),
            ("values = ", "value = ", "toy.toml:29: unknown field `value`"),
            (
                "logs =",
                "access-log = { path = \"a\", format = \"{x}\" }\nlogs =",
                "toy.toml:5: access-log.format: ",
            ),
            (
                "logs =",
                "access-log = { path = \"/a\", format = \"\" }\nlogs =",
                "toy.toml:5: access-log.path: ",
            ),
        ] {
            assert!(more.contains(what), "{what}");
            let error = error(&more.replacen(what, with, 1));
            assert!(error.starts_with(begins), "{with}: {error}");
        }
        let socket =
            more.replace("log = \"log/access.log\"\n[", "socket = \"s\"\n[").replace("log-words", "json");
        assert!(
            error(&socket).starts_with("toy.toml:21: counters[0]: `socket` and `say`"),
            "{}",
            error(&socket)
        );
    }

    #[test]
    fn every_value_of_a_setting_is_tried() {
        let wrong_branch = format!("{GOOD}{MORE}")
            .replace("cache {{ memory.bytes }}", "{% if setting.policy == 'lfu' %}{{ nothing }}{% endif %}");
        let error = error(&wrong_branch);
        assert!(error.starts_with("toy.toml:15: file[0].text: "), "{error}");
    }

    #[test]
    fn settings_have_their_defaults_until_something_is_chosen() {
        let mut description =
            read("toy.toml", &format!("{GOOD}{MORE}stores = {{ lfu = [\"disk\"] }}\n")).unwrap();
        assert_eq!(description.settings_as_typed()["policy"], "lru");
        assert_eq!(description.capacity.stores.len(), 2);
        let wanted = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        description.set(&wanted("policy", "lfu")).unwrap();
        assert_eq!(description.settings_as_typed()["policy"], "lfu");
        assert_eq!(description.capacity.stores, [super::super::Store::Disk]);
        let unknown = description.set(&wanted("polcy", "lru")).unwrap_err().to_string();
        assert_eq!(unknown, "Toy has no setting `polcy`; there are policy; did you mean `policy`?");
        let value = description.set(&wanted("policy", "lsu")).unwrap_err().to_string();
        assert!(value.contains("`lsu` is no value for `policy` of Toy: it takes one of lru, lfu"), "{value}");
    }

    proptest::proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0usize..GOOD.len(), with in "[ -~]{0,3}") {
            let mut text = GOOD.to_owned();
            text.replace_range(at..at + 1, &with);
            let _ = read("toy.toml", &text);
        }
    }
}
