//! The API from outside, without a port: requests go into the router, answers come out.

mod approvals;
mod attacks;
mod audit;
mod audit_chain;
mod batches;
mod changes;
mod definitions;
mod executors;
mod failures;
mod foreign_codes;
mod four_eyes;
mod insights;
mod ldap;
mod login;
mod matrix;
mod oidc;
mod reads;

mod remote;
mod routines;
mod same_codes;
mod second_factor;
mod server;
mod tls;
mod users;
