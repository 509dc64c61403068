//! Stored form of dependencies: runs of indexes into a table of job codes.
//!
//! As one object each, 990,000 dependencies between 10,000 jobs take some 70 bytes each and 70 MB
//! of JSON; MySQL's default packet limit is 16 MiB. As runs each takes one index, some 5 bytes.
//!
//! The form is one list: first the table, a list of codes; then one list of numbers per run, `[job,
//! order, parent, parent, …]`, with the job and its parents as indexes into the table and `order`
//! that of the first parent; a dependency with a condition is an object between the runs. The older
//! form, a list of objects only, is read as well.

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::dependency::JobDependency;
use crate::domain::job::trigger_rule::EdgeCondition;
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeSeq as _, Serializer};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;

/// Writes dependencies in their order.
pub fn serialize<T, S>(all: &[T], to: S) -> Result<S::Ok, S::Error>
where
    T: Borrow<JobDependency>,
    S: Serializer,
{
    let (table, places) = table(all);
    let mut list = to.serialize_seq(None)?;
    if !table.is_empty() {
        list.serialize_element(&table)?;
    }
    let mut run: Vec<i64> = Vec::new();
    let mut rest = all.iter().map(Borrow::borrow).peekable();
    while let Some(one) = rest.next() {
        if one.when != EdgeCondition::Success {
            list.serialize_element(one)?;
            continue;
        }
        run.clear();
        run.extend([places[&one.job_code], one.dependency_order.into(), places[&one.depends_on]]);
        let mut last = one;
        while let Some(next) = rest.next_if(|next| continues(last, next)) {
            run.push(places[&next.depends_on]);
            last = next;
        }
        list.serialize_element(&run)?;
    }
    list.end()
}

fn continues(last: &JobDependency, next: &JobDependency) -> bool {
    next.when == EdgeCondition::Success
        && next.job_code == last.job_code
        && last.dependency_order.checked_add(1) == Some(next.dependency_order)
}

/// The codes that runs name, and the place of each.
fn table<T: Borrow<JobDependency>>(all: &[T]) -> (Vec<&JobCode>, HashMap<&JobCode, i64>) {
    let (mut table, mut places) = (Vec::new(), HashMap::new());
    let plain = all
        .iter()
        .map(Borrow::borrow)
        .filter(|d: &&JobDependency| d.when == EdgeCondition::Success);
    for code in plain.flat_map(|d| [&d.job_code, &d.depends_on]) {
        places.entry(code).or_insert_with(|| {
            table.push(code);
            (table.len() - 1) as i64
        });
    }
    (table, places)
}

/// Reads what `serialize` wrote, or the older list of objects.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<JobDependency>, D::Error> {
    from.deserialize_seq(List)
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Vec<JobDependency>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of dependencies")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut read = Read::default();
        while list.next_element_seed(&mut read)?.is_some() {}
        Ok(read.found)
    }
}

/// State of reading the list.
#[derive(Default)]
struct Read {
    table: Vec<JobCode>,
    found: Vec<JobDependency>,
}

impl Read {
    fn job_code_at<E: serde::de::Error>(&self, place: i64) -> Result<&JobCode, E> {
        let code = usize::try_from(place).ok().and_then(|at| self.table.get(at));
        code.ok_or_else(|| E::custom(format!("dependency on place {place}, which no code has")))
    }
}

impl<'de> DeserializeSeed<'de> for &mut Read {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Read {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of codes, a run of places or a dependency")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.found.push(JobDependency::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let job = match list.next_element::<ListStart>()? {
            None => return Ok(()),
            Some(ListStart::Code(first)) => {
                self.table.push(first);
                while let Some(code) = list.next_element::<JobCode>()? {
                    self.table.push(code);
                }
                return Ok(());
            }
            Some(ListStart::Place(place)) => self.job_code_at::<A::Error>(place)?.clone(),
        };
        let mut order: i32 = list
            .next_element()?
            .ok_or_else(|| A::Error::custom("a run of dependencies without an order"))?;
        while let Some(parent) = list.next_element::<i64>()? {
            let parent = self.job_code_at::<A::Error>(parent)?.clone();
            let group = GroupCode::not_read();
            self.found.push(JobDependency::plain(&group, job.clone(), parent, order));
            order = order.saturating_add(1);
        }
        Ok(())
    }
}

/// The first element of a list, which tells the two forms apart.
enum ListStart {
    Code(JobCode),
    Place(i64),
}

impl<'de> serde::Deserialize<'de> for ListStart {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl Visitor<'_> for ItemVisitor {
    type Value = ListStart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a code or a place")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<ListStart, E> {
        JobCode::parse(word).map(ListStart::Code).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, place: u64) -> Result<ListStart, E> {
        i64::try_from(place).map(ListStart::Place).map_err(E::custom)
    }

    fn visit_i64<E>(self, place: i64) -> Result<ListStart, E> {
        Ok(ListStart::Place(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Stored(#[serde(with = "crate::domain::job::dependency::stored")] Vec<JobDependency>);

    fn edge(job: &str, parent: &str, order: i32, when: &str) -> JobDependency {
        let code = |word: &str| JobCode::parse(word).expect("code");
        let when = EdgeCondition::parse(when).expect("when");
        let group = GroupCode::not_read();
        JobDependency { when, ..JobDependency::plain(&group, code(job), code(parent), order) }
    }

    #[test]
    fn runs_name_each_code_once() {
        let all = vec![
            edge("C", "A", 1, "success"),
            edge("C", "B", 2, "success"),
            edge("D", "C", 1, "failure"),
            edge("D", "A", 2, "success"),
            edge("D", "B", 7, "success"),
        ];
        let text = serde_json::to_string(&Stored(all.clone())).expect("text");
        let object = r#"{"job_code":"D","depends_on":"C","dependency_order":1,"when":"failure"}"#;
        assert_eq!(text, format!(r#"[["C","A","B","D"],[0,1,1,2],{object},[3,2,1],[3,7,2]]"#));
        let read: Stored = serde_json::from_str(&text).expect("read");
        assert_eq!(read.0, all);
        // The older form: a list of objects.
        let objects = serde_json::to_string(&all).expect("objects");
        assert_eq!(serde_json::from_str::<Stored>(&objects).expect("read").0, all);
    }

    #[test]
    fn what_is_no_list_of_dependencies_is_refused() {
        for (text, said) in [
            (r#"[["A","B"],[0,1,2]]"#, "place 2, which no code has"),
            (r#"[["A"],[-1,1,0]]"#, "place -1"),
            (r#"[["A"],[0]]"#, "without an order"),
            (r#"[["A",1]]"#, "expected"),
            (r#"["A"]"#, "a table of codes, a run of places or a dependency"),
            (r#"[["A b"]]"#, "not usable"),
            ("5", "a list of dependencies"),
        ] {
            let error = serde_json::from_str::<Stored>(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_again(
            edges in prop::collection::vec((0u8..9, 0u8..9, -3i32..6, 0usize..9), 0..60)
        ) {
            let whens = ["failure", "done", "A.rows > 3"];
            let all: Vec<JobDependency> = edges.into_iter().map(|(job, parent, order, when)| {
                let when = whens.get(when).copied().unwrap_or("success");
                edge(&format!("J{job}"), &format!("J{parent}"), order, when)
            }).collect();
            let text = serde_json::to_string(&Stored(all.clone())).expect("text");
            prop_assert_eq!(serde_json::from_str::<Stored>(&text).expect("read").0, all);
        }
    }
}
