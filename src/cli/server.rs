//! `--server URL`: the same verbs through a server's API instead of a database. The output is built
//! from the documents of the API; `--json` prints them unchanged.

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

/// Default length of a list.
const USUAL: usize = 50;

/// One verb through a server.
pub(super) struct ServerVerb<'a> {
    global: &'a Global,
    server: ServerClient,
    arguments: VerbArguments<'a>,
}

/// Whether a verb needs neither a database nor a server.
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
    let verb_call = ServerVerb { global, server, arguments: VerbArguments(at) };
    let ended = match &verbs[..] {
        ["batch", verb] => verb_call.batch(verb).await,
        ["job", verb] => verb_call.run_job_verb(verb).await,
        ["schedule", verb] => verb_call.schedule(verb).await,
        ["event", "send"] => verb_call.event().await,
        [verb @ ("approve" | "reject")] => verb_call.decide_job(verb).await,
        ["approvals"] => verb_call.approvals().await,
        ["change-request", verb] => verb_call.change_request(verb).await,
        ["node", verb] => verb_call.run_node_verb(verb).await,
        ["outbox", verb] => verb_call.outbox(verb).await,
        ["backfill", verb] => verb_call.backfill(verb).await,
        ["logs"] => verb_call.print_logs().await,
        ["dag"] => verb_call.print_dag().await,
        ["audit"] => verb_call.audit().await,
        ["check"] => verb_call.check().await,
        ["apply"] => verb_call.apply().await,
        ["diff"] => verb_call.diff_definition().await,
        ["export"] => verb_call.export().await,
        ["history"] => verb_call.history().await,
        ["rollback"] => verb_call.rollback().await,
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
        // A refusal of the server is for the user to fix.
        Ok(refused) => BadInput(refused.to_string()).into(),
        Err(other) => other,
    })
}

/// The error that a verb is not available through a server.
fn not_there(verbs: &[&str]) -> anyhow::Error {
    let verb = verbs.join(" ");
    let message = format!(
        "{verb} works on a database and not through --server: it runs or looks after a process of its own. \
         Leave out --server (and unset PROCESSION_SERVER), on a machine that reaches the database"
    );
    BadInput(message).into()
}

impl ServerVerb<'_> {
    fn language(&self) -> Lang {
        self.server.lang
    }

    /// Query parameters from arguments, by their names in the API.
    fn query(&self, names: &[(&str, &'static str)]) -> Vec<(&'static str, String)> {
        let one = |(flag, name): &(&str, &'static str)| Some((*name, self.arguments.value(flag)?));
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

    /// The group and number of the batch; the names of its jobs may determine the group.
    async fn which_with_jobs(&self, no: String, words: &[String]) -> Result<(String, String)> {
        if self.arguments.value("group").is_some() || words.is_empty() {
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
        if let Some(group) = self.arguments.value("group") {
            return Ok((group, no));
        }
        let groups = self.groups_with(&no).await?;
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        match groups[..] {
            [one] => Ok((one.to_owned(), no)),
            [] => Err(BadInput(format!("there is no batch {no}, or none that you see")).into()),
            _ => {
                let groups = groups.join(", ");
                let message =
                    format!("batch {no} exists in several groups ({groups}); add --group");
                Err(BadInput(message).into())
            }
        }
    }

    async fn batch(&self, verb: &str) -> Result<VerbResult> {
        match verb {
            "list" => {
                let most = self.arguments.number("limit").unwrap_or(USUAL);
                return self.print_list(&["batches"], &[], most, BATCHES).await;
            }
            "open" => return self.open_batch().await,
            "no" => return Err(not_there(&["batch", "no"])),
            _ => {}
        }
        let no = self.arguments.required_value("batch_no");
        let jobs = if verb == "rerun" { self.arguments.values("jobs") } else { Vec::new() };
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
                let body = json!({"reason": self.arguments.value("reason")});
                self.print_document(&self.server.post_json(&below(word), &body).await?, &[])
            }
            "rerun" => self.rerun_batch(&group, &no).await,
            _ => Err(not_there(&["batch", verb])),
        }
    }

    /// Prints a document that is a list, or contains it under `name`.
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
                if self.arguments.value("owner").is_some() {
                    let message =
                        "--owner is not for a server; leave it out, or use --group and --tag";
                    return Err(BadInput(message.to_owned()).into());
                }
                let query = self.query(&[("group", "group"), ("tag", "tag")]);
                self.print_list(&["jobs"], &query, 100_000, JOBS).await
            }
            "show" => {
                let code = self.arguments.required_value("code");
                self.print_document(&self.server.get(&["jobs", &code], &[]).await?, &[])
            }
            "stats" => match self.arguments.value("code") {
                Some(code) => self
                    .print_document(&self.server.get(&["jobs", &code, "stats"], &[]).await?, &[]),
                None => Err(BadInput("job stats: name a job".to_owned()).into()),
            },
            "trust" => {
                let body = json!({"reason": self.arguments.value("reason")});
                let mut ended = VerbResult::Well;
                for code in self.arguments.values("jobs") {
                    match self.server.post_json(&["jobs", &code, "trust"], &body).await {
                        Ok(done) => drop(self.print_document(&done, &[])?),
                        // The others are requested nevertheless.
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
        let code = self.arguments.value("code").unwrap_or_default();
        let why = json!({"reason": self.arguments.value("reason")});
        match verb {
            "list" => {
                let most = self.arguments.number("limit").unwrap_or(USUAL);
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
                let most = self.arguments.number("limit").unwrap_or(20);
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

    /// The overrides of a manual firing.
    fn given(&self) -> Result<Value> {
        Ok(json!({
            "batch_no": self.arguments.value("batch_no"), "business_date": self.arguments.value("business_date"),
            "params": crate::cli::order::pairs(&self.arguments.values("params"))?,
            "free_text": self.arguments.has_flag("free_text"),
            "reason": self.arguments.value("reason"), "key": self.arguments.value("key"),
        }))
    }

    async fn event(&self) -> Result<VerbResult> {
        let (name, mut body) = (self.arguments.required_value("name"), self.given()?);
        if body["reason"].is_null() {
            body["reason"] = json!("sent from the command line");
        }
        self.print_document(
            &self.server.post_json(&["events", &name], &body).await?,
            &[("fired", FIRED)],
        )
    }

    async fn decide_job(&self, verb: &str) -> Result<VerbResult> {
        let (no, job) =
            (self.arguments.required_value("batch_no"), self.arguments.required_value("job"));
        let (group, no) = self.which_with_jobs(no, std::slice::from_ref(&job)).await?;
        let path = ["groups", &group, "batches", &no, "jobs", &job, verb];
        let done = self
            .server
            .post_json(&path, &json!({"comment": self.arguments.value("comment")}))
            .await?;
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
        let most = self.arguments.number("limit").unwrap_or(USUAL);
        let mut query = self.query(&[("group", "group")]);
        query.extend(self.arguments.has_flag("all").then(|| ("all", "true".to_owned())));
        self.print_list(&["approvals"], &query, most, APPROVALS).await
    }

    async fn run_node_verb(&self, verb: &str) -> Result<VerbResult> {
        if verb == "list" {
            let query: &[(&str, String)] =
                if self.arguments.has_flag("all") { &[("all", "true".to_owned())] } else { &[] };
            let document = self.server.get(&["nodes"], query).await?;
            return self.show_list(&document, "items", NODES);
        }
        let body = json!({"reason": self.arguments.value("reason")});
        let node = self.arguments.required_value("node");
        self.print_document(&self.server.post_json(&["nodes", &node, verb], &body).await?, &[])
    }

    async fn outbox(&self, verb: &str) -> Result<VerbResult> {
        let filter = ["status", "to", "group", "job", "event"];
        let names: Vec<(&str, &'static str)> = filter.iter().map(|n| (*n, *n)).collect();
        match verb {
            "list" => {
                let most = self.arguments.number("limit").unwrap_or(USUAL);
                self.print_list(&["outbox"], &self.query(&names), most, NOTICES).await
            }
            "show" => {
                let id = self.arguments.required_value("id");
                self.print_document(&self.server.get(&["outbox", &id], &[]).await?, &[])
            }
            "resend" | "ack" => {
                let ids = self.arguments.values("ids");
                if ids.is_empty() {
                    let message = "--all is not for a server; name the notices by their numbers";
                    return Err(BadInput(message.to_owned()).into());
                }
                let reason = self.arguments.value("reason");
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
        let id = self.arguments.value("id").unwrap_or_default();
        match verb {
            "list" => {
                let most = self.arguments.number("limit").unwrap_or(20);
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
        let text = match (self.arguments.value("batch"), self.arguments.value("what")) {
            (Some(no), what) => {
                let jobs: Vec<String> = self.arguments.value("focus").into_iter().collect();
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
        if let Some(form) = self.arguments.value("export") {
            let query = [query, vec![("format", form)]].concat();
            out::print_line(self.server.get_text(&["audit", "export"], &query).await?.trim_end());
            return Ok(VerbResult::Well);
        }
        let most = self.arguments.number("limit").unwrap_or(USUAL);
        self.print_list(&["audit"], &query, most, ACTS).await
    }

    async fn history(&self) -> Result<VerbResult> {
        let group = self.arguments.required_value("group");
        self.print_list(&["groups", &group, "versions"], &[], 10_000, VERSIONS).await
    }
}

/// The job of a group that `word` names; it may already be the full name.
fn job_of(group: &str, word: &str) -> Option<JobKey> {
    let group = GroupCode::parse(group).ok()?;
    let rest = word.trim().strip_prefix(group.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let code = JobCode::parse(rest.unwrap_or(word.trim())).ok()?;
    Some(JobKey { group, code })
}
