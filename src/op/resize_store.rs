//! Resize tables in device memory: made once for each size and filter, kept for later calls, the longest unused dropped.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::backend::{self, Copy2d, CopyKind};
use crate::error::Result;
use crate::memory::{self, Block};
use crate::op::resize_params::{PlacedTable, TableKey};
use crate::op::resize_table::TableHeader;
use crate::timeline::{AccessKind, Accesses, Stream};

const MAX_DEVICES: usize = 64;
/// What one device keeps at most, which is in no limit of a cache: some dozens of pairs of the largest sizes of video.
const MAX_TABLES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;

/// A table on its device. Its memory goes with the last reference, once the work that reads it is done.
pub struct Table {
    header: TableHeader,
    block: Option<Block>,
    accesses: Mutex<Accesses>,
}

impl Table {
    /// Computes the table and queues its upload on `stream`.
    fn make(device: i32, key: &TableKey, stream: &'static Stream) -> Result<Table> {
        stream.check_not_capturing()?;
        let host = key.compute()?;
        let header = *host.header();
        let words = host.into_words();
        let bytes = words.len() as u64 * 8;
        let block = memory::allocate(device, bytes, memory::GRANULE, true)?;
        let copy = Copy2d {
            kind: CopyKind::HostToDevice,
            src: words.as_ptr() as u64,
            src_pitch: bytes,
            dst: block.pointer,
            dst_pitch: bytes,
            width: bytes,
            height: 1,
        };
        let copied = backend::current()?.copy_2d(device, stream.handle(), &copy);
        let (sequence, submitted) = stream.submit();
        let mut accesses = Accesses::default();
        accesses.record(AccessKind::Read, stream, sequence);
        memory::keep_staging(device, words, accesses);
        let mut accesses = Accesses::default();
        accesses.record(AccessKind::Write, stream, sequence);
        let table = Table {
            header,
            block: Some(block),
            accesses: Mutex::new(accesses),
        };
        copied.and(submitted)?;
        Ok(table)
    }

    /// Makes work queued on `stream` from now on come after the upload.
    pub fn order(&self, stream: &'static Stream) -> Result<()> {
        self.accesses.lock().order(AccessKind::Read, stream)
    }

    /// Notes that work queued on `stream` by now reads the table.
    pub fn note(&self, stream: &'static Stream) {
        let mut accesses = self.accesses.lock();
        accesses.record(AccessKind::Read, stream, stream.last_submitted());
    }

    pub fn placed(&self) -> PlacedTable<'_> {
        PlacedTable {
            address: self.block.as_ref().map_or(0, |block| block.pointer),
            header: &self.header,
        }
    }

    fn bytes(&self) -> u64 {
        self.header.total_bytes
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            memory::release(block, std::mem::take(self.accesses.get_mut()));
        }
    }
}

struct Kept {
    table: Arc<Table>,
    last_use: u64,
}

#[derive(Default)]
struct Store {
    tables: HashMap<TableKey, Kept>,
    bytes: u64,
    uses: u64,
}

static STORES: [OnceLock<Mutex<Store>>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];

fn store(device: i32) -> &'static Mutex<Store> {
    STORES[device as usize].get_or_init(Mutex::default)
}

impl Store {
    fn find(&mut self, key: &TableKey) -> Option<Arc<Table>> {
        self.uses += 1;
        let kept = self.tables.get_mut(key)?;
        kept.last_use = self.uses;
        Some(kept.table.clone())
    }

    /// Keeps the table, if it fits at all; returns those that had to make room.
    fn keep(&mut self, key: TableKey, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let mut dropped = Vec::new();
        if table.bytes() > MAX_BYTES {
            return dropped;
        }
        while self.tables.len() >= MAX_TABLES || self.bytes + table.bytes() > MAX_BYTES {
            let oldest = self.tables.iter().min_by_key(|(_, kept)| kept.last_use);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            dropped.extend(self.remove(&oldest));
        }
        self.bytes += table.bytes();
        let kept = Kept {
            table: table.clone(),
            last_use: self.uses,
        };
        self.tables.insert(key, kept);
        dropped
    }

    fn remove(&mut self, key: &TableKey) -> Option<Arc<Table>> {
        let kept = self.tables.remove(key)?;
        self.bytes -= kept.table.bytes();
        Some(kept.table)
    }
}

/// The table of that key on that device, which `stream` belongs to.
pub fn find(device: i32, key: &TableKey, stream: &'static Stream) -> Result<Arc<Table>> {
    if let Some(table) = store(device).lock().find(key) {
        return Ok(table);
    }
    let made = Arc::new(Table::make(device, key, stream)?);
    let mut store = store(device).lock();
    // Another thread may have made it meanwhile: then this one goes.
    if let Some(table) = store.find(key) {
        drop(store);
        return Ok(table);
    }
    let dropped = store.keep(*key, &made);
    // Freeing calls the driver, which must not happen under the lock.
    drop(store);
    drop(dropped);
    Ok(made)
}

/// Lets go of all tables of a device, and says how many bytes they have; their memory goes back once the work that reads
/// them is done.
pub fn clear(device: i32) -> u64 {
    let dropped = std::mem::take(&mut *store(device).lock());
    dropped.bytes
}

/// How many tables a device keeps, and their bytes.
pub fn kept(device: i32) -> (usize, u64) {
    let store = store(device).lock();
    (store.tables.len(), store.bytes)
}
