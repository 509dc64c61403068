use super::*;
#[test]
fn parses() {
    Cron::parse("0 0 2 L-3W * ?").expect("x");
}
