//! Built-in templates, and those of a team.

use super::*;
use crate::domain::notification::BilingualText;
use std::fs;

const AT: Millis = Millis(1_722_448_800_000);

fn render(templates: &MessageTemplates, letter: &Notification, lang: Lang) -> Rendered {
    templates.render(letter, lang, AT, "procession-17-ab12@host")
}

/// A directory with files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// The error for one file.
fn fault(name: &str, text: &str) -> String {
    let folder = folder(&[(name, text)]);
    let opened = MessageTemplates::load_from(Some(folder.path()));
    let message = opened.err().unwrap_or_else(|| panic!("{name} {text:?} is a fault")).to_string();
    let shown = folder.path().display().to_string();
    message.strip_prefix(&format!("{shown}/")).unwrap_or(&message).to_owned()
}

#[test]
fn every_event_has_a_mail_in_both_languages() {
    let mut templates = MessageTemplates::built_in();
    templates.environment.set_fuel(Some(FUEL / 20));
    for event in NotificationEvent::ALL {
        for letter in [sample::full_notification(event), sample::minimal_notification(event)] {
            for lang in [Lang::En, Lang::Zh] {
                let mail = render(&templates, &letter, lang);
                assert_eq!(mail.warning, None);
                assert_eq!(mail.subject, letter.subject_line(lang));
                assert!(mail.text.starts_with(letter.headline.text_in(lang)), "{}", mail.text);
                assert!(!mail.text.contains("\n\n\n"), "{}", mail.text);
                assert!(mail.html.contains(letter.headline.text_in(lang)), "{}", mail.html);
                assert!(!mail.html.contains(">none<"), "{}", mail.html);
            }
        }
    }
}

#[test]
fn the_text_reads_well() {
    let text = render(
        &MessageTemplates::built_in(),
        &sample::full_notification(NotificationEvent::Failed),
        Lang::En,
    )
    .text;
    let start = "Job LOAD failed at its third try.\n\nNothing was written.\n\nGroup: MONTH_END\n\
                 Took: 4 min 05 s\n\nError:\nERROR 1213 (40001): Deadlock found\n\
                 DETAIL: <row> & \"lock\"\n\nBlocked (53):\n  REPORT_1\n";
    assert!(text.starts_with(start), "{text}");
    let end = "  REPORT_50\n  … 3 more\n\n- 2024-07-30 18:00\n- 2024-07-30 18:00\n\n\
               Last lines of its log:\n  12:00:01 reading\n  12:00:09 gave up\n\nSee its log:\n  \
               procession logs 202407 LOAD\nRun it again:\n  procession job rerun 202407 LOAD\n\n\
               https://procession.bank.example/b/202407/LOAD?x=1&y=2\n\n-- \n\
               You get this because you are a recipient of group MONTH_END.\n\
               To stop it, take your address out of the recipients, or set the event failed to off.";
    assert!(text.trim_end().ends_with(end), "{text}");
}

#[test]
fn nothing_from_a_job_is_markup_and_nothing_is_fetched() {
    let mut letter = sample::full_notification(NotificationEvent::Failed);
    letter.error = Some("<script>alert(1)</script>".to_owned());
    letter.facts[0].value = "\"><img src=x>".to_owned();
    letter.link = Some("https://x.example/\"><b>".to_owned());
    letter.subject = BilingualText::untranslated("</title><b>");
    let html = render(&MessageTemplates::built_in(), &letter, Lang::Zh).html;
    for evil in ["<script", "<img", "<b>", " src=\"", "url(", "@import", "@font-face"] {
        assert!(!html.contains(evil), "{evil} in {html}");
    }
    for wanted in [
        "&lt;script&gt;",
        ">12:00:01 reading<br>12:00:09 gave up</td>",
        "… 其余 3 个",
        "max-width:640px",
        "color-scheme",
        "#c0262d",
    ] {
        assert!(html.contains(wanted), "{wanted} in {html}");
    }
}

#[test]
fn the_file_of_an_event_goes_before_the_general_one_and_that_before_the_built_in() {
    let folder = folder(&[
        ("subject.txt", "{{ subject }}\n"),
        ("failed.subject.txt", "{% if topic.job %}{{ topic.job }}{% endif %}!\nBcc: x@y"),
        ("failed.mail.html", "<p>{{ error }} {% for f in facts %}{{ f.label }}{% endfor %}</p>"),
        ("README.md", "{{ not a template }}"),
    ]);
    let templates = MessageTemplates::load_from(Some(folder.path())).expect("good templates");
    let failed =
        render(&templates, &sample::full_notification(NotificationEvent::Failed), Lang::En);
    assert_eq!(failed.subject, "[Procession] LOAD! Bcc: x@y");
    assert!(failed.html.starts_with("<p>ERROR 1213") && failed.html.contains("&lt;row&gt;"));
    assert!(failed.text.starts_with("Job LOAD failed"), "{}", failed.text);
    let unknown =
        render(&templates, &sample::full_notification(NotificationEvent::Unknown), Lang::Zh);
    assert_eq!(unknown.subject, "[Procession] MONTH_END 202407：LOAD 执行失败");
    assert!(unknown.html.starts_with("<!DOCTYPE html>"), "{}", unknown.html);
}

#[test]
fn faults_are_found_before_a_mail_goes_out() {
    for (name, text, message) in [
        (
            "text.txt",
            "a\n{{ headlin }}",
            "text.txt line 2: there is no field headlin; there are event",
        ),
        (
            "text.txt",
            "{% if event == 'never' %}\n{{ topic.jobb }}\n{% endif %}",
            "text.txt line 2: there is no field topic.jobb;",
        ),
        (
            "failed.mail.html",
            "{% for fact in facts %}\n<b>{{ fact.labell }}</b>{% endfor %}",
            "failed.mail.html line 2: there is no field fact.labell;",
        ),
        ("mail.html", "\n{% if error %}", "mail.html line 2: unexpected end of input"),
        ("mail.html", "{{ error|shout }}", "mail.html line 1: filter shout is unknown"),
        ("text.txt", "{% include 'subject.txt' %}", "text.txt line 1: unknown statement include"),
        (
            "subject.txt",
            "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}",
            "subject.txt line 1: it does not end within 500000 steps",
        ),
        ("faild.mail.html", "", "faild.mail.html: faild is no event; there are failed, timeout"),
        ("mails.html", "", "mails.html: a template is subject.txt, text.txt, mail.html, or one"),
    ] {
        let found = fault(name, text);
        assert!(found.starts_with(message), "{name} {text:?}: {found}");
    }
    let missing = MessageTemplates::load_from(Some(Path::new("/no/such"))).expect_err("a fault");
    assert!(missing.to_string().starts_with("cannot read /no/such: "), "{missing}");
}

/// Passes every sample and fails on a real notification.
#[test]
fn a_template_that_fails_at_last_gives_way_to_the_built_in_one() {
    let text = "{% if headline == 'odd' %}{{ 1 // 0 }}{% endif %}fine";
    let folder = folder(&[("mail.html", text), ("failed.text.txt", text)]);
    let templates = MessageTemplates::load_from(Some(folder.path())).expect("good templates");
    let mut letter = sample::full_notification(NotificationEvent::Failed);
    assert_eq!(render(&templates, &letter, Lang::En).html, "fine");
    letter.headline = BilingualText::untranslated("odd");
    let mail = render(&templates, &letter, Lang::En);
    assert!(mail.text.starts_with("odd\n") && mail.html.starts_with("<!DOCTYPE"), "{mail:?}");
    let warning = mail.warning.expect("a warning");
    assert!(
        warning.contains("mail.html line 1") && warning.contains("failed.text.txt"),
        "{warning}"
    );
}

#[test]
fn a_letter_of_any_size_is_rendered() {
    let mut letter = sample::full_notification(NotificationEvent::Digest);
    letter.items = vec![BilingualText::untranslated("x"); 100_000];
    letter.blocked = vec!["B".to_owned(); 100_000];
    letter.log = vec!["log".to_owned(); 1_000];
    let mail = render(&MessageTemplates::built_in(), &letter, Lang::En);
    assert_eq!(mail.warning, None);
    assert!(mail.html.contains("… 99950 more") && mail.html.contains("… 99800 more"));
    assert!(mail.html.len() < 100_000, "{}", mail.html.len());
}
