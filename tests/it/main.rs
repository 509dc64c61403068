//! Everything that is tested from outside, in one binary: it links once.

mod azkaban;
mod cli;
mod connect;
mod docs;
mod examples;
mod flow;
mod handler;
mod layers;
mod migrations;
mod params;
mod picture_node;
mod plan;
mod store;
mod util;
