//! The corpus of messages that could be read in two ways, through the switch, between sockets that read strictly.

use std::net::SocketAddr;

use assay_switch::Switch;

use crate::format::requests;
use crate::judge;
use crate::recorder::Recorder;
use crate::responses::responses;

fn before(server: SocketAddr) -> Switch {
    let text = format!("listen = [\"127.0.0.1:0\"]\n[[server]]\naddress = \"{server}\"\n");
    Switch::start(assay_switch::read("corpus.toml", &text).unwrap()).unwrap()
}

#[test]
fn no_request_of_the_corpus_comes_out_in_a_way_that_could_be_read_in_two() {
    let cases = requests();
    let mut wrong = Vec::new();
    for case in &cases {
        let recorder = Recorder::start();
        let switch = before(recorder.address);
        let front = judge::front(switch.addresses()[0], case);
        drop(switch);
        let back = judge::back(&recorder.finish(), case);
        let both = [front, back].into_iter().filter_map(Result::err);
        wrong.extend(both.map(|what| format!("{}: {what}", case.name())));
    }
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn no_response_of_the_corpus_reaches_another_client() {
    let cases = responses();
    let mut wrong = Vec::new();
    for case in &cases {
        let methods = case.method.as_deref().map_or(vec!["GET", "POST"], |method| vec![method]);
        for method in methods {
            let recorder = judge::misbehaving(case);
            let switch = before(recorder.address);
            let seen = judge::responded(switch.addresses()[0], case, method);
            drop(switch);
            recorder.finish();
            wrong.extend(seen.err().map(|what| format!("{} ({method}): {what}", case.name)));
        }
    }
    assert!(wrong.is_empty(), "{} things in {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
