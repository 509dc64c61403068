//! db: the SQL door. In: statement text with `?` and values. Out: rows, or a typed error.
//! May name: nothing of ours. Never: a word of the domain.
//! Invariant: sqlx is named here and nowhere else.
