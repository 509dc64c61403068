//! `--server URL`: the same verbs, asked of a server's API in place of a database. What is printed is made of
//! the documents that the API gives; `--json` gives them as they are.

mod acts;
mod change_requests;
mod client;
mod columns;
mod files;
mod follow;
mod said;
mod shown;

use crate::cli::batch_ref::one_group;
use crate::cli::server::change_requests::ChangeWaits;
use crate::cli::server::client::{ServerClient, ServerFiles, ServerRefusal};
use crate::cli::server::columns::{
    ACTS, APPROVALS, BACKFILLS, BATCH_JOBS, BATCHES, ENTRIES, FIRED, FIRINGS, JOBS, NODES, NOTICES,
    REASONS, SCHEDULES, VERSIONS,
};
use crate::cli::server::said::VerbArguments;
use crate::cli::server::shown::TableColumn;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::job_key::{JobKey, JobNameError};
use crate::domain::text::lang::Lang;
use anyhow::{Result, anyhow};
use clap::ArgMatches;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many items a list has when nobody says.
const USUAL: usize = 50;

/// One verb, asked of a server.
pub(super) struct ServerVerb<'a> {
    global: &'a Global,
    server: ServerClient,
    said: VerbArguments<'a>,
}

/// Whether a verb asks nobody anything: neither a database nor a server.
pub(super) fn is_local(matches: &ArgMatches) -> bool {
    matches!(
        &verbs(matches).0[..],
        ["schema" | "completions" | "man", ..]
            | ["import", ..]
            | ["batch", "no"]
            | ["secret", "key" | "seal"]
            | ["notify", "events"]
            | ["ldap", "check"]
    )
}

/// The verb, and its arguments.
fn verbs(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut verbs, mut at) = (Vec::new(), matches);
    while let Some((verb, deeper)) = at.subcommand() {
        verbs.push(verb);
        at = deeper;
    }
    (verbs, at)
}

/// Runs a verb.
pub(super) async fn dispatch(
    global: &Global,
    address: &str,
    matches: &ArgMatches,
) -> Result<VerbResult> {
    let (verbs, at) = verbs(matches);
    let is_said = |id| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    if is_said("db") && is_said("server") {
        return Err(BadInput("--db and --server: give one of them".to_owned()).into());
    }
    let lang = global.language();
    let (token, authorities) = (global.token_file.as_deref(), global.tls_ca.as_deref());
    let server = ServerClient::new(address, ServerFiles { token, authorities }, lang)?;
    let desk = ServerVerb { global, server, said: VerbArguments(at) };
    let ended = match &verbs[..] {
        ["batch", verb] => desk.batch(verb).await,
        ["job", verb] => desk.run_job_verb(verb).await,
        ["schedule", verb] => desk.schedule(verb).await,
        ["event", "send"] => desk.event().await,
        [verb @ ("approve" | "reject")] => desk.decide_job(verb).await,
        ["approvals"] => desk.approvals().await,
        ["change-request", verb] => desk.change_request(verb).await,
        ["node", verb] => desk.run_node_verb(verb).await,
        ["outbox", verb] => desk.outbox(verb).await,
        ["backfill", verb] => desk.backfill(verb).await,
        ["logs"] => desk.print_logs().await,
        ["dag"] => desk.print_dag().await,
        ["audit"] => desk.audit().await,
        ["check"] => desk.check().await,
        ["apply"] => desk.apply().await,
        ["diff"] => desk.diff_definition().await,
        ["export"] => desk.export().await,
        ["history"] => desk.history().await,
        ["rollback"] => desk.rollback().await,
        _ => Err(not_there(&verbs)),
    };
    let error = match ended {
        Ok(ended) => return Ok(ended),
        Err(error) => error,
    };
    if let Some(waits) = error.downcast_ref::<ChangeWaits>() {
        return waits.print(lang, global.json);
    }
    Err(match error.downcast::<ServerRefusal>() {
        // What a server refuses is what whoever asked can mend.
        Ok(refused) => BadInput(refused.to_string()).into(),
        Err(other) => other,
    })
}

/// That a verb is not for a server.
fn not_there(verbs: &[&str]) -> anyhow::Error {
    let verb = verbs.join(" ");
    let said = format!(
        "{verb} works on a database and not through --server: it runs or looks after a process of its own. \
         Leave out --server (and unset PROCESSION_SERVER), on a machine that reaches the database"
    );
    BadInput(said).into()
}

impl ServerVerb<'_> {
    fn language(&self) -> Lang {
        self.server.lang
    }

    /// Query parameters of what was said, by their names there.
    fn query(&self, names: &[(&str, &'static str)]) -> Vec<(&'static str, String)> {
        let one = |(flag, name): &(&str, &'static str)| Some((*name, self.said.value(flag)?));
        names.iter().filter_map(one).collect()
    }

    /// Prints a list, as JSON or as a table.
    async fn print_list(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        most: usize,
        columns: &[TableColumn],
    ) -> Result<VerbResult> {
        let items = self.server.list_items(path, query, most).await?;
        match self.global.json {
            true => out::print_json(&json!(items))?,
            false => shown::table(&items, columns, self.language()),
        }
        Ok(VerbResult::Well)
    }

    /// Prints a document, as JSON or as fields.
    fn print_document(
        &self,
        document: &Value,
        lists: &[(&str, &[TableColumn])],
    ) -> Result<VerbResult> {
        match self.global.json {
            true => out::print_json(document)?,
            false => shown::document(document, lists, self.language()),
        }
        Ok(VerbResult::Well)
    }

    /// The group and number of the batch that is meant; the names of its jobs may say which group.
    async fn which_with_jobs(&self, no: String, words: &[String]) -> Result<(String, String)> {
        if self.said.value("group").is_some() || words.is_empty() {
            return self.which_of(no).await;
        }
        let groups = self.groups_with(&no).await?;
        if groups.len() < 2 {
            return self.which_of(no).await;
        }
        let mut candidates: BTreeMap<&str, Vec<JobKey>> = BTreeMap::new();
        for (word, group) in words.iter().flat_map(|w| groups.iter().map(move |g| (w, g))) {
            let path = ["groups", group.as_str(), "batches", no.as_str(), "jobs", word.as_str()];
            let found = match self.server.get(&path, &[]).await {
                Ok(_) => job_of(group, word),
                Err(error) if error.downcast_ref().is_some_and(ServerRefusal::is_missing) => None,
                Err(error) => return Err(error),
            };
            candidates.entry(word).or_default().extend(found);
        }
        let group = one_group(&no, &groups, words, |word| match &candidates[word][..] {
            [] => Err(JobNameError::Unknown(word.to_owned())),
            [job] => Ok(job.group.to_string()),
            several => {
                let (word, candidates) = (word.to_owned(), several.to_vec());
                Err(JobNameError::Ambiguous { word, candidates })
            }
        })?;
        Ok((group, no))
    }

    /// The groups that have a batch of this number.
    async fn groups_with(&self, no: &str) -> Result<BTreeSet<String>> {
        let query = [("batch_no", no.to_owned())];
        let found = self.server.list_items(&["batches"], &query, 100).await?;
        Ok(found.iter().filter_map(|b| b["group"].as_str().map(str::to_owned)).collect())
    }

    async fn which_of(&self, no: String) -> Result<(String, String)> {
        if let Some(group) = self.said.value("group") {
            return Ok((group, no));
        }
        let groups = self.groups_with(&no).await?;
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        match groups[..] {
            [one] => Ok((one.to_owned(), no)),
            [] => Err(BadInput(format!("there is no batch {no}, or none that you see")).into()),
            _ => {
                let groups = groups.join(", ");
                let said = format!("batch {no} exists in several groups ({groups}); add --group");
                Err(BadInput(said).into())
            }
        }
    }

    async fn batch(&self, verb: &str) -> Result<VerbResult> {
        match verb {
            "list" => {
                let most = self.said.number("limit").unwrap_or(USUAL);
                return self.print_list(&["batches"], &[], most, BATCHES).await;
            }
            "open" => return self.open_batch().await,
            "no" => return Err(not_there(&["batch", "no"])),
            _ => {}
        }
        let no = self.said.required_value("batch_no");
        let jobs = if verb == "rerun" { self.said.values("jobs") } else { Vec::new() };
        let (group, no) = self.which_with_jobs(no, &jobs).await?;
        let at = ["groups", group.as_str(), "batches", no.as_str()];
        let below = |word: &'static str| [&at[..], &[word]].concat();
        match verb {
            "show" => {
                self.print_document(&self.server.get(&at, &[]).await?, &[("jobs", BATCH_JOBS)])
            }
            "why" => {
                let document = self.server.get(&below("why"), &[]).await?;
                self.show_list(&document, "jobs", REASONS)
            }
            "eta" => self.print_document(&self.server.get(&below("eta"), &[]).await?, &[]),
            "wait" => self.wait_for_batch(&group, &no).await,
            "kill" => self.kill_batch(&group, &no).await,
            "pause" | "resume" => {
                let word = if verb == "pause" { "pause" } else { "resume" };
                let body = json!({"reason": self.said.value("reason")});
                self.print_document(&self.server.post_json(&below(word), &body).await?, &[])
            }
            "rerun" => self.rerun_batch(&group, &no).await,
            _ => Err(not_there(&["batch", verb])),
        }
    }

    /// A document that is a list, or has it under `name`.
    fn show_list(
        &self,
        document: &Value,
        name: &str,
        columns: &[TableColumn],
    ) -> Result<VerbResult> {
        let items = document.as_array().or_else(|| document[name].as_array());
        let items = items.or_else(|| document["items"].as_array());
        match (self.global.json, items) {
            (false, Some(items)) => shown::table(items, columns, self.language()),
            (true, Some(items)) if document["items"].is_array() => out::print_json(&json!(items))?,
            _ => return self.print_document(document, &[(name, columns)]),
        }
        Ok(VerbResult::Well)
    }

    async fn run_job_verb(&self, verb: &str) -> Result<VerbResult> {
        match verb {
            "list" => {
                if self.said.value("owner").is_some() {
                    let said =
                        "--owner is not for a server; leave it out, or use --group and --tag";
                    return Err(BadInput(said.to_owned()).into());
                }
                let query = self.query(&[("group", "group"), ("tag", "tag")]);
                self.print_list(&["jobs"], &query, 100_000, JOBS).await
            }
            "show" => {
                let code = self.said.required_value("code");
                self.print_document(&self.server.get(&["jobs", &code], &[]).await?, &[])
            }
            "stats" => match self.said.value("code") {
                Some(code) => self
                    .print_document(&self.server.get(&["jobs", &code, "stats"], &[]).await?, &[]),
                None => Err(BadInput("job stats: name a job".to_owned()).into()),
            },
            "trust" => {
                let body = json!({"reason": self.said.value("reason")});
                let mut ended = VerbResult::Well;
                for code in self.said.values("jobs") {
                    match self.server.post_json(&["jobs", &code, "trust"], &body).await {
                        Ok(done) => drop(self.print_document(&done, &[])?),
                        // The others are asked for all the same.
                        Err(error) => match error.downcast::<ChangeWaits>() {
                            Ok(waits) => ended = waits.print(self.language(), self.global.json)?,
                            Err(error) => return Err(error),
                        },
                    }
                }
                Ok(ended)
            }
            _ => self.act_on_jobs(verb).await,
        }
    }

    async fn schedule(&self, verb: &str) -> Result<VerbResult> {
        let code = self.said.value("code").unwrap_or_default();
        let why = json!({"reason": self.said.value("reason")});
        match verb {
            "list" => {
                let most = self.said.number("limit").unwrap_or(USUAL);
                let query = self.query(&[("group", "group")]);
                self.print_list(&["schedules"], &query, most, SCHEDULES).await
            }
            "show" => self.print_document(&self.server.get(&["schedules", &code], &[]).await?, &[]),
            "next" if !code.is_empty() => {
                let query = self.query(&[("count", "n")]);
                self.print_document(
                    &self.server.get(&["schedules", &code, "next"], &query).await?,
                    &[],
                )
            }
            "firings" if !code.is_empty() => {
                let most = self.said.number("limit").unwrap_or(20);
                self.print_list(&["schedules", &code, "firings"], &[], most, FIRINGS).await
            }
            "pause" | "resume" | "skip-next" => self.print_document(
                &self.server.post_json(&["schedules", &code, verb], &why).await?,
                &[],
            ),
            "remove" => {
                let method = reqwest::Method::DELETE;
                let done = self.server.change(method, &["schedules", &code], &why).await?;
                self.print_document(&done, &[])
            }
            "fire-now" => {
                let body = self.given()?;
                self.print_document(
                    &self.server.post_json(&["schedules", &code, "fire-now"], &body).await?,
                    &[],
                )
            }
            _ => Err(not_there(&["schedule", verb])),
        }
    }

    /// What a firing by hand gives by itself.
    fn given(&self) -> Result<Value> {
        Ok(json!({
            "batch_no": self.said.value("batch_no"), "business_date": self.said.value("business_date"),
            "params": crate::cli::order::pairs(&self.said.values("params"))?,
            "free_text": self.said.has_flag("free_text"),
            "reason": self.said.value("reason"), "key": self.said.value("key"),
        }))
    }

    async fn event(&self) -> Result<VerbResult> {
        let (name, mut body) = (self.said.required_value("name"), self.given()?);
        if body["reason"].is_null() {
            body["reason"] = json!("sent from the command line");
        }
        self.print_document(
            &self.server.post_json(&["events", &name], &body).await?,
            &[("fired", FIRED)],
        )
    }

    async fn decide_job(&self, verb: &str) -> Result<VerbResult> {
        let (no, job) = (self.said.required_value("batch_no"), self.said.required_value("job"));
        let (group, no) = self.which_with_jobs(no, std::slice::from_ref(&job)).await?;
        let path = ["groups", &group, "batches", &no, "jobs", &job, verb];
        let done =
            self.server.post_json(&path, &json!({"comment": self.said.value("comment")})).await?;
        if self.global.json {
            out::print_json(&done)?;
            return Ok(VerbResult::Well);
        }
        let job = done["approval"]["job_code"].as_str().unwrap_or(&job);
        out::print_line(&match (self.language(), verb) {
            (Lang::En, "approve") => format!("job {job} of batch {no} is approved"),
            (Lang::En, _) => format!("job {job} of batch {no} is rejected"),
            (Lang::Zh, "approve") => format!("批次 {no} 的作业 {job} 已批准"),
            (Lang::Zh, _) => format!("批次 {no} 的作业 {job} 已拒绝"),
        });
        Ok(VerbResult::Well)
    }

    async fn approvals(&self) -> Result<VerbResult> {
        let most = self.said.number("limit").unwrap_or(USUAL);
        let mut query = self.query(&[("group", "group")]);
        query.extend(self.said.has_flag("all").then(|| ("all", "true".to_owned())));
        self.print_list(&["approvals"], &query, most, APPROVALS).await
    }

    async fn run_node_verb(&self, verb: &str) -> Result<VerbResult> {
        if verb == "list" {
            let query: &[(&str, String)] =
                if self.said.has_flag("all") { &[("all", "true".to_owned())] } else { &[] };
            let document = self.server.get(&["nodes"], query).await?;
            return self.show_list(&document, "items", NODES);
        }
        let body = json!({"reason": self.said.value("reason")});
        let node = self.said.required_value("node");
        self.print_document(&self.server.post_json(&["nodes", &node, verb], &body).await?, &[])
    }

    async fn outbox(&self, verb: &str) -> Result<VerbResult> {
        let filter = ["status", "to", "group", "job", "event"];
        let names: Vec<(&str, &'static str)> = filter.iter().map(|n| (*n, *n)).collect();
        match verb {
            "list" => {
                let most = self.said.number("limit").unwrap_or(USUAL);
                self.print_list(&["outbox"], &self.query(&names), most, NOTICES).await
            }
            "show" => {
                let id = self.said.required_value("id");
                self.print_document(&self.server.get(&["outbox", &id], &[]).await?, &[])
            }
            "resend" | "ack" => {
                let ids = self.said.values("ids");
                if ids.is_empty() {
                    let said = "--all is not for a server; name the notices by their numbers";
                    return Err(BadInput(said.to_owned()).into());
                }
                let reason = self.said.value("reason");
                let reason = reason.unwrap_or_else(|| format!("{verb} from the command line"));
                let (mut changed, mut left) = (0, 0);
                for id in ids {
                    let body = json!({ "reason": reason });
                    let done = self.server.post_json(&["outbox", &id, verb], &body).await?;
                    changed += done["changed"].as_u64().unwrap_or_default();
                    left += done["left"].as_u64().unwrap_or_default();
                }
                self.print_document(&json!({"changed": changed, "left": left}), &[])
            }
            _ => Err(not_there(&["outbox", verb])),
        }
    }

    async fn backfill(&self, verb: &str) -> Result<VerbResult> {
        let id = self.said.value("id").unwrap_or_default();
        match verb {
            "list" => {
                let most = self.said.number("limit").unwrap_or(20);
                self.print_list(&["backfills"], &[], most, BACKFILLS).await
            }
            "show" => {
                let document = self.server.get(&["backfills", &id], &[]).await?;
                self.print_document(&document, &[("batches", ENTRIES)])
            }
            "stop" => {
                let body = json!({"reason": "stopped from the command line"});
                self.print_document(
                    &self.server.post_json(&["backfills", &id, "stop"], &body).await?,
                    &[],
                )
            }
            _ => Err(not_there(&["backfill", verb])),
        }
    }

    async fn print_dag(&self) -> Result<VerbResult> {
        let names = ["format", "focus", "up", "down", "collapse", "reduce", "layout", "direction"];
        let names: Vec<(&str, &'static str)> = names.iter().map(|n| (*n, *n)).collect();
        let query = self.query(&names);
        let text = match (self.said.value("batch"), self.said.value("what")) {
            (Some(no), what) => {
                let jobs: Vec<String> = self.said.value("focus").into_iter().collect();
                let group = match what {
                    Some(group) => group,
                    None => self.which_with_jobs(no.clone(), &jobs).await?.0,
                };
                self.server.get_text(&["groups", &group, "batches", &no, "dag"], &query).await?
            }
            (None, Some(group)) => self.server.get_text(&["groups", &group, "dag"], &query).await?,
            (None, None) => return Err(anyhow!("neither a group nor a batch")),
        };
        out::print_line(text.trim_end());
        Ok(VerbResult::Well)
    }

    async fn audit(&self) -> Result<VerbResult> {
        let query = self.query(&[
            ("actor", "actor"),
            ("action", "action"),
            ("batch", "batch_no"),
            ("group", "group"),
            ("job", "job"),
            ("from", "from"),
            ("to", "to"),
        ]);
        if let Some(form) = self.said.value("export") {
            let query = [query, vec![("format", form)]].concat();
            out::print_line(self.server.get_text(&["audit", "export"], &query).await?.trim_end());
            return Ok(VerbResult::Well);
        }
        let most = self.said.number("limit").unwrap_or(USUAL);
        self.print_list(&["audit"], &query, most, ACTS).await
    }

    async fn history(&self) -> Result<VerbResult> {
        let group = self.said.required_value("group");
        self.print_list(&["groups", &group, "versions"], &[], 10_000, VERSIONS).await
    }
}

/// The job of a group that `word` names: its full name may stand there already.
fn job_of(group: &str, word: &str) -> Option<JobKey> {
    let group = GroupCode::parse(group).ok()?;
    let rest = word.trim().strip_prefix(group.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let code = JobCode::parse(rest.unwrap_or(word.trim())).ok()?;
    Some(JobKey { group, code })
}
