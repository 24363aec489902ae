//! The facade: everything the `lanescope` command does, for programs that embed it.
//!
//! [`launch`] reads launch files, [`module`] finds kernels in cubins, fatbins and libraries, [`run`] runs a launch
//! and analyses its counters, [`compile`] calls the compilers that make machine code of CUDA C++ and PTX,
//! [`constants`] makes constant bank 0,
//! [`advise`] says what to do about a launch, [`levels`] puts PTX and SASS side by side, [`check`] tells what can be told without running, [`survey`] counts where
//! lanes rejoin in any amount of machine code, [`gpus`] has the figures of GPUs, [`output`] writes files, [`disasm`] prints SASS. Reports are in
//! `lanescope_report`.

pub mod advise;
pub mod check;
pub mod compile;
pub mod constants;
pub mod diagnostics;
pub mod disasm;
pub mod dtype;
pub mod gpus;
pub mod html;
pub mod launch;
pub mod levels;
pub mod module;
pub mod names;
pub mod npy;
pub mod output;
pub mod run;
pub mod sources;
pub mod survey;

pub use lanescope_analysis as analysis;
pub use lanescope_ir as ir;
pub use lanescope_ptx as ptx;
pub use lanescope_report as report;
pub use lanescope_sass as sass;
pub use lanescope_sim as sim;
