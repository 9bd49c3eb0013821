//! The machines of a run that took several, in words.

use assay_record::run::{FleetInfo, FleetMachine};

/// Each machine, and how well their clocks are known, which leaves so many outcomes open: names and values.
pub(crate) fn facts(fleet: &FleetInfo, unsure: u64) -> Vec<(String, String)> {
    let machines =
        fleet.machines.iter().map(|machine| (format!("machine {}", machine.name), machine_text(machine)));
    machines.chain([("clocks".to_owned(), clocks(fleet, unsure))]).collect()
}

/// The same in two lines.
pub(crate) fn lines(fleet: &FleetInfo, unsure: u64) -> [(&'static str, String); 2] {
    let machine = |machine: &FleetMachine| format!("{} {}", machine.name, roles(machine));
    let machines: Vec<String> = fleet.machines.iter().map(machine).collect();
    [("machines", machines.join("; ")), ("clocks", clocks(fleet, unsure))]
}

fn roles(machine: &FleetMachine) -> String {
    let role = |role: &String| match machine.robots {
        Some((first, last)) if role == "robots" => format!("robots {first} to {last}"),
        _ => role.clone(),
    };
    machine.roles.iter().map(role).collect::<Vec<_>>().join(" and ")
}

fn machine_text(machine: &FleetMachine) -> String {
    let mut words = vec![roles(machine), machine.address.clone(), format!("{} processors", machine.cpus)];
    words.push(match machine.clock_error_us {
        Some(error_us) => format!("clock known to {}", ms(error_us)),
        None => "clock not known".to_owned(),
    });
    words.extend(machine.lost_at_ms.map(|at_ms| format!("lost after {:.1} s", at_ms as f64 / 1000.0)));
    words.join(", ")
}

fn clocks(fleet: &FleetInfo, unsure: u64) -> String {
    let start = match fleet.start_spread_us {
        Some(spread_us) => format!("all started within {}", ms(spread_us)),
        None => "how far apart machines started is not known".to_owned(),
    };
    let known = match fleet.clock_error_us {
        Some(error_us) => format!("{start}; instants of two machines are known to {}", ms(error_us)),
        None => format!("{start}; instants of two machines cannot be compared"),
    };
    match unsure {
        0 => known,
        1 => format!("{known}, which leaves open whether 1 response was made for its request or before"),
        n => {
            format!("{known}, which leaves open whether {n} responses were made for their requests or before")
        }
    }
}

fn ms(us: u64) -> String {
    format!("{:.2} ms", us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_their_clocks_are_told_in_words() {
        let one = FleetMachine {
            name: "m1".into(),
            roles: vec!["robots".into(), "origins".into()],
            robots: Some((0, 19)),
            clock_error_us: Some(120),
            lost_at_ms: Some(3200),
            ..FleetMachine::default()
        };
        let two = FleetMachine { name: "m2".into(), roles: vec!["proxy".into()], ..FleetMachine::default() };
        let mut fleet =
            FleetInfo { machines: vec![one, two], start_spread_us: Some(900), ..FleetInfo::default() };
        let [(_, machines), (_, clocks)] = lines(&fleet, 0);
        assert_eq!(machines, "m1 robots 0 to 19 and origins; m2 proxy");
        assert_eq!(clocks, "all started within 0.90 ms; instants of two machines cannot be compared");
        fleet.clock_error_us = Some(1500);
        let facts = facts(&fleet, 12);
        assert!(facts[0].1.contains("clock known to 0.12 ms, lost after 3.2 s"), "{facts:?}");
        assert!(facts[1].1.contains("clock not known"), "{facts:?}");
        assert!(facts[2].1.contains("known to 1.50 ms, which leaves open whether 12 responses"), "{facts:?}");
    }
}
