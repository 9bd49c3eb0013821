//! Each way in which a response can be wrong, and the ways in which it may look odd and be right.

use proptest::prelude::*;

use super::*;

const ME: XactId = XactId { robot: 3, number: 17, place: 0 };
const OTHER: XactId = XactId { robot: 4, number: 2, place: 1 };
const SECOND: u64 = 1_000_000;

/// A basic GET, sent 20 s into the run.
const REQUESTED: CheckedRequest = CheckedRequest {
    id: ME,
    method: Method::Get,
    since_s: None,
    must_reach_origin: false,
    parts: false,
    sent_us: 20 * SECOND,
    clock_error_us: 0,
    key: 0xABCD,
    cachable: true,
    validation_updates: true,
    size: 1000,
};

/// The origin's own response to it.
const MINE: ResponseMark = ResponseMark {
    xact: ME,
    key: 0xABCD,
    version: 2,
    made_us: 20 * SECOND + 500,
    status: 200,
    held_us: 0,
    delay_us: 0,
    note: None,
};

/// One from the store, a second old.
const STORED: ResponseMark = ResponseMark { xact: OTHER, version: 1, made_us: 19 * SECOND, ..MINE };

fn response(mark: ResponseMark) -> ReceivedHead {
    ReceivedHead {
        status: 200,
        mark: Some(mark),
        content_length: Some(1000),
        is_coded: false,
        last_modified_s: None,
    }
}

/// Modified every ten seconds, fresh for five.
fn life(now_s: i64) -> Life {
    let modified_s = now_s - now_s.rem_euclid(10);
    let version = (modified_s / 10) as u64;
    Life {
        version,
        last_modified_s: Some(modified_s),
        next_modified_s: Some(modified_s + 10),
        expires_s: Some(now_s + 5),
    }
}

fn judge(requested: &CheckedRequest, response: &ReceivedHead) -> Result<CheckVerdict, CheckError> {
    judge_head(requested, response, 21 * SECOND, life, |_| None)
}

/// Judges a second after sending, whenever that was.
fn judge_at(requested: &CheckedRequest, response: &ReceivedHead) -> Result<CheckVerdict, CheckError> {
    judge_head(requested, response, requested.sent_us + SECOND, life, |_| None)
}

fn kind(requested: &CheckedRequest, response: &ReceivedHead) -> Option<ErrorKind> {
    judge(requested, response).err().map(|error| error.kind())
}

fn outcome_of(requested: &CheckedRequest, response: &ReceivedHead) -> Option<Outcome> {
    judge(requested, response).expect("is right").outcome
}

fn conditional(since_s: i64) -> CheckedRequest {
    CheckedRequest { since_s: Some(since_s), ..REQUESTED }
}

fn not_modified(mark: Option<ResponseMark>) -> ReceivedHead {
    ReceivedHead { status: 304, mark, content_length: None, is_coded: false, last_modified_s: None }
}

#[test]
fn a_response_made_for_this_request_is_a_miss() {
    let verdict = judge(&REQUESTED, &response(MINE)).expect("is right");
    assert_eq!(
        verdict,
        CheckVerdict {
            outcome: Some(Outcome::Miss),
            version: 2,
            body_bytes: Some(1000),
            ..CheckVerdict::NOT_OF_OBJECT
        }
    );
}

#[test]
fn a_response_made_for_another_is_a_hit_before_and_collapsed_after_sending() {
    assert_eq!(outcome_of(&REQUESTED, &response(STORED)), Some(Outcome::Hit));
    let later = ResponseMark { xact: OTHER, ..MINE };
    assert_eq!(outcome_of(&REQUESTED, &response(later)), Some(Outcome::Collapsed));
}

#[test]
fn a_response_made_for_nobody_is_a_hit_before_and_a_miss_after_sending() {
    assert_eq!(
        outcome_of(&REQUESTED, &response(ResponseMark { xact: XactId::NOBODY, ..STORED })),
        Some(Outcome::Hit)
    );
    let later = response(ResponseMark { xact: XactId::NOBODY, ..MINE });
    assert_eq!(outcome_of(&REQUESTED, &later), Some(Outcome::Miss));
    assert!(judge(&REQUESTED, &later).expect("is right").is_unattributed);
    assert!(!judge(&REQUESTED, &response(STORED)).expect("is right").is_unattributed);
    // So it may be one for an object that may not be stored.
    assert_eq!(kind(&CheckedRequest { cachable: false, ..REQUESTED }, &later), None);
}

#[test]
fn a_confirmation_for_this_request_is_revalidated_unless_the_robot_requested_it() {
    let confirmed = response(ResponseMark { status: 304, ..MINE });
    assert_eq!(outcome_of(&REQUESTED, &confirmed), Some(Outcome::Revalidated));
    assert_eq!(outcome_of(&conditional(0), &confirmed), Some(Outcome::Miss));
}

#[test]
fn a_status_that_the_request_cannot_have_is_wrong_unless_it_says_that_it_is_an_error() {
    let (wrong, error) = (ErrorKind::WrongStatus, ErrorKind::ErrorStatus);
    let expected = [(wrong, &[202, 204, 206, 301, 302, 600][..]), (error, &[400, 403, 404, 500, 503, 599])];
    for (expected, statuses) in expected {
        for status in statuses {
            let actual = ReceivedHead { status: *status, mark: None, ..response(MINE) };
            assert_eq!(kind(&REQUESTED, &actual), Some(expected), "{status}");
            assert_eq!(kind(&conditional(0), &actual), Some(expected), "{status}");
        }
    }
    let transformed = |bytes| ReceivedHead { status: 203, content_length: Some(bytes), ..response(MINE) };
    assert_eq!(kind(&REQUESTED, &transformed(1000)), None);
    assert_eq!(kind(&REQUESTED, &transformed(999)), Some(ErrorKind::WrongLength));
}

#[test]
fn a_response_that_names_its_origin_has_the_status_that_this_one_sent() {
    let changed = |origin, actual| {
        judge_status(&REQUESTED, actual, &ResponseMark { status: origin, ..MINE })
            .map_err(|error| assert_eq!(error, CheckError::StatusChanged { actual, origin }))
            .is_err()
    };
    for origin in [302, 401, 404, 503] {
        assert!(!changed(origin, origin));
        assert!([200, 203, 206, 304, 301, 407, 410, 502].iter().all(|actual| changed(origin, *actual)));
    }
    for origin in [200, 206, 304] {
        assert!([200, 203, 206, 304, 416].iter().all(|actual| !changed(origin, *actual)), "{origin}");
        assert!([400, 401, 404, 500, 504].iter().all(|actual| changed(origin, *actual)), "{origin}");
    }
    for actual in [202, 204, 206, 301, 302] {
        let transformed = ReceivedHead { status: actual, ..response(MINE) };
        assert_eq!(judge(&REQUESTED, &transformed), Err(CheckError::StatusChanged { actual, origin: 200 }));
    }
}

#[test]
fn what_an_origin_says_in_place_of_an_object_serves_no_other_request() {
    let judge =
        |mark: ResponseMark| judge_status(&REQUESTED, mark.status, &mark).err().map(|error| error.kind());
    for status in [302, 401, 404, 416, 500] {
        assert_eq!(judge(ResponseMark { status, ..MINE }), None, "{status}");
        assert_eq!(
            judge(ResponseMark { status, xact: XactId::NOBODY, ..MINE }),
            None,
            "whose it was is not known"
        );
        for mark in
            [STORED, ResponseMark { xact: OTHER, ..MINE }, ResponseMark { xact: XactId::NOBODY, ..STORED }]
        {
            assert_eq!(judge(ResponseMark { status, ..mark }), Some(ErrorKind::HitOnUncachable), "{status}");
        }
    }
    for status in [200, 206, 304] {
        assert_eq!(judge(ResponseMark { status, ..STORED }), None, "{status}");
    }
}

#[test]
fn a_stored_response_is_not_for_a_request_that_its_vary_tells_apart() {
    let conflict = || VaryConflict {
        field: "accept-language".to_owned(),
        made_for: vec!["de".to_owned()],
        requested: vec![],
    };
    let kind = |mark: ResponseMark, may_share: bool| {
        let verdict = judge_head(&REQUESTED, &response(mark), 21 * SECOND, life, |made_for| {
            assert_eq!(made_for, OTHER);
            (!may_share).then(conflict)
        });
        verdict.err().map(|error| error.kind())
    };
    for mark in [STORED, ResponseMark { xact: OTHER, ..MINE }] {
        assert_eq!(kind(mark, false), Some(ErrorKind::WrongVariant));
        assert_eq!(kind(mark, true), None);
    }
    assert_eq!(kind(MINE, false), None, "it was fetched or validated for this one");
}

#[test]
fn what_varies_by_everything_needs_a_validation_for_each_other_request() {
    let all = |_| Some(VaryConflict { field: "*".to_owned(), made_for: vec![], requested: vec![] });
    let judge = |validation_updates, mark| {
        let requested = CheckedRequest { validation_updates, ..REQUESTED };
        judge_head(&requested, &response(mark), 21 * SECOND, life, all)
            .map(|verdict| verdict.is_unconfirmed)
            .map_err(|error| error.kind())
    };
    assert_eq!(judge(true, STORED), Err(ErrorKind::WrongVariant), "it would show the validation");
    assert_eq!(judge(false, STORED), Ok(true), "it may have been validated");
    assert_eq!([judge(true, MINE), judge(false, MINE)], [Ok(false); 2]);
}

#[test]
fn the_length_of_a_coded_body_may_be_any() {
    let head = CheckedRequest { method: Method::Head, ..REQUESTED };
    for requested in [REQUESTED, head] {
        let of = |is_coded, bytes| {
            kind(&requested, &ReceivedHead { is_coded, content_length: Some(bytes), ..response(MINE) })
        };
        let wrong = Some(ErrorKind::WrongLength);
        assert_eq!(
            [of(false, 1000), of(false, 400), of(true, 400), of(true, 1000)],
            [None, wrong, None, None]
        );
    }
}

#[test]
fn a_response_without_our_id_is_foreign() {
    assert_eq!(kind(&REQUESTED, &ReceivedHead { mark: None, ..response(MINE) }), Some(ErrorKind::Foreign));
}

#[test]
fn another_object_is_told_by_its_key() {
    assert_eq!(
        kind(&REQUESTED, &response(ResponseMark { key: 0xABCE, ..MINE })),
        Some(ErrorKind::WrongObject)
    );
    assert_eq!(
        kind(&REQUESTED, &response(ResponseMark { key: 0xABCE, ..STORED })),
        Some(ErrorKind::WrongObject)
    );
}

#[test]
fn a_version_must_be_the_one_that_was_current_when_the_response_was_made() {
    for version in [0, 1, 3] {
        assert_eq!(
            kind(&REQUESTED, &response(ResponseMark { version, ..MINE })),
            Some(ErrorKind::WrongVersion),
            "{version}"
        );
    }
}

#[test]
fn a_response_from_the_future_is_a_wrong_version() {
    let mark = ResponseMark { made_us: 21 * SECOND + 1, ..MINE };
    assert_eq!(kind(&REQUESTED, &response(mark)), Some(ErrorKind::WrongVersion));
}

#[test]
fn a_304_that_nobody_requested_is_wrong() {
    assert_eq!(kind(&REQUESTED, &not_modified(Some(MINE))), Some(ErrorKind::WrongNotModified));
    assert_eq!(kind(&REQUESTED, &not_modified(None)), Some(ErrorKind::WrongNotModified));
}

#[test]
fn a_304_is_right_only_if_the_version_is_as_old_as_the_date_requested() {
    // The version of second 20 was modified then.
    let confirmed = not_modified(Some(ResponseMark { status: 304, ..MINE }));
    assert_eq!(kind(&conditional(19), &confirmed), Some(ErrorKind::WrongNotModified));
    for since_s in [20, 21] {
        let verdict = judge(&conditional(since_s), &confirmed).expect("is right");
        assert_eq!((verdict.outcome, verdict.body_bytes), (Some(Outcome::Miss), None));
    }
}

#[test]
fn a_304_from_the_store_is_judged_by_the_stored_version() {
    let stored = not_modified(Some(STORED));
    assert_eq!(outcome_of(&conditional(19), &stored), Some(Outcome::Hit));
    assert_eq!(kind(&conditional(9), &stored), Some(ErrorKind::WrongNotModified));
}

#[test]
fn a_304_without_an_id_is_judged_by_what_it_shows_or_by_what_can_be() {
    let bare = not_modified(None);
    let verdict = judge(&conditional(0), &bare).expect("version 0 is that old");
    assert_eq!((verdict.outcome, verdict.body_bytes), (None, None));
    assert_eq!(kind(&conditional(-1), &bare), Some(ErrorKind::WrongNotModified));
    let dated = ReceivedHead { last_modified_s: Some(10), ..bare };
    assert_eq!(kind(&conditional(9), &dated), Some(ErrorKind::WrongNotModified));
    assert_eq!(kind(&conditional(10), &dated), None);
}

#[test]
fn a_stored_response_is_stale_once_its_expiry_lies_more_than_a_second_back() {
    // Made at second 12, so it expires at 17.
    let stored = ResponseMark { made_us: 12 * SECOND, version: 1, ..STORED };
    let sent = |sent_us| CheckedRequest { sent_us, ..REQUESTED };
    assert_eq!(kind(&sent(17 * SECOND), &response(stored)), None);
    assert_eq!(kind(&sent(19 * SECOND - 1), &response(stored)), None, "within the rounding of dates");
    assert_eq!(kind(&sent(19 * SECOND), &response(stored)), Some(ErrorKind::Stale));
    // A conditional request may not get a stale stored response either.
    let requested = CheckedRequest { sent_us: 19 * SECOND, ..conditional(15) };
    assert_eq!(kind(&requested, &not_modified(Some(stored))), Some(ErrorKind::Stale));
}

#[test]
fn where_a_validation_does_not_show_only_a_version_that_it_would_have_replaced_is_stale() {
    // Version 1 was current from 10 to 20; confirmed at 19, it is fresh until 24.
    let stored = ResponseMark { made_us: 12 * SECOND, version: 1, ..STORED };
    let sent = |at_s| CheckedRequest { sent_us: at_s * SECOND, validation_updates: false, ..REQUESTED };
    for (fine_s, is_unconfirmed) in [(17, false), (18, false), (19, true), (25, true)] {
        let verdict = judge_at(&sent(fine_s), &response(stored)).expect("may have been confirmed");
        assert_eq!(verdict.is_unconfirmed, is_unconfirmed, "{fine_s}");
    }
    let found = judge_at(&sent(26), &response(stored)).err();
    assert_eq!(found, Some(CheckError::Expired { expires_s: 24, sent_s: 26 }));
    // What is never modified can be confirmed for ever.
    let eternal = |now_s| Life { next_modified_s: None, ..life(now_s) };
    assert!(judge_head(&sent(1000), &response(stored), 1001 * SECOND, eternal, |_| None).is_ok());
    // What has expired when it is made can still be confirmed for each request.
    let dead = |now_s| Life { expires_s: Some(0), ..life(now_s) };
    assert!(judge_head(&sent(19), &response(stored), 20 * SECOND, dead, |_| None).is_ok());
    assert!(judge_head(&sent(20), &response(stored), 21 * SECOND, dead, |_| None).is_err());
}

#[test]
fn what_was_fetched_for_this_request_is_never_stale() {
    let expired = |now_s| Life { expires_s: Some(0), ..life(now_s) };
    for mark in [MINE, ResponseMark { xact: OTHER, ..MINE }] {
        assert!(judge_head(&REQUESTED, &response(mark), 21 * SECOND, expired, |_| None).is_ok());
    }
}

#[test]
fn a_response_without_expiry_is_never_stale() {
    let eternal = |now_s| Life { expires_s: None, ..life(now_s) };
    let old = ResponseMark { made_us: 0, version: 0, ..STORED };
    assert!(judge_head(&REQUESTED, &response(old), 21 * SECOND, eternal, |_| None).is_ok());
}

#[test]
fn a_reload_may_not_be_served_with_an_earlier_response() {
    let reload = CheckedRequest { must_reach_origin: true, ..REQUESTED };
    assert_eq!(kind(&reload, &response(STORED)), Some(ErrorKind::HitOnReload));
    assert_eq!(kind(&reload, &response(MINE)), None);
    assert_eq!(
        kind(&reload, &response(ResponseMark { xact: OTHER, ..MINE })),
        None,
        "joined a fetch that began after"
    );
}

#[test]
fn what_may_not_be_stored_may_not_be_shared_either() {
    let private = CheckedRequest { cachable: false, ..REQUESTED };
    for mark in [STORED, ResponseMark { xact: OTHER, ..MINE }, ResponseMark { status: 304, ..MINE }] {
        assert_eq!(kind(&private, &response(mark)), Some(ErrorKind::HitOnUncachable), "{mark:?}");
    }
    assert_eq!(kind(&private, &response(MINE)), None);
}

#[test]
fn a_post_must_reach_the_origin() {
    let post = CheckedRequest { method: Method::Post, ..REQUESTED };
    assert_eq!(kind(&post, &response(STORED)), Some(ErrorKind::HitOnUncachable));
    assert_eq!(kind(&post, &response(MINE)), None);
}

#[test]
fn a_length_must_be_the_objects_where_it_is_said() {
    assert_eq!(
        kind(&REQUESTED, &ReceivedHead { content_length: Some(999), ..response(MINE) }),
        Some(ErrorKind::WrongLength)
    );
    assert_eq!(kind(&REQUESTED, &ReceivedHead { content_length: None, ..response(MINE) }), None);
    let head = CheckedRequest { method: Method::Head, ..REQUESTED };
    assert_eq!(
        kind(&head, &ReceivedHead { content_length: Some(0), ..response(MINE) }),
        Some(ErrorKind::WrongLength)
    );
    assert_eq!(judge(&head, &response(MINE)).expect("is right").body_bytes, None);
    for (content_length, expected) in
        [(None, None), (Some(1000), None), (Some(0), Some(ErrorKind::WrongLength))]
    {
        let confirmed = ReceivedHead { content_length, ..not_modified(Some(MINE)) };
        assert_eq!(kind(&conditional(20), &confirmed), expected, "{content_length:?}");
    }
}

#[test]
fn the_first_cause_in_the_documented_order_wins() {
    let private_reload = CheckedRequest { cachable: false, must_reach_origin: true, ..REQUESTED };
    let old = ResponseMark { made_us: 0, version: 0, ..STORED };
    let mut actual = ReceivedHead { content_length: Some(1), ..response(old) };
    assert_eq!(kind(&REQUESTED, &actual), Some(ErrorKind::Stale));
    assert_eq!(
        kind(&CheckedRequest { must_reach_origin: true, ..REQUESTED }, &actual),
        Some(ErrorKind::HitOnReload)
    );
    assert_eq!(kind(&private_reload, &actual), Some(ErrorKind::HitOnUncachable));
    actual.mark = Some(ResponseMark { version: 9, ..old });
    assert_eq!(kind(&private_reload, &actual), Some(ErrorKind::WrongVersion));
    actual.mark = Some(ResponseMark { version: 9, key: 1, ..old });
    assert_eq!(kind(&private_reload, &actual), Some(ErrorKind::WrongObject));
    actual.mark = None;
    assert_eq!(kind(&private_reload, &actual), Some(ErrorKind::Foreign));
    actual.status = 502;
    assert_eq!(kind(&private_reload, &actual), Some(ErrorKind::ErrorStatus));
}

/// The bytes of a made-up object.
fn byte(at: u64) -> u8 {
    (at * 31 % 251) as u8
}

fn compare(from: u64, bytes: &[u8]) -> Result<(), u64> {
    bytes.iter().zip(from..).find(|&(&actual, at)| actual != byte(at)).map_or(Ok(()), |(_, at)| Err(at))
}

fn feed_all(check: &mut BodyCheck, body: &[u8], slice: usize) -> Result<(), CheckError> {
    body.chunks(slice).try_for_each(|bytes| check.feed(bytes, compare))?;
    check.end()
}

#[test]
fn a_short_body_has_the_wrong_length_if_complete_and_is_truncated_if_cut_off() {
    let body: Vec<u8> = (0..99).map(byte).collect();
    let mut check = BodyCheck::new(100);
    assert_eq!(feed_all(&mut check, &body, 10).map_err(|w| w.kind()), Err(ErrorKind::WrongLength));
    assert_eq!(check.cut_off(), CheckError::Truncated { actual: 99, expected: 100 });
    assert_eq!(check.cut_off().kind(), ErrorKind::TruncatedBody);
}

#[test]
fn a_long_body_has_the_wrong_length_even_if_it_starts_right() {
    let body: Vec<u8> = (0..101).map(byte).collect();
    for slice in [1, 50, 101] {
        let got = feed_all(&mut BodyCheck::new(100), &body, slice);
        assert_eq!(got, Err(CheckError::Longer { expected: 100 }));
    }
}

proptest! {
    #[test]
    fn one_flipped_byte_is_found_wherever_it_is(
        size in 1usize..3000, at in any::<prop::sample::Index>(), flip in 1u8.., slice in 1usize..700
    ) {
        let mut body: Vec<u8> = (0..size as u64).map(byte).collect();
        prop_assert_eq!(feed_all(&mut BodyCheck::new(size as u64), &body, slice), Ok(()));
        let at = at.index(size);
        body[at] ^= flip;
        let found = feed_all(&mut BodyCheck::new(size as u64), &body, slice);
        prop_assert_eq!(found, Err(CheckError::Bytes { at: at as u64 }));
    }
}

#[test]
fn clocks_that_may_differ_excuse_what_they_can_explain_and_no_more() {
    let describe = |clock_error_us| CheckedRequest { clock_error_us, ..REQUESTED };
    // It arrived at 21 s of the robot's clock, and says that it was made 300 µs later by the origin's.
    let mark = ResponseMark { made_us: 21 * SECOND + 300, ..MINE };
    assert!(judge(&describe(299), &response(mark)).is_err());
    assert!(judge(&describe(300), &response(mark)).is_ok());
    // A reload was sent 500 µs after the response was made: with less error than that it came from the store.
    let just_before = response(ResponseMark { made_us: 20 * SECOND - 500, ..STORED });
    let reload = |clock_error_us| CheckedRequest { must_reach_origin: true, ..describe(clock_error_us) };
    assert_eq!(
        judge(&reload(499), &just_before).map(|_| ()),
        Err(CheckError::ReloadStored { made_us: 20 * SECOND - 500, sent_us: 20 * SECOND })
    );
    assert!(judge(&reload(500), &just_before).is_ok());
    // Whose fetch it was is not known: within the error it was most likely this one's.
    let nobody = ResponseMark { xact: XactId::NOBODY, made_us: 20 * SECOND - 500, ..STORED };
    assert_eq!(judge(&describe(0), &response(nobody)).unwrap().outcome, Some(Outcome::Hit));
    assert_eq!(judge(&describe(500), &response(nobody)).unwrap().outcome, Some(Outcome::Miss));
}

#[test]
fn an_outcome_is_unsure_where_the_clocks_decide_it_and_their_error_is_larger() {
    let describe = |clock_error_us| CheckedRequest { clock_error_us, ..REQUESTED };
    let is_unsure = |mark, error_us| judge(&describe(error_us), &response(mark)).unwrap().is_unsure;
    // The object has a new version at 20 s.
    for (made_us, version) in [(20 * SECOND - 500, 1), (20 * SECOND + 500, 2)] {
        let of_another = ResponseMark { made_us, version, ..STORED };
        assert!(!is_unsure(of_another, 0) && !is_unsure(of_another, 500) && is_unsure(of_another, 501));
        let of_nobody = ResponseMark { xact: XactId::NOBODY, ..of_another };
        assert!(!is_unsure(of_nobody, 0) && is_unsure(of_nobody, 501));
    }
    // Its own fetch is a miss, whatever the clocks show.
    assert!(!is_unsure(MINE, u64::MAX));
    assert!(
        !is_unsure(ResponseMark { made_us: 20 * SECOND, version: 2, ..STORED }, 0),
        "one machine has one clock"
    );
}
