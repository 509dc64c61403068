//! Tests of the product as a whole: one binary, because each more links everything once more.

mod azkaban;
