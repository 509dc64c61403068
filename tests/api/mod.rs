//! The API from outside, without a port: requests go into the router, answers come out.

mod audit;
mod batches;
mod changes;
mod definitions;
mod executors;
mod login;
mod matrix;
mod oidc;
mod reads;
mod remote;
mod server;
mod users;
