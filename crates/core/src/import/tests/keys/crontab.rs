//! The elements of a crontab besides times and commands.

use super::heard;
use crate::import::System;
use crate::import::tests::given;

#[test]
fn variables_and_marks_are_heard() {
    let line = "0 1 * * * root /bin/a\n";
    let heard = |text: &str| heard(System::Crontab, &[given("etc/crontab", text)]);
    for (before, after) in [
        (line, "SHELL=/bin/bash\n0 1 * * * root /bin/a\n"),
        (line, "SHELL=/bin/fish\n0 1 * * * root /bin/a\n"),
        (line, "MAILTO=ops@bank.example\n0 1 * * * root /bin/a\n"),
        (line, "MAILTO=root\n0 1 * * * root /bin/a\n"),
        (line, "MAILFROM=cron@bank.example\n0 1 * * * root /bin/a\n"),
        (line, "CONTENT_TYPE=text/html\n0 1 * * * root /bin/a\n"),
        (line, "CONTENT_TRANSFER_ENCODING=8bit\n0 1 * * * root /bin/a\n"),
        (line, "CRON_TZ=Europe/Berlin\n0 1 * * * root /bin/a\n"),
        (line, "RANDOM_DELAY=30\n0 1 * * * root /bin/a\n"),
        (line, "START_HOURS_RANGE=3-22\n0 1 * * * root /bin/a\n"),
        (line, "ANYTHING=x\n0 1 * * * root /bin/a\n"),
        (line, "# the ledger\n0 1 * * * root /bin/a\n"),
        (line, "0 1 * * * etl /bin/a\n"),
        (line, "0 1 * * * root:wheel /bin/a\n"),
        (line, "0 1 * * * root/daemon /bin/a\n"),
        (line, "-0 1 * * * root /bin/a\n"),
        (line, "0 1 * * * root -n /bin/a\n"),
        (line, "0 1 * * * root -q -s /bin/a\n"),
        (line, "0~9 1 * * * root /bin/a\n"),
        (line, "0 1 * * * root /bin/a%input\n"),
    ] {
        assert_ne!(heard(before), heard(after), "{after}");
    }
    let flags = heard("0 1 * * * root -q -s /bin/a\n");
    assert!(flags.contains("overlap: skip on its schedule is what -s does"), "{flags}");
    assert!(!flags.contains("'-q'") && flags.contains("\n      /bin/a\n"), "{flags}");
}
