//! Holds on a stream that the host opens: the stream waits until a word of pinned memory has counted far enough.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::context::{call, Session};
use crate::backend::StreamHandle;
use crate::error::{Result, Status};
use crate::fail;

const WORDS: usize = 1024;
const GREATER_OR_EQUAL: u32 = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;

/// One page of words. Each counts its latches up, so that an opened word can serve the next latch at once: a stream that
/// has yet to pass an earlier one still finds the word far enough.
struct Page {
    /// One address for host and device, as pinned memory has under unified addressing.
    host: usize,
    /// The latch that each word holds, or held last.
    counts: Vec<u32>,
    free: Vec<u16>,
}

/// The latches of one device. The page is never freed: that would wait for running work.
#[derive(Default)]
pub struct Latches {
    page: Mutex<Option<Page>>,
}

/// Device, word and count in one number.
fn pack(ordinal: i32, word: u16, count: u32) -> u64 {
    (ordinal as u64) << 48 | u64::from(word) << 32 | u64::from(count)
}

/// The device that a latch belongs to.
pub fn ordinal(latch: u64) -> i32 {
    (latch >> 48) as i32
}

impl Latches {
    pub fn create(&self, session: &Session, stream: StreamHandle) -> Result<u64> {
        let Some(wait_value) = session.driver.cuStreamWaitValue32_v2 else {
            fail!(
                Status::NotSupported,
                "latches need cuStreamWaitValue32_v2, which CUDA 11.7 brought; the host backend has them everywhere"
            );
        };
        let (word, count, address) = self.take(session)?;
        // Without the lock: this waits while the stream's queue is full, perhaps for a latch that is yet to be opened.
        // SAFETY: the address is a word of a page that is never freed.
        let code = unsafe { wait_value(stream, address, count, GREATER_OR_EQUAL) };
        if let Err(error) = session.check(code, "cuStreamWaitValue32_v2") {
            self.put_back(word);
            return Err(error);
        }
        Ok(pack(session.device.ordinal, word, count))
    }

    /// A free word, the count that it shall reach and its address.
    fn take(&self, session: &Session) -> Result<(u16, u32, u64)> {
        let mut page = self.page.lock();
        if page.is_none() {
            *page = Some(Page::allocate(session)?);
        }
        let Some(page) = page.as_mut() else {
            fail!(Status::Internal, "the page of latches vanished");
        };
        let Some(word) = page.free.pop() else {
            fail!(
                Status::CapacityExceeded,
                "{WORDS} latches are closed already"
            );
        };
        // No latch has 0, the count of a word that never served; streams compare so that counts may wrap.
        let count = page.counts[usize::from(word)].wrapping_add(1).max(1);
        page.counts[usize::from(word)] = count;
        Ok((word, count, page.host as u64 + u64::from(word) * 4))
    }

    /// A word that no stream waits for. Its count stays: the next latch of it waits for one more.
    fn put_back(&self, word: u16) {
        if let Some(page) = self.page.lock().as_mut() {
            page.free.push(word);
        }
    }

    /// As if every word had served `count` latches.
    #[cfg(test)]
    pub fn count_from(&self, count: u32) {
        if let Some(page) = self.page.lock().as_mut() {
            page.counts.fill(count);
            for word in 0..WORDS as u16 {
                page.word(word).store(count, Ordering::SeqCst);
            }
        }
    }

    /// Calls no driver function: it works on a lost context too.
    pub fn open(&self, latch: u64) -> Result<()> {
        let (word, count) = ((latch >> 32) as u16, latch as u32);
        let mut page = self.page.lock();
        match page.as_mut() {
            Some(page)
                if page.counts.get(usize::from(word)) == Some(&count)
                    && count != 0
                    && !page.free.contains(&word) =>
            {
                page.word(word).store(count, Ordering::SeqCst);
                page.free.push(word);
                Ok(())
            }
            _ => fail!(
                Status::InvalidHandle,
                "latch is {latch:#x}, expected one that was created and not opened yet"
            ),
        }
    }
}

impl Page {
    fn allocate(session: &Session) -> Result<Page> {
        let mut host: *mut c_void = std::ptr::null_mut();
        // Allocating pinned memory breaks captures unless relaxed.
        let _relaxed = session.relaxed()?;
        // SAFETY: `host` is writable; the memory is kept for the life of the process.
        unsafe {
            let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
            call!(session, cuMemHostAlloc(&mut host, WORDS * 4, flags))?;
        }
        let page = Page {
            host: host as usize,
            counts: vec![0; WORDS],
            free: (0..WORDS as u16).rev().collect(),
        };
        for word in 0..WORDS as u16 {
            page.word(word).store(0, Ordering::SeqCst);
        }
        Ok(page)
    }

    fn word(&self, word: u16) -> &AtomicU32 {
        let address = self.host + usize::from(word) * 4;
        // SAFETY: the page has `WORDS` aligned words, is never freed, and is only accessed atomically.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }
    }
}
