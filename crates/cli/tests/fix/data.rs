//! `tests/data/fixes/h200.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// Pairs of launches and what was measured of each.
pub(crate) struct Data {
    pub(crate) fixes: Vec<Fix>,
    pub(crate) launches: BTreeMap<String, Measured>,
}

/// A launch and its sorted twin.
#[derive(Clone)]
pub(crate) struct Fix {
    pub(crate) name: String,
    pub(crate) before: String,
    pub(crate) after: String,
    /// What the twin is sorted by.
    pub(crate) key: String,
}

/// A launch at full size on the H200.
pub(crate) struct Measured {
    pub(crate) items: u64,
    /// Nanoseconds of a launch: back to back where that was measured, else alone.
    pub(crate) ns: u64,
    pub(crate) counts: Option<Counts>,
}

/// Counters of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) inst_executed: u64,
    pub(crate) thread_inst_executed: u64,
    pub(crate) thread_inst_executed_pred_on: u64,
}

impl Data {
    pub(crate) fn read(root: &Path) -> Data {
        let text = std::fs::read_to_string(root.join("tests/data/fixes/h200.json")).expect("h200.json");
        let json: Value = serde_json::from_str(&text).expect("h200.json");
        let word = |fix: &Value, key: &str| fix[key].as_str().expect("a word").to_owned();
        let fixes = json["fixes"].as_array().expect("fixes").iter();
        let launches = json["launches"].as_object().expect("launches").iter();
        Data {
            fixes: fixes
                .map(|f| Fix {
                    name: word(f, "name"),
                    before: word(f, "before"),
                    after: word(f, "after"),
                    key: word(f, "key"),
                })
                .collect(),
            launches: launches.map(|(name, l)| (name.clone(), Measured::of(l))).collect(),
        }
    }
}

impl Measured {
    fn of(launch: &Value) -> Measured {
        let number = |key: &str| launch[key].as_u64();
        let counts = || {
            Some(Counts {
                inst_executed: number("inst_executed")?,
                thread_inst_executed: number("thread_inst_executed")?,
                thread_inst_executed_pred_on: number("thread_inst_executed_pred_on")?,
            })
        };
        Measured {
            items: number("items").expect("items"),
            ns: number("back_to_back_ns").or(number("warm_ns")).expect("a time"),
            counts: counts(),
        }
    }
}
