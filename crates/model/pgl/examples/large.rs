//! The time that a workload of so many lines takes to compile.
//!
//! `cargo run --release -p assay-pgl --example large -- [LINES [SHAPE]]` makes workloads of several shapes (or one) and
//! compiles each; `-- LINES SHAPE print` prints one instead.

use std::time::Instant;

use assay_pgl::{SearchPath, compile};

/// A shape: its name, and what makes the text of at least so many lines.
type Shape = (&'static str, fn(usize) -> String);

/// All of them: what grows in each is what its name says.
const SHAPES: [Shape; 10] = [
    ("mixed", mixed),
    ("contents", contents),
    ("robots", robots),
    ("servers", servers),
    ("phases", phases),
    ("assignments", assignments),
    ("array", array),
    ("appended", appended),
    ("script", script),
    ("mistakes", mistakes),
];

const HEAD: &str = "Content C = { kind = \"c\"; size = exp(13KB); cachable = 80%; };\n\
                    Server S = { kind = \"s\"; contents = [C]; addresses = ['10.0.0.1:80']; };\n";
const TAIL: &str = "Robot Last = { addresses = ['10.9.0.1']; origins = S.addresses; };\n\
                    Phase last = { name = \"last\"; goal.duration = 1min; };\nschedule(last);\nuse(S, Last);\n";

/// Something of everything, as a site's workload would be: content types, a server and robots for each of many sites.
fn mixed(lines: usize) -> String {
    let mut text =
        String::from("PopModel pop = { pop_distr = popUnif(); hot_set_frac = 1%; hot_set_prob = 10%; };\n");
    let mut names = Vec::new();
    for n in 0..lines / 32 {
        let (a, b) = (n / 250, 1 + n % 250);
        text.push_str(&format!(
            "// Site {n}.\nContent image{n} = {{\n    kind = \"image {n}\";\n    size = exp({}KB);\n    cachable = 80%;\n    \
             mime.extensions = [ \".gif\": 60%, \".png\" ];\n}};\nContent page{n} = {{\n    kind = \"page {n}\";\n    \
             size = logn(8.5KB, 4KB);\n    cachable = 90%;\n    may_contain = [ image{n} ];\n    \
             embedded_obj_cnt = zipf(13);\n}};\nServer S{n} = {{\n    kind = \"site {n}\";\n    \
             contents = [ image{n}: 80%, page{n} ];\n    direct_access = [ page{n} ];\n    \
             addresses = ['10.{}.{}.{b}:80'];\n    xact_think = norm(0.3sec, 0.1sec);\n}};\nRobot R{n} = {{\n    \
             origins = S{n}.addresses;\n    addresses = ['10.{}.{}.{b}' ** 2];\n    req_rate = 0.4/sec;\n    \
             recurrence = 55% / page{n}.cachable;\n    embed_recur = 100%;\n    pop_model = pop;\n    \
             req_types = [ \"Basic\", \"Ims304\": 10% ];\n}};\nuse(S{n}, R{n});\n",
            1 + n % 40,
            a / 250,
            a % 250,
            100 + a / 250,
            a % 250,
        ));
        names.push(n);
    }
    text.push_str("Phase top = { name = \"top\"; goal.duration = 1hour; };\nschedule(top);\n");
    text
}

fn contents(lines: usize) -> String {
    let count = (lines / 2).min(60_000);
    let mut text = String::from(HEAD);
    for n in 0..count {
        text.push_str(&format!("Content c{n} = {{ size = exp({n}Byte + 1KB);\n}};\n"));
    }
    let names: Vec<String> = (0..count).map(|n| format!("c{n}")).collect();
    text.push_str(&format!("S.contents = [\n{}];\n", names.join(",\n")));
    text + TAIL
}

fn robots(lines: usize) -> String {
    let mut text = String::from(HEAD);
    for n in 0..lines / 2 {
        text.push_str(&format!(
            "Robot R{n} = {{ addresses = ['10.1.{}.{}']; origins = S.addresses; req_rate = 1/sec; }};\nuse(R{n});\n",
            n / 250 % 250,
            1 + n % 250
        ));
    }
    text + TAIL
}

fn servers(lines: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str("addr[] all = [];\n");
    for n in 0..(lines / 2).min(60_000) {
        text.push_str(&format!(
            "Server S{n} = {{ contents = [C]; addresses = ['10.{}.{}.{}:80']; }};\nuse(S{n});\n",
            1 + n / 62_500,
            n / 250 % 250,
            1 + n % 250
        ));
    }
    text + TAIL
}

fn phases(lines: usize) -> String {
    let mut text = String::from(HEAD);
    for n in 0..(lines / 2).min(60_000) {
        text.push_str(&format!(
            "Phase p{n} = {{ name = \"same\"; goal.duration = 1min; }};\nschedule(p{n});\n"
        ));
    }
    text + TAIL
}

fn assignments(lines: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str("Robot Big = { kind = \"big\"; };\nint count = 0;\ntime length = 0sec;\n");
    for n in 0..lines / 4 {
        text.push_str(&format!(
            "count = count + 1;\nlength = length + 1sec * {n} / (1 + {n} % 7);\nBig.req_rate = 1/(length + 1sec);\n\
             Big.pop_model.hot_set_frac = 5% / (1 + count);\n"
        ));
    }
    text + TAIL
}

fn array(lines: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str("addr[] all = [\n");
    for n in 0..lines {
        text.push_str(&format!("    '10.2.{}.{}',\n", n / 250 % 250, 1 + n % 250));
    }
    text.push_str("];\nRobot Many = { addresses = all; origins = S.addresses; };\nuse(Many);\n");
    text + TAIL
}

fn appended(lines: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str("addr[] all = [];\n");
    for n in 0..lines {
        text.push_str(&format!("all = all + '10.2.{}.{}';\n", n / 250 % 250, 1 + n % 250));
    }
    text.push_str("Robot Many = { addresses = all; origins = S.addresses; };\nuse(Many);\n");
    text + TAIL
}

fn script(lines: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str("Goal g = { duration = 5sec; };\nPhase long = { name = \"long\"; goal.duration = 1hour;\nscript = {\nevery g do {\n");
    text.push_str("StatSample s = currentSample();\nfloat load = 0.5;\n");
    for n in 0..lines / 2 {
        text.push_str(&format!("if (s.rep.rptm.mean < {n}ms) then {{ changeLoadFactorBy({n} * 0.01%); }}\nload = s.err_xact.ratio + {n};\n"));
    }
    text.push_str("}\n};\n};\nschedule(long);\n");
    text + TAIL
}

fn mistakes(lines: usize) -> String {
    let mut text = String::from(HEAD);
    for n in 0..lines / 2 {
        text.push_str(&format!("int name{n} = 1;\nint other{n} = nama{n} + frm{n}({n}) + S.adress{n};\n"));
    }
    text + TAIL
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let lines = arguments.next().map_or(100_000, |lines| lines.parse().expect("LINES is a number"));
    let wanted = arguments.next();
    let chosen = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if arguments.next().is_some() {
        SHAPES.iter().filter(|(name, _)| chosen(name)).for_each(|(_, make)| print!("{}", make(lines)));
        return;
    }
    println!("{:12} {:>8} {:>9} {:>8}  outcome", "shape", "lines", "seconds", "ns/line");
    for (name, make) in SHAPES.into_iter().filter(|(name, _)| chosen(name)) {
        let text = make(lines);
        let count = text.lines().count();
        let resolver = SearchPath::new(vec![], |path| Ok((path == "large.pg").then(|| text.clone())));
        let start = Instant::now();
        let result = compile("large.pg", &resolver);
        let seconds = start.elapsed().as_secs_f64();
        let outcome = match &result {
            Ok(compiled) => format!("{} warnings", compiled.warnings.len()),
            Err(failure) => failure.to_string(),
        };
        println!("{name:12} {count:>8} {seconds:>9.3} {:>8.0}  {outcome}", seconds * 1e9 / count as f64);
    }
}
