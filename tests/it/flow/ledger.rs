//! Classes `same` and `ledger` in whole batches.
