//! Everything that is tested from outside, in one binary: it links once.

mod api;
mod azkaban;
mod backfill;
mod calendar;
mod cli;
mod conformance;
mod connect;
mod cron;
mod docs;
mod examples;
mod flow;
mod handler;
mod hints;
mod indexes;
mod layers;
mod migrations;
mod operate;
mod params;
mod picture_node;
mod plan;
mod retention;
mod schedule;
mod source;
mod store;
mod text;
mod util;
