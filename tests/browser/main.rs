//! The console in a real browser: Debian's Chromium, told what to do over WebDriver. Nothing is waited for by
//! sleeping; whatever the page says in its console, and whatever its policy forbids, fails the test.
//!
//! `scripts/test-browser.sh` installs what these tests need.

mod api_page;
mod axe;
mod dag;
mod house;
mod keyboard;
mod night;
mod page;
mod pages;
mod setup;
mod webdriver;
mod words;
