//! What an H200 measured, what `advise` says, and the tables of both in `docs/measured.md`.

pub(crate) mod advice;
pub(crate) mod data;
pub(crate) mod table;
