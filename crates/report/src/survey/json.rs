//! `lanescope.survey/1`.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::{Opcodes, SCHEMA, Survey, Totals};

impl Serialize for Survey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Survey", 3)?;
        out.serialize_field("schema", SCHEMA)?;
        out.serialize_field("totals", &ByArch(self.totals()))?;
        out.serialize_field("files", &self.files)?;
        out.end()
    }
}

/// An object whose keys keep their order.
struct ByArch(Vec<(String, Totals)>);

impl Serialize for ByArch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (arch, totals) in &self.0 {
            map.serialize_entry(arch, totals)?;
        }
        map.end()
    }
}

/// Opcodes as an object.
pub(super) fn opcodes<S: Serializer>(opcodes: &Opcodes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(opcodes.iter().map(|(name, count)| (&**name, count)))
}
