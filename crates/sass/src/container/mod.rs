//! Cubins, fatbins and the executables that hold them.
