//! Requests from an admin to an executor.

use serde::{Deserialize, Serialize};

/// The request `/run`, or `/trigger` since 3.5: the twelve fields that all versions have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAsk {
    /// Id of the job in the admin.
    pub job_id: i64,
    /// Name of the handler to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_handler: Option<String>,
    /// Its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_params: Option<String>,
    /// Strategy while an earlier run of the job has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_block_strategy: Option<String>,
    /// Time-out in seconds; 0 is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_timeout: Option<i64>,
    /// Id of this run in the admin.
    pub log_id: i64,
    /// Time of the trigger in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_date_time: Option<i64>,
    /// `BEAN`, or the language of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glue_type: Option<String>,
    /// Text of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glue_source: Option<String>,
    /// Version of the script. XXL-JOB spells it with a small t.
    #[serde(rename = "glueUpdatetime", skip_serializing_if = "Option::is_none")]
    pub glue_update_time: Option<i64>,
    /// Index of the shard in a broadcast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast_index: Option<i64>,
    /// Number of shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast_total: Option<i64>,
}

/// The requests `/kill` and `/idleBeat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobAsk {
    /// Id of the job in the admin.
    pub job_id: i64,
}

/// The request `/log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogAsk {
    /// Id of the run in the admin.
    pub log_id: i64,
    /// The first line requested, from 1.
    #[serde(default)]
    pub from_line_num: Option<i64>,
    /// Time of the trigger, before 3.5; in whole seconds, because it comes from a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_date_tim: Option<i64>,
    /// The same since 3.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_date_time: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as 2.3 to 3.4 send it.
    const RUN: &str = r#"{"jobId":7,"executorHandler":"queueDispatcherHandler","executorParams":"{\"batchNo\":\"202407\"}","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":101,"logDateTime":1795219433671,"glueType":"BEAN","glueSource":"","glueUpdatetime":1795219433000,"broadcastIndex":0,"broadcastTotal":1}"#;

    #[test]
    fn a_run_is_read_with_and_without_its_nulls() {
        let full: RunAsk = serde_json::from_str(RUN).expect("read");
        assert_eq!(serde_json::to_string(&full).expect("text"), RUN);
        assert_eq!(full.executor_params.as_deref(), Some(r#"{"batchNo":"202407"}"#));
        assert_eq!(full.glue_update_time, Some(1_795_219_433_000));
        let nulls =
            r#"{"jobId":7,"logId":101,"executorHandler":null,"executorTimeout":null,"new":[1]}"#;
        let read: RunAsk = serde_json::from_str(nulls).expect("read");
        assert_eq!(read, RunAsk { job_id: 7, log_id: 101, ..RunAsk::default() });
        // The largest id that the admin's column holds.
        let large = r#"{"jobId":7,"logId":9223372036854775807}"#;
        let read: RunAsk = serde_json::from_str(large).expect("read");
        assert_eq!(read.log_id, i64::MAX);
        for bad in ["", "[]", r#"{"logId":1}"#, r#"{"jobId":"7","logId":1}"#] {
            assert!(serde_json::from_str::<RunAsk>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_log_is_asked_for_under_either_name_of_its_time() {
        for text in [
            r#"{"logDateTim":1795219433000,"logId":101,"fromLineNum":5}"#,
            r#"{"logDateTime":1795219433000,"logId":101,"fromLineNum":5}"#,
        ] {
            let read: LogAsk = serde_json::from_str(text).expect("read");
            assert_eq!((read.log_id, read.from_line_num), (101, Some(5)));
            assert_eq!(read.log_date_tim.or(read.log_date_time), Some(1_795_219_433_000));
        }
        let read: JobAsk = serde_json::from_str(r#"{"jobId":7}"#).expect("read");
        assert_eq!(serde_json::to_string(&read).expect("text"), r#"{"jobId":7}"#);
    }
}
