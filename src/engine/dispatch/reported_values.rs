//! Output values that another node has stored with its report, for conditions and lists of a batch
//! here.

use crate::domain::job::outcome::{LargeValue, LargeValues, StoredValue};
use crate::engine::attempt::run::{AttemptReport, What};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::opening::large_values::references;
use crate::store::output_value;
use anyhow::Result;

impl QueueDispatcher {
    /// Loads the values that conditions and lists need and that another node has stored with its
    /// report; values of this node's bodies come with their outcomes.
    pub(super) async fn load_reported_values(&mut self) -> Result<()> {
        for report in &mut self.reports.waiting {
            let AttemptReport { queue_id, by: Some(_), what: What::Ended(outcome, _), .. } = report
            else {
                continue;
            };
            let place = self.batches.places.get(queue_id);
            let active = place.and_then(|(id, node)| Some((self.batches.active.get(id)?, *node)));
            let Some((active, node)) = active else { continue };
            let names = active.needed_values.get(&active.row_at(node).job_code);
            let missing: Vec<StoredValue> = references(&outcome.outputs, names)
                .into_iter()
                .filter(|reference| outcome.large_values.text_of(reference).is_none())
                .collect();
            if missing.is_empty() {
                continue;
            }
            let mut tx = self.process.db.begin_read().await?;
            let mut values = Vec::new();
            for reference in missing {
                match output_value::load_value(&mut tx, &reference).await? {
                    Ok(text) => values.push(LargeValue { reference, name: String::new(), text }),
                    Err(why) => tracing::error!(queue_id = queue_id.0, "a value of a job: {why}"),
                }
            }
            outcome.large_values = LargeValues::read_back(values);
        }
        Ok(())
    }
}
