//! Raw memory: entries of the cache that are known by their address in place of a handle.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;
use smallvec::{smallvec, SmallVec};

use super::handle::{self, Handle, ObjectKind};
use super::object::{open, set_body, Body};
use crate::cache::{self, Cache, Request, Resolved};
use crate::error::{Error, Result, Status};
use crate::fail;
use crate::memory::GRANULE;
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{self, Access, AccessKind, Hold, Stream};

/// What addresses are aligned to where the caller does not say.
const DEFAULT_ALIGN: u64 = GRANULE;
const MAX_ALIGN: u64 = 1 << 32;
const SHARDS: usize = 64;
/// So many streams are held for one allocation before those that are over are looked for.
const HOLDS_BEFORE_LOOK: usize = 16;

struct Allocation {
    object: Handle,
    /// Whose it is: the handle as the caller gave it, which may be released before the memory is freed.
    owner: Handle,
    cache: &'static Cache,
    device: i32,
    bytes: u64,
    /// Streams whose work counts at the free.
    holds: SmallVec<[Hold; 1]>,
}

type Shard = Mutex<HashMap<u64, Allocation>>;

/// By address, apart by a part of it, so that threads seldom meet.
static TABLE: LazyLock<[Shard; SHARDS]> =
    LazyLock::new(|| std::array::from_fn(|_| Shard::default()));

fn shard(pointer: u64) -> &'static Shard {
    &TABLE[((pointer / GRANULE) ^ (pointer >> 20)) as usize % SHARDS]
}

fn check_alignment(alignment: u64) -> Result<u64> {
    match alignment {
        0 => Ok(DEFAULT_ALIGN),
        // Blocks start on a granule in any case: one key for all of these.
        _ if alignment.is_power_of_two() && alignment <= MAX_ALIGN => Ok(alignment.max(GRANULE)),
        _ => fail!(
            Status::InvalidAlignment,
            "alignment is {alignment}, expected 0 or a power of two up to {MAX_ALIGN}"
        ),
    }
}

fn round_up(bytes: u64, align: u64) -> Result<u64> {
    let rounded = bytes.checked_next_multiple_of(GRANULE).filter(|rounded| {
        let with_slack = rounded.checked_add(align);
        with_slack.is_some_and(|sum| sum <= i64::MAX as u64)
    });
    match rounded {
        Some(rounded) => Ok(rounded),
        None => fail!(
            Status::Overflow,
            "bytes is {bytes}, which aligned to {align} passes the largest size of {} bytes",
            i64::MAX
        ),
    }
}

/// The address of raw memory from the cache, charged with whole granules; 0 for 0 bytes. `owner` is the cache's handle,
/// `stream` as for tensors.
pub fn memory_alloc(
    cache: &'static Cache,
    owner: Handle,
    device: i32,
    bytes: u64,
    alignment: u64,
    stream: Option<&'static Stream>,
) -> Result<u64> {
    let align = check_alignment(alignment)?;
    let rounded = round_up(bytes, align)?;
    if bytes == 0 {
        return Ok(0);
    }
    // Memory aligned otherwise is another class, as one that is not aligned enough would hide others behind it.
    let class = [(ObjectKind::Memory as u64) << 32, align, 0];
    let request = Request {
        head: [class[0], rounded, align, 0, 0],
        dims: &[],
    };
    let acquired = cache::acquire(cache, device, &request, stream, || {
        Ok(Resolved {
            class,
            exact: smallvec![class[0], align, rounded],
            bytes: rounded,
            align,
        })
    })?;
    // Before anybody has the address, and so before any event that its memory may be freed after.
    timeline::mark_events();
    // SAFETY: the entry is this caller's alone.
    let (object, pointer) = unsafe {
        if !acquired.same_shape {
            set_body(acquired.entry, Body::Memory, None);
        }
        let block = (*acquired.entry).block.as_ref();
        let pointer = block.map_or(0, |block| block.pointer);
        (open(acquired.entry, cache, ObjectKind::Memory), pointer)
    };
    let allocation = Allocation {
        object,
        owner,
        cache,
        device,
        bytes,
        holds: SmallVec::new(),
    };
    shard(pointer).lock().insert(pointer, allocation);
    Ok(pointer)
}

#[cold]
fn refuse(pointer: u64, of_other: bool) -> Error {
    let expected =
        "expected what cvc_mem_alloc gave for this cache and cvc_mem_free has not had since";
    let because = if of_other {
        "memory of another cache".to_string()
    } else {
        let around = TABLE.iter().find_map(|shard| {
            let shard = shard.lock();
            let mut inside = shard
                .iter()
                .filter(|(start, known)| (**start..**start + known.bytes).contains(&pointer));
            inside.next().map(|(start, known)| (*start, known.bytes))
        });
        match around {
            Some((start, bytes)) => format!(
                "{} bytes inside of the {bytes} bytes at {start:#x}",
                pointer - start
            ),
            None => "no memory that is allocated".to_string(),
        }
    };
    Error::new(
        Status::InvalidArgument,
        format!("ptr is {pointer:#x}, {because}; {expected}"),
    )
}

/// Raw memory on its way out: nobody else finds it. Its drop puts it back, as if nothing had been.
pub struct Taken {
    pointer: u64,
    allocation: Option<Allocation>,
}

impl Taken {
    pub fn new(owner: Handle, pointer: u64) -> Result<Taken> {
        let mut shard = shard(pointer).lock();
        let known = shard.get(&pointer).map(|known| known.owner == owner);
        if known == Some(true) {
            return Ok(Taken {
                pointer,
                allocation: shard.remove(&pointer),
            });
        }
        drop(shard);
        Err(refuse(pointer, known.is_some()))
    }

    fn known(&self) -> &Allocation {
        match &self.allocation {
            Some(allocation) => allocation,
            None => unreachable!("only the end takes it out"),
        }
    }

    pub fn device(&self) -> i32 {
        self.known().device
    }

    /// Frees it: what is queued by now on `stream`, and on each stream held for it, comes before any other use.
    pub fn free(self, stream: Option<&'static Stream>) -> Result<()> {
        let streams = self.streams(stream, None);
        self.end(&streams, None)
    }

    /// Frees it: what the event's latest record covers, and what is queued by now on the other streams held for it, comes
    /// before any other use.
    pub fn free_after_event(self, event: usize) -> Result<()> {
        let found = timeline::event_access(event, self.device())?;
        let access = found.map(|(access, _)| access);
        // Another stream may have the slot of the one that the event was recorded on.
        let own = found.and_then(|(access, id)| {
            let same = access.stream.id() == id || mistake::is(Mistake::EventLeavesOutSlot);
            same.then_some(access.stream)
        });
        let streams = self.streams(None, own);
        self.end(&streams, access)
    }

    /// `stream` and those that are held, but for `but`: each once.
    fn streams(
        &self,
        stream: Option<&'static Stream>,
        but: Option<&'static Stream>,
    ) -> SmallVec<[&'static Stream; 2]> {
        let mut streams: SmallVec<[&'static Stream; 2]> = stream.into_iter().collect();
        for held in self.known().holds.iter().map(Hold::stream) {
            let known = streams.iter().chain(&but);
            if !known.copied().any(|known| std::ptr::eq(known, held)) {
                streams.push(held);
            }
        }
        streams
    }

    fn end(mut self, streams: &[&'static Stream], access: Option<Access>) -> Result<()> {
        for stream in streams {
            passing_a_lost_context(stream.check_not_capturing())?;
        }
        let mut notes: SmallVec<[Access; 3]> = access.into_iter().collect();
        for &stream in streams {
            // Where this fails the numbers taken so far stand for nothing, and the memory stays allocated.
            let (sequence, submitted) = stream.submit();
            passing_a_lost_context(submitted)?;
            notes.push(Access {
                stream,
                sequence,
                kind: AccessKind::Write,
            });
        }
        let object = handle::acquire(self.known().object, ObjectKind::Memory, "ptr")?;
        let mut accesses = object.entry.accesses.lock();
        notes.into_iter().for_each(|access| accesses.add(access));
        drop(accesses);
        drop(object);
        if let Some(known) = self.allocation.take() {
            handle::release(known.object, ObjectKind::Memory, "ptr")?;
            drop(known.holds);
            cache::retire(known.cache, known.device);
        }
        Ok(())
    }
}

/// Work of a lost context is never seen complete, whatever is recorded; memory is freed all the same.
fn passing_a_lost_context(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.status == Status::ContextLost => Ok(()),
        result => result,
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            shard(self.pointer).lock().insert(self.pointer, allocation);
        }
    }
}

/// The identity of the allocation at that address, which it keeps while the cache does: as tensors have.
pub fn memory_id(pointer: u64) -> Option<u64> {
    let object = shard(pointer)
        .lock()
        .get(&pointer)
        .map(|known| known.object)?;
    let object = handle::acquire(object, ObjectKind::Memory, "ptr").ok()?;
    Some(object.id())
}

/// Lets what will be queued on a stream until the free come before any other use of the memory.
pub fn memory_record_stream(
    owner: Handle,
    pointer: u64,
    resolve: impl FnOnce(i32) -> Result<&'static Stream>,
) -> Result<()> {
    let look = |known: Option<&mut Allocation>| match known {
        Some(known) if known.owner == owner => Ok(known.device),
        known => Err(known.is_some()),
    };
    let device = look(shard(pointer).lock().get_mut(&pointer));
    let device = device.map_err(|of_other| refuse(pointer, of_other))?;
    // With no lock held: this may ask the driver.
    let stream = resolve(device)?;
    stream.check_not_capturing()?;
    let hold = Hold::new(stream);
    let mut shard = shard(pointer).lock();
    let Some(known) = shard.get_mut(&pointer).filter(|known| known.owner == owner) else {
        drop(shard);
        return Err(refuse(pointer, false));
    };
    let is_held = |held: &Hold| std::ptr::eq(held.stream(), stream);
    if !known.holds.iter().any(is_held) {
        known.holds.push(hold);
        let many = known.holds.len();
        if many >= HOLDS_BEFORE_LOOK && many.is_power_of_two() {
            let streams: Vec<_> = known.holds.iter().map(Hold::stream).collect();
            // Of many streams most are gone: with no lock held, since the driver is asked.
            drop(shard);
            forget_over(owner, pointer, &streams);
        }
    }
    Ok(())
}

/// Lets go of holds whose streams are gone with all their work done.
fn forget_over(owner: Handle, pointer: u64, streams: &[&'static Stream]) {
    for stream in streams {
        if !stream.is_alive() {
            stream.poll();
        }
    }
    let mut shard = shard(pointer).lock();
    if let Some(known) = shard.get_mut(&pointer).filter(|known| known.owner == owner) {
        known.holds.retain(|hold| !hold.is_over());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn of_many_streams_that_come_and_go_few_are_held() {
        object::install_hooks();
        let (cache, owner) = object::create_cache(None).expect("there are slots");
        let pointer = memory_alloc(cache, owner, 0, 512, 0, None).expect("there is memory");
        for _ in 0..2000 {
            let handle = timeline::create(0, false).expect("the host backend makes streams");
            memory_record_stream(owner, pointer, |device| timeline::resolve(handle, device))
                .expect("it is a stream of the device");
            timeline::destroy(handle).expect("it was made above");
            // The event at its end is behind nothing.
            let done = timeline::device_synchronize(0, timeline::Deadline::NEVER);
            assert_eq!(done, Ok(true));
        }
        let held = shard(pointer).lock()[&pointer].holds.len();
        assert!(held <= 2 * HOLDS_BEFORE_LOOK, "{held} streams are held");
        let taken = Taken::new(owner, pointer).expect("it is allocated");
        taken.free(None).expect("nothing is in the way");
    }

    /// Sizes that come once are forgotten, those in use stay, and the more there are the seldomer is that looked at.
    #[test]
    fn of_ever_new_sizes_few_are_remembered() {
        object::install_hooks();
        let (cache, owner) = object::create_cache(Some(0)).expect("there are slots");
        let allocate = |granules: u64| {
            memory_alloc(cache, owner, 0, 512 * granules, 0, None).expect("there is memory")
        };
        let free = |pointer| {
            let taken = Taken::new(owner, pointer).expect("it is allocated");
            taken.free(None).expect("there is no work")
        };
        let mut next = 0;
        let mut come_and_go = |count: u64| {
            for _ in 0..count {
                next += 1;
                // Odd ones, of which none is held.
                free(allocate(2 * next - 1));
            }
        };
        come_and_go(200);
        let (before, sweeps) = cache::remembered(cache, 0);
        assert_eq!((before, sweeps), ([200; 3], 0), "so few are not looked at");
        come_and_go(1000);
        let (all, sweeps) = cache::remembered(cache, 0);
        assert!(all.iter().all(|count| *count <= 256), "{all:?}");
        assert_eq!(sweeps, 4, "each time that there are 256");
        let held: Vec<u64> = (1..=300).map(|half| allocate(2 * half)).collect();
        come_and_go(1200);
        let (all, sweeps) = cache::remembered(cache, 0);
        let most = 2 * 300 + 2;
        assert!(
            all.iter().all(|count| (300..=most).contains(count)),
            "{all:?}"
        );
        assert!((6..=11).contains(&sweeps), "{sweeps}");
        held.into_iter().for_each(free);
        come_and_go(1000);
        let (all, _) = cache::remembered(cache, 0);
        assert!(all.iter().all(|count| *count <= most), "{all:?}");
    }

    /// One block that serves ever smaller requests is still found, and nothing of their sizes is left when it goes.
    #[test]
    fn of_sizes_that_a_larger_block_served_few_are_remembered() {
        object::install_hooks();
        let (cache, owner) = object::create_cache(Some(1 << 30)).expect("there are slots");
        let come_and_go = |granules: u64| {
            let pointer = memory_alloc(cache, owner, 0, 512 * granules, 0, None);
            let pointer = pointer.expect("there is memory");
            let taken = Taken::new(owner, pointer).expect("it is allocated");
            taken.free(None).expect("there is no work");
            pointer
        };
        let block = come_and_go(1000);
        for granules in 1..600 {
            assert_eq!(come_and_go(granules), block);
        }
        let (_, sweeps) = cache::remembered(cache, 0);
        assert_eq!(sweeps, 2);
        cache::set_limit(cache, 0, 0).expect("it is a limit");
        for granules in 2000..2600 {
            come_and_go(granules);
        }
        let ([requests, shapes, sizes], _) = cache::remembered(cache, 0);
        assert_eq!((requests, sizes), (shapes, shapes));
    }
}
