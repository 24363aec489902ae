//! Lowering of decoded SASS to lane operations.
