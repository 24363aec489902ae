//! Functions of the CUDA runtime that kernels call: `vprintf` and `__assertfail`. Others are refused by name.

use super::Where;
use super::banks::Traffic;
use super::mem::Access;
use super::program::External;
use super::rows;
use super::tile::{Env, Tile};
use crate::convergence::Convergence;
use crate::error::SimError;
use crate::format::{self, Arguments};
use crate::memory::words::lanes;
use crate::rows::{LANES, Row};

/// Bytes of a string in a message.
const MESSAGE: usize = 1024;

/// The arguments of one call, and its memory.
struct Reader<'a> {
    access: Access<'a>,
    /// Lane of the row.
    lane: usize,
    /// Address of the next argument.
    next: u64,
}

impl Reader<'_> {
    /// A string up to its end, `most` bytes at most.
    fn text(&mut self, address: u64, most: usize) -> Result<Vec<u8>, SimError> {
        let mut out = Vec::new();
        while out.len() < most {
            match self.access.byte(self.lane, address.wrapping_add(out.len() as u64))? {
                0 => break,
                byte => out.push(byte),
            }
        }
        Ok(out)
    }

    fn message(&mut self, address: u64) -> Result<String, SimError> {
        if address == 0 {
            return Ok("?".to_owned());
        }
        Ok(String::from_utf8_lossy(&self.text(address, MESSAGE)?).into_owned())
    }
}

impl Arguments for Reader<'_> {
    type Error = SimError;

    fn word(&mut self) -> Result<u32, SimError> {
        let value = self.access.word(self.lane, self.next)?;
        self.next = self.next.wrapping_add(4);
        Ok(value)
    }

    fn long(&mut self) -> Result<u64, SimError> {
        self.next = self.next.wrapping_add(7) & !7;
        Ok(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    fn string(&mut self, address: u64, most: usize) -> Result<Option<Vec<u8>>, SimError> {
        if address == 0 {
            return Ok(None);
        }
        self.text(address, most).map(Some)
    }
}

/// Executes a call by the lanes of `exec`. `at` is the warp's first row.
pub(crate) fn run<C: Convergence>(
    tile: &mut Tile<C>,
    env: &mut Env<'_>,
    at: Where,
    call: &External,
    exec: u64,
) -> Result<(), SimError> {
    let prints = call.name == "vprintf" && call.args.len() == 2;
    let fails = call.name == "__assertfail" && call.args.len() >= 4;
    if !prints && !fails {
        return Err(SimError::ExternalCall { site: Box::new(env.block.site(at)), name: call.name.clone() });
    }
    for half in 0..rows::<C>() as u32 {
        let row = Where { index: at.index + half, base: half * LANES as u32, ..at };
        let mask = (exec >> row.base) as u32;
        let constants = env.block.cx.program.layout.constants();
        let args: Vec<[Row; 2]> =
            call.args.iter().map(|a| [0, 1].map(|i| tile.file.read(constants, &a[i], row.index))).collect();
        let arg =
            |i: usize, l: usize| args.get(i).map_or(0, |[low, high]| u64::from(low.0[l]) | u64::from(high.0[l]) << 32);
        let mut results = Row::ZERO;
        // What the runtime reads is not counted as the kernel's.
        let mut traffic = Traffic::default();
        for l in lanes(mask) {
            let thread = env.block.thread(row.warp, row.base + l as u32);
            let access = Access {
                block: env.block,
                file: &mut tile.file,
                local: &mut tile.local[row.index as usize],
                shared: env.shared,
                at: row,
                traffic: &mut traffic,
                l1: None,
                hint: env.hint,
            };
            let mut reader = Reader { access, lane: l, next: arg(1, l) };
            if fails {
                return Err(SimError::Assert {
                    message: reader.message(arg(0, l))?,
                    file: reader.message(arg(1, l))?,
                    line: arg(2, l) as u32,
                    function: reader.message(arg(3, l))?,
                    site: Box::new(env.block.site(row)),
                    thread,
                });
            }
            // Without a format nothing is printed, and the result says so.
            results.0[l] = u32::MAX;
            if arg(0, l) != 0 {
                let room = env.printed.room();
                let format = reader.text(arg(0, l), room + 1)?;
                let (text, used) = format::print(&format, &mut reader, room + 1)?;
                results.0[l] = used;
                env.printed.add(env.block.id, thread, (text.len() <= room).then_some(text));
            }
        }
        tile.file.write(call.result, row.index, mask, &results);
    }
    Ok(())
}
