//! Converts refusals about users, logins and executors to problems.

use crate::api::problem::Problem;
use crate::app::access::{NotGranted, NotIn, SecondFactorRefused};
use crate::app::executor_groups::BadGroup;
use crate::domain::access::user::Unfit;
use axum::http::StatusCode;

/// The problem for an error about users, if it is one.
pub(super) fn problem_of(error: &anyhow::Error) -> Option<Problem> {
    let find = |e: &(dyn std::error::Error + 'static)| {
        let message = e.to_string();
        e.downcast_ref::<NotGranted>()
            .map(|e| not_granted(e, message.clone()))
            .or_else(|| e.downcast_ref::<NotIn>().map(|e| not_in(e, message.clone())))
            .or_else(|| e.downcast_ref::<SecondFactorRefused>().map(|e| factor(e, message.clone())))
            .or_else(|| e.downcast_ref::<BadGroup>().map(|e| bad_group(e, message.clone())))
            .or_else(|| e.downcast_ref::<Unfit>().map(|_| unfit(message)))
    };
    error.chain().find_map(find)
}

fn not_granted(error: &NotGranted, message: String) -> Problem {
    use NotGranted as N;
    match error {
        N::NoUser(name) => Problem::not_found(format!("user {name}")),
        N::Taken(_) => Problem::conflict("taken", message),
        N::LastAdmin(_) => Problem::conflict("last-admin", message),
        N::SetUp => Problem::conflict("set-up", message),
        N::Beyond(..) | N::Own | N::Wider(_) => {
            Problem::new(StatusCode::FORBIDDEN, "not-yours-to-give", message)
        }
        N::NoSetup => Problem::new(StatusCode::FORBIDDEN, "no-setup", message),
        N::Twice(_)
        | N::NoRight(_)
        | N::Days
        | N::NoToken
        | N::Enough(_)
        | N::Elsewhere(_)
        | N::InDirectory(_)
        | N::AtProvider(_) => Problem::refused(message),
    }
}

fn bad_group(error: &BadGroup, message: String) -> Problem {
    match error {
        BadGroup::NotThere(app) => Problem::not_found(format!("executor group {app}")),
        BadGroup::Taken(_) => Problem::conflict("taken", message),
        BadGroup::Busy { .. } => Problem::conflict("busy", message),
        BadGroup::Title | BadGroup::Address(..) | BadGroup::Addresses | BadGroup::Token(_) => {
            Problem::refused(message)
        }
    }
}

fn not_in(error: &NotIn, message: String) -> Problem {
    match error {
        NotIn::Wrong => Problem::new(StatusCode::UNAUTHORIZED, "wrong-login", message),
        NotIn::CodeNeeded => Problem::new(StatusCode::UNAUTHORIZED, "code-needed", message),
        NotIn::WrongCode => Problem::new(StatusCode::UNAUTHORIZED, "wrong-code", message),
        NotIn::CodesUnavailable => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "codes-unavailable", message)
        }
        NotIn::WrongOldPassword => {
            Problem::new(StatusCode::FORBIDDEN, "wrong-old-password", message)
        }
        NotIn::DirectoryUnavailable => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let mut problem = Problem::new(status, "directory-unavailable", message);
            problem.retry_after = Some(60);
            problem
        }
        NotIn::Wait(seconds) | NotIn::Busy(seconds) => {
            let mut problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "slow-down", message);
            problem.retry_after = Some(*seconds);
            problem
        }
    }
}

fn factor(error: &SecondFactorRefused, message: String) -> Problem {
    use SecondFactorRefused as R;
    match error {
        R::Active | R::NotBegun | R::None => Problem::conflict("is-so", message),
        R::Elsewhere | R::NoKey(_) => Problem::refused(message),
        R::WrongCode => Problem::new(StatusCode::FORBIDDEN, "wrong-code", message),
        R::Wait(seconds) => {
            let mut problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "slow-down", message);
            problem.retry_after = Some(*seconds);
            problem
        }
    }
}

fn unfit(message: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unfit", message)
}
