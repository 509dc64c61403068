//! `definition_version`: the versions of a group's definition.

use crate::db::Row;
use crate::domain::id::GroupCode;
use crate::domain::job::borrowed::BorrowedDefinition;
use crate::domain::job::dependency::stored;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, Group, JobDef, JobDependency, Shared};
use crate::domain::source::DataSource;
use crate::domain::time::Millis;
use crate::store::{Tx, packed};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// A version of a group, with the sources and shared objects that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub group: GroupCode,
    /// The version number, counted from 1 within the group.
    pub no: u32,
    pub author: String,
    pub remark: Option<String>,
    pub at: Millis,
    /// The complete group.
    pub definition: Definition,
}

/// A new version.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    pub group: &'a GroupCode,
    pub author: &'a str,
    pub remark: Option<&'a str>,
    /// The group, whole.
    pub definition: &'a BorrowedDefinition<'a>,
}

/// Inserts the next version of a group and returns its number. Of two concurrent writers one fails,
/// because the number is unique.
pub async fn add_version(tx: &mut Tx, new: &NewVersion<'_>, now: Millis) -> Result<u32> {
    let no = last_number(tx, new.group).await? + 1;
    let definition = packed::pack_value(&StoredVersion::from_definition(new.definition))?;
    let what = format!("the definition of group {}", new.group);
    packed::check_fits(tx, &what, &definition).await?;
    tx.execute(
        "INSERT INTO definition_version \
         (group_code, version_no, author, remark, definition, create_time) VALUES (?, ?, ?, ?, ?, ?)",
        &[
            new.group.as_str().into(),
            no.into(),
            new.author.into(),
            new.remark.into(),
            definition.into(),
            now.to_utc().into(),
        ],
    )
    .await
    .context("write definition_version")?;
    Ok(no)
}

/// The number of the last version of a group; 0 when there is none.
pub async fn last_number(tx: &mut Tx, group: &GroupCode) -> Result<u32> {
    let sql = "SELECT MAX(version_no) AS version_no FROM definition_version WHERE group_code = ?";
    let row = tx.fetch_optional(sql, &[group.as_str().into()]).await?;
    let no = row.map(|r| r.opt_int("version_no")).transpose()?.flatten();
    Ok(u32::try_from(no.unwrap_or(0))?)
}

/// A version without its definition, which may be megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHead {
    /// The version number, counted from 1 within the group.
    pub no: u32,
    pub author: String,
    pub remark: Option<String>,
    pub at: Millis,
}

/// The versions of a group, latest first, older than the version `before`.
pub async fn heads(
    tx: &mut Tx,
    group: &GroupCode,
    before: Option<u32>,
    limit: u32,
) -> Result<Vec<VersionHead>> {
    let sql = "SELECT version_no, author, remark, create_time FROM definition_version \
               WHERE group_code = ? AND version_no < ? ORDER BY version_no DESC LIMIT ?";
    let before = i64::from(before.unwrap_or(u32::MAX >> 1));
    let rows = tx.fetch_all(sql, &[group.as_str().into(), before.into(), limit.into()]).await;
    let head = |row: &Row| -> Result<VersionHead> {
        Ok(VersionHead {
            no: u32::try_from(row.get_int("version_no")?)?,
            author: row.get_text("author")?,
            remark: row.opt_text("remark")?,
            at: Millis::from(row.get_time("create_time")?),
        })
    };
    rows.context("read definition_version")?.iter().map(head).collect()
}

pub async fn get(tx: &mut Tx, group: &GroupCode, no: u32) -> Result<Option<Version>> {
    let sql = "SELECT * FROM definition_version WHERE group_code = ? AND version_no = ?";
    let row = tx.fetch_optional(sql, &[group.as_str().into(), no.into()]).await;
    row.context("read definition_version")?.as_ref().map(version).transpose()
}

/// All versions of a group, oldest first.
pub async fn of_group(tx: &mut Tx, group: &GroupCode) -> Result<Vec<Version>> {
    let sql = "SELECT * FROM definition_version WHERE group_code = ? ORDER BY version_no";
    let rows = tx.fetch_all(sql, &[group.as_str().into()]).await?;
    rows.iter().map(version).collect::<Result<_>>().context("read definition_version")
}

fn version(row: &Row) -> Result<Version> {
    Ok(Version {
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        no: u32::try_from(row.get_int("version_no")?)?,
        author: row.get_text("author")?,
        remark: row.opt_text("remark")?,
        at: Millis::from(row.get_time("create_time")?),
        definition: packed::unpack::<StoredVersionContent>(&row.get_text("definition")?)?.whole(),
    })
}

/// A definition in the stored form: dependencies in the most compact form, and without the fields
/// that no version has.
#[derive(Serialize)]
struct StoredVersion<'a> {
    sources: &'a [&'a DataSource],
    groups: &'a [&'a Group],
    jobs: &'a [&'a JobDef],
    #[serde(serialize_with = "stored::serialize")]
    dependencies: &'a [&'a JobDependency],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    externals: &'a [&'a ExternalDependency],
    #[serde(flatten)]
    shared: &'a Shared,
}

impl<'a> StoredVersion<'a> {
    fn from_definition(defs: &'a BorrowedDefinition<'_>) -> Self {
        let BorrowedDefinition { sources, groups, jobs, dependencies, externals, shared, .. } =
            defs;
        Self { sources, groups, jobs, dependencies, externals, shared }
    }
}

/// The stored form as it is read.
#[derive(Deserialize)]
struct StoredVersionContent {
    sources: Vec<DataSource>,
    groups: Vec<Group>,
    jobs: Vec<JobDef>,
    #[serde(with = "stored")]
    dependencies: Vec<JobDependency>,
    #[serde(default)]
    externals: Vec<ExternalDependency>,
    #[serde(flatten)]
    shared: Shared,
}

impl StoredVersionContent {
    fn whole(self) -> Definition {
        let Self { sources, groups, jobs, mut dependencies, mut externals, shared } = self;
        if let Some(group) = groups.first().map(|group| &group.code) {
            dependencies.iter_mut().for_each(|d| d.group.clone_from(group));
            externals.iter_mut().for_each(|e| e.waiting_group.clone_from(group));
        }
        Definition {
            sources,
            groups,
            jobs,
            dependencies,
            externals,
            shared,
            ..Definition::default()
        }
    }
}
