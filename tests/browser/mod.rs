//! The console in a real browser: Debian's Chromium, told what to do over WebDriver. Nothing is waited for by
//! sleeping; whatever the page says in its console, and whatever its policy forbids, fails the test.
//!
//! `scripts/test-browser.sh` installs what these tests need.

#![expect(clippy::disallowed_methods, reason = "how long a real browser may take is real time")]
#![expect(
    clippy::print_stdout,
    reason = "what was measured is told to whoever runs with --nocapture"
)]

mod api_page;
mod approvals;
mod axe;
mod dag;
mod editor;
mod executors;
mod faults;
mod four_eyes;
mod house;
mod insights;
mod keyboard;
mod late;
mod night;
mod page;
mod pages;
mod picture;
mod second_factor;
mod setup;
mod webdriver;
mod windows;
mod words;
