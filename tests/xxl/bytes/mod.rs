//! Messages byte by byte, as each version of XXL-JOB and each client sends them, to the real doors; and what
//! each of them answers, to the real caller.

mod answered;
mod asked;
mod calls;
mod scripted;
mod told;
