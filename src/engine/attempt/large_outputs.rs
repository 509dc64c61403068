//! Loads large values, which are stored in a table of their own, for the parameters of a job that
//! begins.

use crate::domain::job::outcome::OutputValue;
use crate::engine::attempt::run::{AttemptOrder, Surroundings, UpstreamOutputs};
use crate::engine::db_retry::answered;
use crate::store::output_value;
use anyhow::Result;

/// The outputs that the parameters of a job may refer to, each with its value, or with the reason
/// why it cannot be loaded.
pub(in crate::engine) async fn loaded(
    job: &AttemptOrder,
    around: &Surroundings,
) -> Result<UpstreamOutputs, String> {
    let mut outputs = job.outputs.clone();
    for ((code, name), output) in &mut outputs {
        let OutputValue::Stored(reference) = output else { continue };
        // The commit that claims this row may be the one that stores its parent's outputs: 20 MB
        // were not there yet.
        if !job.claimed.is_committed().await {
            return Err("its row was not claimed; nothing was run".to_owned());
        }
        let look = async || {
            let mut tx = around.db.begin_read().await?;
            output_value::load_value(&mut tx, reference).await
        };
        let loaded = answered(&job.stop, look).await.map_err(|error| {
            format!("cannot load output {name} of job {code}: {error:#}; nothing was run")
        })?;
        *output = match loaded {
            Ok(text) => OutputValue::with_type(reference.value_type, text),
            Err(why) => OutputValue::Unusable(why),
        };
    }
    Ok(outputs)
}
