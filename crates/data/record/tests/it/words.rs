//! The messages of roles survive their journey through a pipe.

use assay_measurement::measured::Measured;
use assay_protocol::evaluation::{CollectorInterval, ListenerRow, MultiplierCounters, TargetCounters};
use assay_protocol::message::{Command, Event, PhaseEvent, ProxyCounters};

use crate::sample;

fn there_and_back(event: Event) {
    let line = serde_json::to_string(&event).unwrap();
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event, "{line}");
}

#[test]
fn every_event_is_a_line_and_comes_back_as_it_was() {
    there_and_back(Event::Ready { listening: vec!["127.0.0.1:80".parse().unwrap()] });
    there_and_back(Event::Measured(Measured::Robots(sample::robots(1000, 3).into())));
    there_and_back(Event::Measured(Measured::Origins(sample::origins(1000, 3).into())));
    there_and_back(Event::Proxy(Box::new(ProxyCounters { hits: u64::MAX, ..ProxyCounters::default() })));
    let listener = ListenerRow { listener: 2, late_max_us: 9, ..ListenerRow::default() };
    there_and_back(Event::Collector(Box::new(CollectorInterval {
        listeners: vec![listener],
        ..CollectorInterval::default()
    })));
    let target = TargetCounters { requested: u64::MAX, ..TargetCounters::default() };
    there_and_back(Event::Multiplier(Box::new(MultiplierCounters {
        targets: vec![target],
        ..MultiplierCounters::default()
    })));
    there_and_back(Event::Phase(PhaseEvent::Began { phase: 1, at_ms: 5 }));
    there_and_back(Event::Phase(PhaseEvent::Ended { phase: 1, at_ms: 5, launched: vec![1, 2] }));
    there_and_back(Event::Phase(PhaseEvent::Progress { phase: 1, done: 0.25 }));
    there_and_back(Event::Measured(Measured::Example(sample::example(7).into())));
    there_and_back(Event::Fault {
        reason: assay_measurement::doubt::Reason::LabFailed,
        message: "a\nb".into(),
    });
    there_and_back(Event::Measured(Measured::Thread(sample::thread("robots", None).into())));
    there_and_back(Event::Measured(Measured::Stall(sample::stall().into())));
    there_and_back(Event::Measured(Measured::Baseline(sample::baseline(Some(1)).into())));
    there_and_back(Event::Done);
}

#[test]
fn commands_come_back_as_they_were() {
    for command in [Command::Start { at_monotonic_ns: u64::MAX, at_unix_s: 9 }, Command::Stop] {
        let line = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&line).unwrap(), command);
    }
}
