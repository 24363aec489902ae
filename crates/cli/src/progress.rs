//! Progress of a long run, on standard error.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is shown before this.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two plain lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Shows how many blocks are done: a bar on a terminal, a line now and then elsewhere.
pub(crate) struct Blocks {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    bar: Option<ProgressBar>,
    last: Option<Instant>,
    stage: String,
}

impl Blocks {
    /// Starts the clock.
    pub(crate) fn new() -> Self {
        Blocks { start: Instant::now(), state: Mutex::new(State { bar: None, last: None, stage: "running".into() }) }
    }

    /// What is run from now on.
    pub(crate) fn stage(&self, words: &str) {
        if let Ok(mut state) = self.state.lock() {
            state.stage = words.to_owned();
            if let Some(bar) = state.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    /// Told by the engine, from any thread.
    pub(crate) fn update(&self, done: u64, total: u64) {
        if self.start.elapsed() < QUIET {
            return;
        }
        // Who cannot have the lock at once leaves the display to the thread that has it.
        let Ok(mut state) = self.state.try_lock() else { return };
        if std::io::stderr().is_terminal() {
            let stage = state.stage.clone();
            let bar = state.bar.get_or_insert_with(|| {
                let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
                let style = ProgressStyle::with_template("{msg} {bar:30} {pos} of {len} blocks, {elapsed}, {eta} left");
                bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(stage)
            });
            bar.set_position(done);
        } else if state.last.is_none_or(|t| t.elapsed() > PAUSE) {
            state.last = Some(Instant::now());
            anstream::eprintln!("{}: {done} of {total} blocks after {} s", state.stage, self.start.elapsed().as_secs());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Ok(state) = self.state.lock()
            && let Some(bar) = &state.bar
        {
            bar.finish_and_clear();
        }
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new()
    }
}
