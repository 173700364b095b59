//! A device's memory: one reserved range of addresses, and how its pages are taken from and given back to the system.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::ranges::{FreeError, Ranges};
use crate::error::{Error, Result, Status};
use crate::fail;

/// What sizes and addresses are multiples of.
pub const GRANULE: u64 = 512;
/// The base's alignment. So large that whether an address suits an alignment never depends on where the system put us.
const BASE_ALIGNMENT: u64 = 1 << 30;
/// Addresses reserved for each byte of capacity, so that fragments do not refuse what the capacity would allow.
const ADDRESSES_PER_BYTE: [u64; 3] = [4, 2, 1];
/// The most addresses for one device: a quarter of what a process has.
const MAX_RESERVED: u64 = 1 << 45;
/// Addresses become readable and writable in steps of this many bytes, from the lowest up, when they are first handed out:
/// what walks over all readable memory, as leak checkers do, finds no more than that.
const OPENED_AT_ONCE: u64 = 4 << 20;
const NO_POISON: u32 = u32::MAX;

pub struct Arena {
    device: i32,
    base: u64,
    reserved: u64,
    handed: Mutex<Handed>,
    poison: AtomicU32,
}

struct Handed {
    ranges: Ranges,
    /// Offsets below this can be read and written.
    opened: u64,
}

impl Arena {
    /// Reserves addresses; touches nothing.
    pub fn new(device: i32, capacity: u64) -> Result<Arena> {
        let page = page_bytes();
        let mut failure = None;
        for factor in ADDRESSES_PER_BYTE {
            let length = match capacity.checked_mul(factor) {
                Some(length) if length <= MAX_RESERVED => length.next_multiple_of(page),
                _ => continue,
            };
            match reserve(length) {
                Ok(base) => {
                    return Ok(Arena {
                        device,
                        base,
                        reserved: length,
                        handed: Mutex::new(Handed {
                            ranges: Ranges::new(length, capacity, page),
                            opened: 0,
                        }),
                        poison: AtomicU32::new(NO_POISON),
                    })
                }
                Err(error) => failure = Some(error),
            }
        }
        let reason = match failure {
            Some(error) => error.to_string(),
            None => format!("expected at most {MAX_RESERVED}"),
        };
        fail!(
            Status::OutOfMemory,
            "no addresses for device {device} of {capacity} bytes: {reason}"
        );
    }

    pub fn capacity(&self) -> u64 {
        self.handed.lock().ranges.capacity()
    }

    pub fn free_bytes(&self) -> u64 {
        self.handed.lock().ranges.free_bytes()
    }

    /// Whether the address is one of this device's, handed out or not.
    pub fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.reserved).contains(&address)
    }

    /// Fills each new allocation with this byte from now on; `None`: leaves it as it is, neither zero nor old for sure.
    pub fn set_poison(&self, byte: Option<u8>) {
        let value = byte.map_or(NO_POISON, u32::from);
        self.poison.store(value, Ordering::Relaxed);
    }

    pub fn allocate(&self, bytes: u64) -> Result<u64> {
        if bytes == 0 || bytes % GRANULE != 0 {
            fail!(
                Status::InvalidValue,
                "bytes is {bytes}, expected a multiple of {GRANULE} greater than 0"
            );
        }
        let address = {
            let mut handed = self.handed.lock();
            let Some(offset) = handed.ranges.allocate(bytes) else {
                return Err(self.out_of_memory(bytes, &handed.ranges));
            };
            if let Err(error) = self.open(&mut handed.opened, offset + bytes) {
                // Never touched: no page of it goes back.
                let _ = handed.ranges.free(offset, bytes);
                return Err(error);
            }
            self.base + offset
        };
        if let Ok(byte) = u8::try_from(self.poison.load(Ordering::Relaxed)) {
            // SAFETY: these bytes of the mapping were handed out above and to nobody else.
            unsafe { std::ptr::write_bytes(address as *mut u8, byte, bytes as usize) };
        }
        Ok(address)
    }

    /// Makes the offsets below `end` readable and writable.
    fn open(&self, opened: &mut u64, end: u64) -> Result<()> {
        if end <= *opened {
            return Ok(());
        }
        let until = end.next_multiple_of(OPENED_AT_ONCE).min(self.reserved);
        let start = (self.base + *opened) as *mut libc::c_void;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: whole pages of this mapping, from which nothing was handed out yet.
        if unsafe { libc::mprotect(start, (until - *opened) as usize, protection) } != 0 {
            let error = std::io::Error::last_os_error();
            fail!(
                Status::OutOfMemory,
                "device {} cannot use {until} bytes of its addresses: {error}",
                self.device
            );
        }
        *opened = until;
        Ok(())
    }

    #[cold]
    fn out_of_memory(&self, bytes: u64, ranges: &Ranges) -> Error {
        let (device, free, capacity) = (self.device, ranges.free_bytes(), ranges.capacity());
        let why = if bytes <= free { ", in pieces" } else { "" };
        Error::new(
            Status::OutOfMemory,
            format!("device {device} has no room for {bytes} bytes: {free} of {capacity} bytes are free{why}"),
        )
    }

    pub fn free(&self, address: u64, bytes: u64) -> Result<()> {
        let device = self.device;
        // Held while pages go back: nobody may be given them before.
        let mut handed = self.handed.lock();
        let freed = match address.checked_sub(self.base) {
            Some(offset) => handed.ranges.free(offset, bytes),
            None => Err(FreeError::Unknown),
        };
        match freed {
            Ok(None) => Ok(()),
            Ok(Some((begin, end))) => {
                let pages = (self.base + begin) as *mut libc::c_void;
                // SAFETY: whole pages of this mapping in which nothing is handed out. Where the advice is refused (locked
                // memory) the pages merely stay.
                unsafe { libc::madvise(pages, (end - begin) as usize, libc::MADV_DONTNEED) };
                Ok(())
            }
            Err(FreeError::Unknown) => fail!(
                Status::InvalidValue,
                "pointer is {address:#x}, expected one that device {device} allocated and has not freed"
            ),
            Err(FreeError::Size(length)) => fail!(
                Status::InvalidValue,
                "bytes is {bytes} for pointer {address:#x}, expected the {length} bytes that were allocated"
            ),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the whole mapping of `new`; queued work holds its device and so this, and what was handed out is of no
        // use once its backend is gone.
        unsafe { libc::munmap(self.base as *mut libc::c_void, self.reserved as usize) };
    }
}

/// Maps `length` bytes (whole pages) that nobody can read or write yet at a multiple of `BASE_ALIGNMENT`.
fn reserve(length: u64) -> std::io::Result<u64> {
    let slack = BASE_ALIGNMENT - page_bytes();
    let protection = libc::PROT_NONE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the system's choice.
    let mapped = unsafe {
        let length = (length + slack) as usize;
        libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0)
    };
    if mapped == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    let start = mapped as u64;
    let base = start.next_multiple_of(BASE_ALIGNMENT);
    let (before, after) = (base - start, start + slack - base);
    // SAFETY: whole pages of the mapping just made, on both sides of what is kept; none of them was touched.
    unsafe {
        if before > 0 {
            libc::munmap(start as *mut libc::c_void, before as usize);
        }
        if after > 0 {
            libc::munmap((base + length) as *mut libc::c_void, after as usize);
        }
    }
    Ok(base)
}

fn page_bytes() -> u64 {
    // SAFETY: has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn touch(address: u64, bytes: u64) {
        // SAFETY: the tests pass live allocations.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0xa5, bytes as usize) };
    }

    fn resident_pages(address: u64, bytes: u64) -> usize {
        let page = page_bytes();
        let mut pages = vec![0u8; (bytes / page) as usize];
        let pointer = pages.as_mut_ptr();
        // SAFETY: the range is inside a mapping and `pages` has a byte for each of its pages.
        let result =
            unsafe { libc::mincore(address as *mut libc::c_void, bytes as usize, pointer) };
        assert_eq!(result, 0);
        pages.iter().filter(|page| **page & 1 != 0).count()
    }

    fn resident_bytes_of_process() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
        pages * page_bytes()
    }

    #[test]
    fn memory_runs_out_exactly_at_the_capacity() {
        let arena = Arena::new(3, 8 * GRANULE).unwrap();
        assert_eq!(arena.capacity(), 8 * GRANULE);
        let pointers: Vec<u64> = (0..8).map(|_| arena.allocate(GRANULE).unwrap()).collect();
        assert_eq!(arena.free_bytes(), 0);
        let error = arena.allocate(GRANULE).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
        assert_eq!(
            error.message,
            "device 3 has no room for 512 bytes: 0 of 4096 bytes are free"
        );
        // Four times the addresses: holes that are too small do not refuse what the capacity allows.
        for pointer in pointers.iter().step_by(2) {
            arena.free(*pointer, GRANULE).unwrap();
        }
        let error = arena.allocate(5 * GRANULE).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
        let large = arena.allocate(4 * GRANULE).unwrap();
        touch(large, 4 * GRANULE);
        assert_eq!(arena.free_bytes(), 0);
    }

    /// Bytes of the range that the system lets the process read.
    fn readable_bytes(address: u64, bytes: u64) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut readable = 0;
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ').unwrap();
            let (begin, end) = range.split_once('-').unwrap();
            let begin = u64::from_str_radix(begin, 16).unwrap().max(address);
            let end = u64::from_str_radix(end, 16).unwrap().min(address + bytes);
            if rest.starts_with('r') && begin < end {
                readable += end - begin;
            }
        }
        readable
    }

    #[test]
    fn only_addresses_that_were_handed_out_can_be_read() {
        let arena = Arena::new(0, 256 * MIB).unwrap();
        let readable = || readable_bytes(arena.base, arena.reserved);
        assert_eq!(readable(), 0);
        let small = arena.allocate(GRANULE).unwrap();
        assert_eq!(readable(), OPENED_AT_ONCE);
        let large = arena.allocate(9 * MIB).unwrap();
        touch(small, GRANULE);
        touch(large, 9 * MIB);
        assert_eq!(readable(), 12 * MIB);
        // The last address can be used too, and what was freed serves again without more.
        let rest = arena.allocate(arena.free_bytes()).unwrap();
        touch(rest + 240 * MIB, MIB);
        arena.free(rest, 247 * MIB - GRANULE).unwrap();
        let before = readable();
        touch(arena.allocate(100 * MIB).unwrap(), MIB);
        assert_eq!(readable(), before);
    }

    #[test]
    fn sizes_and_pointers_are_checked_and_a_refusal_changes_nothing() {
        let arena = Arena::new(0, MIB).unwrap();
        for bytes in [0, 1, GRANULE + 1] {
            let error = arena.allocate(bytes).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue);
        }
        let pointer = arena.allocate(2 * GRANULE).unwrap();
        let refused = [
            (0, 2 * GRANULE),
            (pointer + GRANULE, GRANULE),
            (pointer + 64 * MIB, 2 * GRANULE),
            (pointer, GRANULE),
        ];
        for (address, bytes) in refused {
            let error = arena.free(address, bytes).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue);
            assert_eq!(arena.free_bytes(), MIB - 2 * GRANULE);
        }
        arena.free(pointer, 2 * GRANULE).unwrap();
        let error = arena.free(pointer, 2 * GRANULE).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert_eq!(arena.free_bytes(), MIB);
    }

    #[test]
    fn a_capacity_that_no_process_can_address_is_refused() {
        for capacity in [MAX_RESERVED + 1, u64::MAX] {
            let error = Arena::new(0, capacity).err().unwrap();
            assert_eq!(error.status, Status::OutOfMemory);
        }
    }

    #[test]
    fn offsets_depend_on_the_trace_alone() {
        let offsets = || {
            let arena = Arena::new(0, 16 * MIB).unwrap();
            let mut live = Vec::new();
            let mut offsets = Vec::new();
            let mut state = 7u64;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let random = state >> 33;
                if random % 3 == 0 && !live.is_empty() {
                    let (pointer, bytes) = live.swap_remove(random as usize % live.len());
                    arena.free(pointer, bytes).unwrap();
                } else if let Ok(pointer) = arena.allocate((random % 64 + 1) * GRANULE) {
                    live.push((pointer, (random % 64 + 1) * GRANULE));
                    offsets.push(pointer % BASE_ALIGNMENT);
                }
            }
            offsets
        };
        assert_eq!(offsets(), offsets());
    }

    #[test]
    fn poison_fills_new_allocations() {
        let arena = Arena::new(0, MIB).unwrap();
        arena.set_poison(Some(0xcd));
        let pointer = arena.allocate(3 * GRANULE).unwrap();
        // SAFETY: a live allocation of this length.
        let bytes = unsafe { std::slice::from_raw_parts(pointer as *const u8, 1536) };
        assert!(bytes.iter().all(|byte| *byte == 0xcd));
        arena.free(pointer, 3 * GRANULE).unwrap();
        arena.set_poison(None);
        let pointer = arena.allocate(MIB).unwrap();
        assert_eq!(resident_pages(pointer + 4096, MIB - 4096), 0);
    }

    #[test]
    fn pages_go_back_when_a_large_range_is_freed() {
        let arena = Arena::new(0, 256 * MIB).unwrap();
        let before = resident_bytes_of_process();
        let pointer = arena.allocate(256 * MIB).unwrap();
        touch(pointer, 256 * MIB);
        let used = resident_bytes_of_process();
        assert!(used >= before + 192 * MIB, "{before} to {used}");
        arena.free(pointer, 256 * MIB).unwrap();
        let after = resident_bytes_of_process();
        assert!(after + 192 * MIB <= used, "{used} to {after}");
        assert_eq!(resident_pages(pointer, 256 * MIB), 0);
    }

    #[test]
    fn pages_go_back_when_small_ranges_add_up_and_neighbours_keep_theirs() {
        let arena = Arena::new(0, 4 * MIB).unwrap();
        let pointers: Vec<u64> = (0..MIB / GRANULE)
            .map(|_| arena.allocate(GRANULE).unwrap())
            .collect();
        pointers.iter().for_each(|pointer| touch(*pointer, GRANULE));
        assert_eq!(resident_pages(pointers[0], MIB), 256);
        // Odd granules first: nothing coalesces, no page is free as a whole.
        for pointer in pointers.iter().skip(1).step_by(2) {
            arena.free(*pointer, GRANULE).unwrap();
        }
        assert_eq!(resident_pages(pointers[0], MIB), 256);
        for pointer in pointers.iter().step_by(2).take(512) {
            arena.free(*pointer, GRANULE).unwrap();
        }
        let left = resident_pages(pointers[0], MIB);
        assert!((128..=128 + 16).contains(&left), "{left} pages");
        for pointer in pointers.iter().step_by(2).skip(512) {
            // SAFETY: live, and written by `touch`.
            assert_eq!(unsafe { *(*pointer as *const u8) }, 0xa5);
            arena.free(*pointer, GRANULE).unwrap();
        }
        let left = resident_pages(pointers[0], MIB);
        assert!(left <= 16, "{left} pages");
    }
}
