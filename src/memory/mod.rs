//! Bytes: where blocks of device memory come from and how they go back, with an exact account for every one.
//!
//! Blocks are taken from the backend one by one (the direct source). A block whose work is not seen complete waits in a
//! list until it is; nothing here waits on the host, except the last rung of the out-of-memory ladder.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::backend;
use crate::error::{Error, Result, Status};
use crate::fail;
use crate::observe::log;
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{Accesses, Deadline, Looks, Polls};

/// Blocks are whole granules and start on one.
pub const GRANULE: u64 = 512;
const MAX_DEVICES: usize = 64;

/// Device memory that belongs to whoever holds this; give it back with `release`.
pub struct Block {
    pub device: i32,
    /// Aligned as asked.
    pub pointer: u64,
    base: u64,
    taken: u64,
    /// The driver would not have it back, and that was logged.
    refused: bool,
}

/// How far a reclaimer may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Only memory whose work is seen complete.
    Completed,
    /// Wait on the host for pending work too.
    Waiting,
}

/// Gives up idle memory of a device; returns the bytes that went back.
pub type Reclaimer = fn(device: i32, bytes: u64, how: Reclaim) -> u64;

#[derive(Default)]
struct Pool {
    /// Taken from the driver and not given back.
    taken: AtomicU64,
    /// The part of `taken` that waits in `deferred`.
    waiting: AtomicU64,
    deferred: Mutex<VecDeque<(Block, Accesses)>>,
    /// Host memory that queued copies still read.
    staging: Mutex<VecDeque<(Box<[u64]>, Accesses)>>,
}

static POOLS: [OnceLock<Pool>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];
static RECLAIMER: OnceLock<Reclaimer> = OnceLock::new();
static SPARE: OnceLock<fn(i32) -> u64> = OnceLock::new();

fn pool(device: i32) -> &'static Pool {
    POOLS[device as usize].get_or_init(Pool::default)
}

/// The cache registers what can be asked for memory when the driver has none left.
pub fn set_reclaimer(reclaimer: Reclaimer) {
    let _ = RECLAIMER.set(reclaimer);
}

/// What can be made again registers how it is dropped, which gives the bytes that it has kept: that goes before anything
/// is waited for.
pub fn set_spare(spare: fn(i32) -> u64) {
    let _ = SPARE.set(spare);
}

/// Bytes of the device that were taken from the driver and not given back.
pub fn driver_bytes(device: i32) -> u64 {
    collect(device, Looks::ALL);
    pool(device).taken.load(Ordering::Acquire)
}

/// A block of at least `bytes` (more than 0) at a multiple of `align` (a power of two). Asks the reclaimer when the driver
/// has none left; waits on the host for pending work only where `may_wait`.
pub fn allocate(device: i32, bytes: u64, align: u64, may_wait: bool) -> Result<Block> {
    let slack = align.saturating_sub(GRANULE);
    let rounded = bytes
        .checked_add(slack + GRANULE - 1)
        .map(|sum| sum & !(GRANULE - 1));
    let Some(taken) = rounded else {
        fail!(
            Status::Overflow,
            "an allocation of {bytes} bytes aligned to {align} overflows 64 bits"
        );
    };
    let backend = backend::current()?;
    let mut result = backend.memory_allocate(device, taken);
    if is_out_of_memory(&result) && collect(device, Looks::ALL) > 0 {
        result = backend.memory_allocate(device, taken);
    }
    for how in [Reclaim::Completed, Reclaim::Waiting] {
        if !is_out_of_memory(&result) || (how == Reclaim::Waiting && !may_wait) {
            break;
        }
        let reclaimed = RECLAIMER
            .get()
            .map_or(0, |reclaim| reclaim(device, taken, how));
        let collected = match how {
            Reclaim::Completed => SPARE.get().map_or(0, |spare| spare(device)),
            Reclaim::Waiting => {
                // An error for one block keeps none of the others.
                let _ = wait_for_deferred(device, Deadline::NEVER);
                collect(device, Looks::ALL)
            }
        };
        if reclaimed + collected > 0 {
            result = backend.memory_allocate(device, taken);
        }
    }
    let base = result?;
    pool(device).taken.fetch_add(taken, Ordering::AcqRel);
    let pointer = base.next_multiple_of(align.max(1));
    Ok(Block {
        device,
        pointer,
        base,
        taken,
        refused: false,
    })
}

fn is_out_of_memory(result: &Result<u64>) -> bool {
    matches!(
        result,
        Err(Error {
            status: Status::OutOfMemory,
            ..
        })
    )
}

/// Gives a block back once all of its accesses are done: now, or when a later call sees that they are.
pub fn release(block: Block, accesses: Accesses) {
    if accesses.poll() || mistake::is(Mistake::FreeWithWorkQueued) {
        free(block);
        return;
    }
    defer(pool(block.device), block, accesses);
}

/// Gives a block back; returns the bytes that went. What the driver refuses stays in the account, and the next `collect`
/// tries again.
fn free(mut block: Block) -> u64 {
    let pool = pool(block.device);
    let given =
        backend::current().and_then(|b| b.memory_free(block.device, block.base, block.taken));
    let Err(error) = given else {
        pool.taken.fetch_sub(block.taken, Ordering::AcqRel);
        return block.taken;
    };
    let lost = error.status == Status::ContextLost;
    if !block.refused {
        log::write(log::Level::Error, error);
    }
    if mistake::is(Mistake::RefusedBlockForgotten) {
        return 0;
    }
    if !lost {
        block.refused = true;
        defer(pool, block, Accesses::default());
    }
    0
}

fn defer(pool: &Pool, block: Block, accesses: Accesses) {
    pool.waiting.fetch_add(block.taken, Ordering::AcqRel);
    pool.deferred.lock().push_back((block, accesses));
}

/// Gives what the pool keeps back to the driver, down to `keep` bytes. The direct source keeps nothing but blocks whose work
/// is not seen complete.
pub fn trim(device: i32, keep: u64) {
    if pool(device).waiting.load(Ordering::Acquire) > keep {
        collect(device, Looks::ALL);
    }
}

/// Keeps host memory until the copies that read it are done.
pub fn keep_staging(device: i32, buffer: Box<[u64]>, accesses: Accesses) {
    pool(device).staging.lock().push_back((buffer, accesses));
}

/// Gives back the deferred blocks that are done by now, as far as `looks` goes; returns their bytes.
pub fn collect(device: i32, looks: Looks) -> u64 {
    let pool = pool(device);
    if pool.waiting.load(Ordering::Acquire) == 0 && pool.staging.lock().is_empty() {
        return 0;
    }
    let mut polls = Polls::new(looks);
    polls.note(pool.staging.lock().iter().map(|(_, accesses)| accesses));
    polls.note(pool.deferred.lock().iter().map(|(_, accesses)| accesses));
    // With no lock held: nobody who frees or copies waits for the driver's answers.
    polls.ask();
    let copied = looks.take_done(&mut pool.staging.lock(), |(_, a)| a.is_done());
    let done = looks.take_done(&mut pool.deferred.lock(), |(_, a)| {
        a.is_done() || mistake::is(Mistake::CollectWithWorkQueued)
    });
    drop(copied);
    finish(pool, done.into_iter().map(|(block, _)| block))
}

/// Waits for the work of all deferred blocks, which `collect` then gives back; `false` when the deadline passed first.
pub fn wait_for_deferred(device: i32, deadline: Deadline) -> Result<bool> {
    let mut open = Accesses::default();
    for (_, accesses) in pool(device).deferred.lock().iter() {
        open.merge(accesses);
    }
    open.wait(deadline)
}

fn finish(pool: &Pool, done: impl Iterator<Item = Block>) -> u64 {
    let mut bytes = 0;
    for block in done {
        pool.waiting.fetch_sub(block.taken, Ordering::AcqRel);
        bytes += free(block);
    }
    bytes
}
