//! Scripts of phases and thermostats: measurements go in, actions come out.

use std::time::Duration;

use assay_workload::model::{Goal, Script, ScriptExpr, ScriptStatement, Thermostat};
use assay_workload::script::{
    Factors, ResponseClass, Sample, ScriptAction, ScriptRun, ScriptValue, ThermostatRun, is_statistic,
};
use proptest::prelude::*;

const FULL: Factors = Factors { load: 0.5, population: 1.0 };

fn number(value: f64) -> ScriptExpr {
    ScriptExpr::Number(value)
}

fn binary(left: ScriptExpr, sign: &str, right: ScriptExpr) -> ScriptExpr {
    ScriptExpr::Binary(sign.into(), Box::new(left), Box::new(right))
}

fn statistic(name: &str) -> ScriptExpr {
    ScriptExpr::Statistic { sample: 0, name: name.into() }
}

fn sampled(whole_phase: bool) -> ScriptStatement {
    ScriptStatement::TakeSample { variable: 0, whole_phase }
}

fn every(seconds: u64, body: Vec<ScriptStatement>) -> ScriptStatement {
    ScriptStatement::Every {
        goal: Goal { duration: Some(Duration::from_secs(seconds)), ..Goal::default() },
        body,
    }
}

/// A second in which so many responses came, each after that long.
fn second(responses: u64, time_s: f64) -> Sample {
    let mut sample = Sample::default();
    (sample.duration_s, sample.requests, sample.ok) = (1.0, responses, responses);
    for _ in 0..responses {
        sample.class_mut(ResponseClass::Rep).record(time_s, 1000);
        sample.class_mut(ResponseClass::Fill).record(time_s, 1000);
    }
    sample
}

fn printed(statements: Vec<ScriptStatement>, interval: Option<&Sample>) -> Vec<String> {
    let (mut run, mut actions) = ScriptRun::start(&Script(statements), FULL);
    actions.extend(interval.map(|interval| run.on_interval(interval, FULL)).unwrap_or_default());
    let line = |action| match action {
        ScriptAction::Print(line) => line,
        other => panic!("{other:?}"),
    };
    actions.into_iter().map(line).collect()
}

#[test]
fn a_watchdog_runs_once_a_sample_and_moves_the_load() {
    // every 2 s: if the mean response time is below 100 ms, 20 % more load.
    let fast = binary(statistic("rep.rptm.mean"), "<", ScriptExpr::Time(Duration::from_millis(100)));
    let more = ScriptStatement::Load { value: number(0.2), relative: true };
    let then = ScriptStatement::If { condition: fast, then: vec![more], otherwise: vec![] };
    let script = Script(vec![every(2, vec![sampled(false), then])]);
    let (mut run, actions) = ScriptRun::start(&script, FULL);
    assert!(actions.is_empty());
    let mut load = 0.5;
    let mut seen = Vec::new();
    for time_s in [0.05, 0.05, 0.05, 0.3, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01] {
        for action in run.on_interval(&second(10, time_s), Factors { load, population: 1.0 }) {
            let ScriptAction::Load(factor) = action else { panic!("{action:?}") };
            load = factor;
        }
        seen.push((load * 1000.0_f64).round());
    }
    // Up, not after the slow sample, then up again.
    assert_eq!(
        seen,
        [500.0, 600.0, 600.0, 600.0, 600.0, 720.0, 720.0, 864.0, 864.0, 1000.0],
        "at most 100 %"
    );
}

#[test]
fn variables_and_samples_keep_their_values() {
    let add = binary(ScriptExpr::Variable(3), "+", number(1.0));
    let body = vec![
        ScriptStatement::Set { variable: 3, value: add },
        sampled(true),
        ScriptStatement::Print(vec![
            ScriptExpr::Variable(3),
            ScriptExpr::Text(" of ".into()),
            statistic("duration"),
        ]),
        ScriptStatement::SampleGoal(Goal { transactions: Some(5), ..Goal::default() }),
    ];
    let script = Script(vec![ScriptStatement::Set { variable: 3, value: number(0.0) }, every(3, body)]);
    let (mut run, _) = ScriptRun::start(&script, FULL);
    let actions: Vec<_> = (0..6).flat_map(|_| run.on_interval(&second(3, 0.1), FULL)).collect();
    // After three seconds, and from then on after five transactions.
    let lines = ["1 of 3sec", "2 of 5sec"].map(|line| ScriptAction::Print(line.into()));
    assert_eq!(actions, lines);
}

#[test]
fn a_phase_can_be_ended_and_its_population_set() {
    let statements = vec![
        ScriptStatement::Population { value: number(0.25), relative: false },
        ScriptStatement::Population { value: number(9.0), relative: true },
        ScriptStatement::Load { value: number(0.0), relative: false },
        every(1, vec![ScriptStatement::EndPhase]),
    ];
    let (mut run, actions) = ScriptRun::start(&Script(statements), FULL);
    assert_eq!(
        actions,
        [ScriptAction::Population(0.25), ScriptAction::Population(1.0), ScriptAction::Load(0.0)]
    );
    assert_eq!(run.on_interval(&second(0, 0.0), FULL), [ScriptAction::EndPhase]);
}

#[test]
fn every_kind_of_goal_ends_a_sample() {
    let ran = |goal: Goal, errors: u64| {
        let body = vec![ScriptStatement::Print(vec![])];
        let (mut run, _) = ScriptRun::start(&Script(vec![ScriptStatement::Every { goal, body }]), FULL);
        let mut interval = second(1200, 0.1);
        interval.errors = errors;
        !run.on_interval(&interval, FULL).is_empty()
    };
    let goal = Goal::default;
    assert!(
        ran(Goal { transactions: Some(1200), ..goal() }, 0)
            && !ran(Goal { transactions: Some(1201), ..goal() }, 0)
    );
    assert!(ran(Goal { fill_bytes: Some(1_200_000), ..goal() }, 0));
    assert!(!ran(Goal { fill_bytes: Some(1_200_001), ..goal() }, 0));
    assert!(ran(Goal { errors: Some(3.0), ..goal() }, 3) && !ran(Goal { errors: Some(3.0), ..goal() }, 2));
    assert!(
        ran(Goal { errors: Some(0.01), ..goal() }, 13) && !ran(Goal { errors: Some(0.02), ..goal() }, 13)
    );
    assert!(!ran(goal(), 100), "without a goal it never ends");
}

#[test]
fn values_are_printed_with_their_units() {
    let time = |ms| ScriptExpr::Time(Duration::from_millis(ms));
    let print = |part| ScriptStatement::Print(vec![part]);
    let parts = vec![
        number(2.5),
        number(100.0),
        time(250),
        time(90_000),
        binary(time(600_000), "*", number(2.0)),
        binary(time(3_600_000), "/", time(1_800_000)),
        binary(number(7.0), "%", number(4.0)),
        binary(number(2.0), "^", number(10.0)),
        binary(number(1.0), "^^", number(1.0)),
        binary(ScriptExpr::Text("a".into()), "+", number(1.0)),
        binary(ScriptExpr::Text("a".into()), "==", ScriptExpr::Text("a".into())),
        ScriptExpr::Unary('-', Box::new(time(1000))),
        ScriptExpr::Unary('!', Box::new(number(0.0))),
        ScriptExpr::Extreme { greatest: true, of: vec![number(1.0), number(3.0), number(2.0)] },
        ScriptExpr::Extreme { greatest: false, of: vec![time(5), time(3)] },
        ScriptExpr::LoadFactor,
        ScriptExpr::PopulationFactor,
    ];
    let lines = printed(parts.into_iter().map(print).collect(), None);
    let expected = [
        "2.5", "100", "250msec", "90sec", "20min", "2", "3", "1024", "0", "a1", "1", "-1sec", "1", "3",
        "3msec", "0.5", "1",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn statistics_have_the_names_of_polygraph() {
    let mut sample = second(10, 0.2);
    sample.errors = 2;
    sample.class_mut(ResponseClass::OfferedHit).record(0.1, 3000);
    sample.class_mut(ResponseClass::OfferedMiss).record(0.1, 1000);
    sample.class_mut(ResponseClass::Head).record(0.1, 300);
    sample.class_mut(ResponseClass::Head).record(0.3, 100);
    let value = |name: &str| sample.statistic(name).map(|value| value.number());
    for (name, expected) in [
        ("rep.rptm.mean", 0.2),
        ("baseline.rptm.max", 0.2),
        ("rep.size.sum", 10_000.0),
        ("rep.rptm.count", 10.0),
        ("rep.rptm.rel_dev", 0.0),
        ("baseline.req.rate", 10.0),
        ("offered.ratio.obj", 50.0),
        ("offered.ratio.byte", 75.0),
        ("offered.hit.size.mean", 3000.0),
        ("page.rptm.mean", 0.0),
        ("err_xact.count", 2.0),
        ("err_xact.ratio", 200.0 / 12.0),
        ("head.rptm.std_dev", 100.0),
        ("head.rptm.rel_dev", 50.0),
        ("head.size.std_dev", 100.0),
        ("duration", 1.0),
    ] {
        assert!((value(name).expect(name) - expected).abs() < 1e-4, "{name}");
    }
    assert_eq!(sample.statistic("duration"), Some(ScriptValue::Seconds(1.0)));
    assert!(matches!(sample.statistic("head.rptm.std_dev"), Some(ScriptValue::Number(_))), "a plain number");
    for name in ["rep", "rep.rptm", "rep.rptm.median", "rep.colour.mean", "nothing.rptm.mean", "", "."] {
        assert!(!is_statistic(name), "{name}");
    }
}

#[test]
fn a_thermostat_keeps_response_times_within_bounds() {
    let ms = Duration::from_millis;
    let thermostat = Thermostat { sample: ms(2000), step: 0.1, low: Some(ms(50)), high: Some(ms(100)) };
    let mut thermometer = ThermostatRun::new(thermostat);
    let mut tell = |times: [f64; 2], load| {
        assert_eq!(thermometer.on_interval(&second(10, times[0]), load), None, "the sample is not over");
        thermometer.on_interval(&second(10, times[1]), load)
    };
    let near = |load: Option<f64>, wanted: f64| load.is_some_and(|load| (load - wanted).abs() < 1e-9);
    assert!(near(tell([0.02, 0.04], 0.5), 0.55));
    assert!(near(tell([0.2, 0.1], 0.5), 0.45));
    assert_eq!(tell([0.02, 0.12], 0.5), None, "70 ms on average are fine");
    assert!(near(tell([0.01, 0.01], 0.95), 1.0), "not above 100 %");
    assert_eq!(tell([0.01, 0.01], 1.0), None);
    let mut silent = ThermostatRun::new(thermostat);
    silent.on_interval(&second(0, 0.0), 0.5);
    assert!(near(silent.on_interval(&second(0, 0.0), 0.5), 0.45), "no response at all is too slow");
}

fn any_expr() -> impl Strategy<Value = ScriptExpr> {
    let leaf = prop_oneof![
        any::<f64>().prop_map(ScriptExpr::Number),
        any::<u32>().prop_map(|ms| ScriptExpr::Time(Duration::from_millis(ms.into()))),
        ".{0,4}".prop_map(ScriptExpr::Text),
        any::<u16>().prop_map(ScriptExpr::Variable),
        ("[a-z_.]{0,20}", 0u16..3).prop_map(|(name, sample)| ScriptExpr::Statistic { sample, name }),
        Just(ScriptExpr::LoadFactor),
    ];
    let signs = vec!["+", "-", "*", "/", "%", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "^^", "?"];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            (prop::sample::select(signs.clone()), inner.clone(), inner.clone())
                .prop_map(|(sign, a, b)| binary(a, sign, b)),
            (prop::sample::select(vec!['!', '-', '?']), inner.clone())
                .prop_map(|(sign, a)| ScriptExpr::Unary(sign, Box::new(a))),
            (any::<bool>(), prop::collection::vec(inner, 0..3))
                .prop_map(|(greatest, of)| ScriptExpr::Extreme { greatest, of }),
        ]
    })
}

fn any_statement() -> impl Strategy<Value = ScriptStatement> {
    let leaf = prop_oneof![
        (0u16..4, any_expr()).prop_map(|(variable, value)| ScriptStatement::Set { variable, value }),
        (0u16..3, any::<bool>())
            .prop_map(|(variable, whole_phase)| ScriptStatement::TakeSample { variable, whole_phase }),
        (any_expr(), any::<bool>()).prop_map(|(value, relative)| ScriptStatement::Load { value, relative }),
        (any_expr(), any::<bool>())
            .prop_map(|(value, relative)| ScriptStatement::Population { value, relative }),
        prop::collection::vec(any_expr(), 0..3).prop_map(ScriptStatement::Print),
        Just(ScriptStatement::EndPhase),
        Just(ScriptStatement::SampleGoal(Goal { transactions: Some(1), ..Goal::default() })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let block = prop::collection::vec(inner, 0..3);
        prop_oneof![
            (any_expr(), block.clone(), block.clone())
                .prop_map(|(condition, then, otherwise)| ScriptStatement::If { condition, then, otherwise }),
            (0u64..3, block).prop_map(|(seconds, body)| every(seconds, body)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_script_breaks_it_and_factors_stay_factors(statements in prop::collection::vec(any_statement(), 0..6)) {
        let (mut run, mut actions) = ScriptRun::start(&Script(statements), FULL);
        for _ in 0..12 {
            actions.extend(run.on_interval(&second(3, 0.1), FULL));
        }
        for action in actions {
            if let ScriptAction::Load(factor) | ScriptAction::Population(factor) = action {
                prop_assert!((0.0..=1.0).contains(&factor), "{factor}");
            }
        }
    }
}
