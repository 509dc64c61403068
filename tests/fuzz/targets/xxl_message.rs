//! Messages between XXL-JOB's admin and its executors. The first byte of nothing says which message it is: every
//! reader is given every input.

use procession::domain::executor::address::ExecutorUrl;
use procession::wire::xxl::{
    JobAsk, LogAsk, Registry, Reply, RunAsk, XxlDialect, callbacks, read_callbacks, read_log,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// What is read is written and read again as the same, in every dialect.
pub(super) fn check(input: &[u8]) {
    check_round_trip::<Registry>(input);
    check_round_trip::<RunAsk>(input);
    check_round_trip::<JobAsk>(input);
    check_round_trip::<LogAsk>(input);
    if let Ok(items) = read_callbacks(input) {
        for dialect in XxlDialect::ALL {
            let body = callbacks(dialect, &items).to_string();
            let again = read_callbacks(body.as_bytes());
            assert_eq!(again.ok().as_ref(), Some(&items), "{dialect:?}: {body}");
        }
    }
    if let Ok(reply) = Reply::parse_body(input) {
        let again = Reply::parse_body(reply.to_json().as_bytes());
        let again = again.expect("an answer of ours is read");
        assert_eq!((again.code, &again.msg), (reply.code, &reply.msg));
        // Numbers of 17 digits and an exponent may lose the last one; no field of a page is such a number.
        let page = read_log(&reply);
        assert_eq!(read_log(&again), page, "a page of a log");
        assert_eq!(reply.is_ok(), reply.code == 200);
        let _any_answer = page.is_some_and(|page| page.is_file_missing());
    }
    if let Ok(text) = std::str::from_utf8(input) {
        text.lines().for_each(check_address);
        let _any_dialect = XxlDialect::of_version(text);
    }
}

fn check_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(input: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(input) else { return };
    let text = serde_json::to_string(&message).expect("a message can be written");
    assert_eq!(serde_json::from_str::<T>(&text).ok().as_ref(), Some(&message), "{text}");
}

fn check_address(text: &str) {
    match ExecutorUrl::parse(text) {
        Ok(address) => {
            let again = ExecutorUrl::parse(address.as_str());
            assert_eq!(again.as_ref(), Ok(&address), "{text:?}");
            let _any_place = (address.port(), address.place());
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}"),
    }
}
