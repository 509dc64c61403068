//! The packet limit of a server of MySQL or MariaDB. A larger packet would end the connection,
//! which looks like a transient failure.

use crate::db::fault::SessionError;
use crate::db::session::Session;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::domain::params::BoundParam;
use crate::handler::run_on_source::BodyFault;

/// Above this size the server is asked for its limit; the smallest default limit of any server.
const ASK_FROM: usize = 4 << 20;

/// Allowance for the rest of a packet besides the values.
const OVERHEAD: usize = 1 << 16;

/// Why the server cannot accept `what` of this size; `None` if it can.
pub(crate) async fn packet_fault(
    session: &mut Session,
    what: &str,
    bytes: usize,
) -> Result<Option<String>, SessionError> {
    let Some(query) = session.database().packet_limit_query().filter(|_| bytes >= ASK_FROM) else {
        return Ok(None);
    };
    let answer = session.query_rows(query, &[]).await?;
    let most: usize = answer.first(0).and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    Ok((bytes + OVERHEAD > most).then(|| {
        format!(
            "{what} has {bytes} bytes, and this server takes {most} in one packet; set its \
             max_allowed_packet to {} or more, or hand on less",
            (bytes + OVERHEAD).next_power_of_two()
        )
    }))
}

/// Refuses a body whose parameters together exceed the packet limit.
pub(crate) async fn refuse_oversized(
    session: &mut Session,
    params: &[BoundParam],
) -> Result<(), BodyFault> {
    let length = |param: &BoundParam| param.expose_text().map_or(0, str::len);
    let bytes = params.iter().map(length).sum();
    let longest = params.iter().max_by_key(|param| length(param));
    let what = longest.map_or(String::new(), |p| format!("parameter {} with the others", p.name));
    let before = |error| BodyFault::before("asking how large a packet may be", error);
    match packet_fault(session, &what, bytes).await.map_err(before)? {
        None => Ok(()),
        Some(why) => {
            let outcome =
                AttemptOutcome::ended(AttemptEnd::Failed, format!("{why}; nothing was run"));
            Err(BodyFault::Known(Box::new(outcome.for_good())))
        }
    }
}
