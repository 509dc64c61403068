//! Splits SQL text into statements and finds `:name` parameters in them, per dialect.
