//! picture: draws a DAG for people and front ends. In: a snapshot and states. Out: JSON or DOT text.
//! May name: domain. Never: a database, a clock.
//! Invariant: the same DAG gives the same bytes, so that a diff of two pictures is a diff of two DAGs.
