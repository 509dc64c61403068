//! Converts refusals about users, logins and executors to problems.

use crate::api::problem::Problem;
use crate::app::access::{NotGranted, NotIn, SecondFactorRefused};
use crate::app::executor_groups::BadGroup;
use crate::domain::access::user::Unfit;
use axum::http::StatusCode;

/// The problem for an error about users, if it is one.
pub(super) fn problem_of(error: &anyhow::Error) -> Option<Problem> {
    let find = |e: &(dyn std::error::Error + 'static)| {
        let said = e.to_string();
        e.downcast_ref::<NotGranted>()
            .map(|e| not_granted(e, said.clone()))
            .or_else(|| e.downcast_ref::<NotIn>().map(|e| not_in(e, said.clone())))
            .or_else(|| e.downcast_ref::<SecondFactorRefused>().map(|e| factor(e, said.clone())))
            .or_else(|| e.downcast_ref::<BadGroup>().map(|e| bad_group(e, said.clone())))
            .or_else(|| e.downcast_ref::<Unfit>().map(|_| unfit(said)))
    };
    error.chain().find_map(find)
}

fn not_granted(error: &NotGranted, said: String) -> Problem {
    use NotGranted as N;
    match error {
        N::NoUser(name) => Problem::not_found(format!("user {name}")),
        N::Taken(_) => Problem::conflict("taken", said),
        N::LastAdmin(_) => Problem::conflict("last-admin", said),
        N::SetUp => Problem::conflict("set-up", said),
        N::Beyond(..) | N::Own | N::Wider(_) => {
            Problem::new(StatusCode::FORBIDDEN, "not-yours-to-give", said)
        }
        N::NoSetup => Problem::new(StatusCode::FORBIDDEN, "no-setup", said),
        N::Twice(_)
        | N::NoRight(_)
        | N::Days
        | N::NoToken
        | N::Enough(_)
        | N::Elsewhere(_)
        | N::InDirectory(_)
        | N::AtProvider(_) => Problem::refused(said),
    }
}

fn bad_group(error: &BadGroup, said: String) -> Problem {
    match error {
        BadGroup::NotThere(app) => Problem::not_found(format!("executor group {app}")),
        BadGroup::Taken(_) => Problem::conflict("taken", said),
        BadGroup::Busy { .. } => Problem::conflict("busy", said),
        BadGroup::Title | BadGroup::Address(..) | BadGroup::Addresses | BadGroup::Token(_) => {
            Problem::refused(said)
        }
    }
}

fn not_in(error: &NotIn, said: String) -> Problem {
    match error {
        NotIn::Wrong => Problem::new(StatusCode::UNAUTHORIZED, "wrong-login", said),
        NotIn::CodeNeeded => Problem::new(StatusCode::UNAUTHORIZED, "code-needed", said),
        NotIn::WrongCode => Problem::new(StatusCode::UNAUTHORIZED, "wrong-code", said),
        NotIn::CodesUnavailable => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "codes-unavailable", said)
        }
        NotIn::WrongOldPassword => Problem::new(StatusCode::FORBIDDEN, "wrong-old-password", said),
        NotIn::DirectoryUnavailable => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let mut problem = Problem::new(status, "directory-unavailable", said);
            problem.retry_after = Some(60);
            problem
        }
        NotIn::Wait(seconds) | NotIn::Busy(seconds) => {
            let mut problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "slow-down", said);
            problem.retry_after = Some(*seconds);
            problem
        }
    }
}

fn factor(error: &SecondFactorRefused, said: String) -> Problem {
    use SecondFactorRefused as R;
    match error {
        R::Active | R::NotBegun | R::None => Problem::conflict("is-so", said),
        R::Elsewhere | R::NoKey(_) => Problem::refused(said),
        R::WrongCode => Problem::new(StatusCode::FORBIDDEN, "wrong-code", said),
        R::Wait(seconds) => {
            let mut problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "slow-down", said);
            problem.retry_after = Some(*seconds);
            problem
        }
    }
}

fn unfit(said: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unfit", said)
}
