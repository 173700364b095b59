//! Copies, fills, launches and calls as queued work, and how one piece of work is shared among cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::stream::Stream;
use crate::backend::{Copy2d, Fill2d, HostKernel, Launch, MAX_PARAMS_BYTES};
use crate::error::{Result, Status};
use crate::fail;

/// What a stream runs.
pub enum Work {
    Items(Box<ItemWork>),
    Call(Box<dyn FnOnce() + Send>),
}

/// Work made of items `0..items` that may run in any order and side by side.
pub struct ItemWork {
    body: Body,
    items: i64,
    items_per_task: i64,
}

enum Body {
    Copy {
        src: u64,
        dst: u64,
        src_pitch: u64,
        dst_pitch: u64,
        rows: Rows,
    },
    Fill {
        dst: u64,
        pitch: u64,
        rows: Rows,
    },
    Launch {
        kernel: HostKernel,
        params: Box<[ParamsUnit]>,
    },
}

/// Rows of `width` bytes, the last one of `last_width`.
#[derive(Clone, Copy)]
struct Rows {
    width: u64,
    last_width: u64,
    count: i64,
}

/// Gives a parameter block its alignment.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct ParamsUnit([u8; 16]);

/// A copy in one piece is cut into rows of this many bytes.
const BLOCK_BYTES: u64 = 256 << 10;
/// About how many bytes of a copy make a task worth handing to another core.
const TASK_BYTES: u64 = 1 << 20;

impl Rows {
    /// `pitches` become the distance of these rows. `None` where there is nothing to do.
    fn new(what: &str, width: u64, height: u64, pitches: [&mut u64; 2]) -> Result<Option<Rows>> {
        if width == 0 || height == 0 {
            return Ok(None);
        }
        if i64::try_from(height).is_err() {
            fail!(
                Status::Overflow,
                "{what}.height is {height}, expected less than 2^63"
            );
        }
        let mut contiguous = true;
        for pitch in &pitches {
            let pitch = **pitch;
            if height > 1 && pitch < width {
                fail!(
                    Status::InvalidValue,
                    "{what} has a pitch of {pitch} bytes, expected at least its width of {width}"
                );
            }
            let end = (height - 1)
                .checked_mul(pitch)
                .and_then(|offset| offset.checked_add(width));
            if height > 1 && end.is_none() {
                fail!(
                    Status::Overflow,
                    "{what} has {height} rows with a pitch of {pitch} bytes, expected less than 2^64 bytes"
                );
            }
            contiguous &= height == 1 || pitch == width;
        }
        if !contiguous {
            return Ok(Some(Rows {
                width,
                last_width: width,
                count: height as i64,
            }));
        }
        // Does not overflow: `end` above was this product.
        let total = width * height;
        let width = total.min(BLOCK_BYTES);
        let count = total.div_ceil(width);
        for pitch in pitches {
            *pitch = width;
        }
        Ok(Some(Rows {
            width,
            last_width: total - (count - 1) * width,
            count: count as i64,
        }))
    }

    fn width_of(&self, row: i64) -> usize {
        let last = row == self.count - 1;
        (if last { self.last_width } else { self.width }) as usize
    }

    fn rows_per_task(&self) -> i64 {
        TASK_BYTES.div_ceil(self.width) as i64
    }
}

impl ItemWork {
    /// `None` where there is nothing to do.
    pub fn copy(copy: &Copy2d) -> Result<Option<ItemWork>> {
        let (mut src_pitch, mut dst_pitch) = (copy.src_pitch, copy.dst_pitch);
        let pitches = [&mut src_pitch, &mut dst_pitch];
        let Some(rows) = Rows::new("copy", copy.width, copy.height, pitches)? else {
            return Ok(None);
        };
        if copy.src == 0 || copy.dst == 0 {
            let (src, dst) = (copy.src, copy.dst);
            fail!(
                Status::NullPointer,
                "copy.src is {src:#x} and copy.dst is {dst:#x}, expected addresses"
            );
        }
        Ok(Some(ItemWork {
            body: Body::Copy {
                src: copy.src,
                dst: copy.dst,
                src_pitch,
                dst_pitch,
                rows,
            },
            items: rows.count,
            items_per_task: rows.rows_per_task(),
        }))
    }

    /// `None` where there is nothing to do.
    pub fn fill_zero(fill: &Fill2d) -> Result<Option<ItemWork>> {
        let (mut pitch, mut same) = (fill.pitch, fill.pitch);
        let pitches = [&mut pitch, &mut same];
        let Some(rows) = Rows::new("fill", fill.width, fill.height, pitches)? else {
            return Ok(None);
        };
        if fill.dst == 0 {
            fail!(Status::NullPointer, "fill.dst is 0, expected an address");
        }
        Ok(Some(ItemWork {
            body: Body::Fill {
                dst: fill.dst,
                pitch,
                rows,
            },
            items: rows.count,
            items_per_task: rows.rows_per_task(),
        }))
    }

    /// `None` where there is nothing to do.
    pub fn launch(launch: &Launch) -> Result<Option<ItemWork>> {
        let (name, length) = (launch.kernel.name, launch.params.len());
        if length > MAX_PARAMS_BYTES {
            fail!(
                Status::InvalidValue,
                "launch of {name}: params has {length} bytes, expected at most {MAX_PARAMS_BYTES}"
            );
        }
        let (items, items_per_task) = (launch.items, launch.items_per_task);
        if items < 0 {
            fail!(
                Status::InvalidValue,
                "launch of {name}: items is {items}, expected at least 0"
            );
        }
        if items_per_task < 1 {
            fail!(
                Status::InvalidValue,
                "launch of {name}: items_per_task is {items_per_task}, expected at least 1"
            );
        }
        if items == 0 {
            return Ok(None);
        }
        let params = launch.params.chunks(16).map(|chunk| {
            let mut unit = ParamsUnit([0; 16]);
            unit.0[..chunk.len()].copy_from_slice(chunk);
            unit
        });
        Ok(Some(ItemWork {
            body: Body::Launch {
                kernel: launch.kernel.host,
                params: params.collect(),
            },
            items,
            items_per_task,
        }))
    }

    /// Runs all items.
    pub fn run(&self) {
        self.run_items(0, self.items);
    }

    fn run_items(&self, begin: i64, end: i64) {
        match &self.body {
            Body::Copy {
                src,
                dst,
                src_pitch,
                dst_pitch,
                rows,
            } => {
                for row in begin..end {
                    let source = (src + row as u64 * src_pitch) as *const u8;
                    let target = (dst + row as u64 * dst_pitch) as *mut u8;
                    // SAFETY: who queued the copy gave addresses that hold these rows and stay valid until it has run.
                    // `copy` and not `copy_nonoverlapping`: an overlap is the caller's mistake, but not undefined.
                    unsafe { std::ptr::copy(source, target, rows.width_of(row)) };
                }
            }
            Body::Fill { dst, pitch, rows } => {
                for row in begin..end {
                    let target = (dst + row as u64 * pitch) as *mut u8;
                    // SAFETY: as for a copy's target.
                    unsafe { std::ptr::write_bytes(target, 0, rows.width_of(row)) };
                }
            }
            Body::Launch { kernel, params } => {
                // SAFETY: the block is the kernel's own parameter block, aligned to 16, and the items are in range; that
                // its pointers are valid until it has run is on who queued it.
                unsafe { kernel(params.as_ptr().cast(), begin, end) };
            }
        }
    }
}

/// One piece of work that several threads take chunks of. Nobody waits for the others: whoever finishes the last chunk
/// goes on with the stream.
pub struct SharedWork {
    pub stream: Arc<Stream>,
    work: Box<ItemWork>,
    chunk_items: i64,
    chunk_count: usize,
    next: AtomicUsize,
    unfinished: AtomicUsize,
}

/// More chunks than workers, so that one that starts late or runs slowly holds up little.
const CHUNKS_PER_WORKER: i64 = 4;

impl SharedWork {
    /// Gives the work back where it is too small to share.
    pub fn new(
        stream: &Arc<Stream>,
        work: Box<ItemWork>,
        workers: usize,
    ) -> std::result::Result<Arc<SharedWork>, Box<ItemWork>> {
        let tasks = (work.items - 1) / work.items_per_task + 1;
        if workers < 2 || tasks < 2 {
            return Err(work);
        }
        let chunks = tasks.min(workers as i64 * CHUNKS_PER_WORKER);
        let chunk_items = (work.items - 1) / chunks + 1;
        let chunk_count = ((work.items - 1) / chunk_items + 1) as usize;
        Ok(Arc::new(SharedWork {
            stream: Arc::clone(stream),
            work,
            chunk_items,
            chunk_count,
            next: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(chunk_count),
        }))
    }

    pub fn chunk_count(&self) -> usize {
        self.chunk_count
    }

    /// Runs chunks until none is left to take; whether this thread finished the last one.
    pub fn run(&self) -> bool {
        let mut finished = false;
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunk_count {
                return finished;
            }
            let begin = chunk as i64 * self.chunk_items;
            let end = begin.saturating_add(self.chunk_items).min(self.work.items);
            self.stream.device.run(|| self.work.run_items(begin, end));
            // Acquire and release: the finisher speaks for all chunks' writes.
            finished = self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{CopyKind, Kernel};

    fn copy(src: &[u8], dst: &mut [u8], pitches: (u64, u64), width: u64, height: u64) -> ItemWork {
        let copy = Copy2d {
            kind: CopyKind::DeviceToDevice,
            src: src.as_ptr() as u64,
            src_pitch: pitches.0,
            dst: dst.as_mut_ptr() as u64,
            dst_pitch: pitches.1,
            width,
            height,
        };
        ItemWork::copy(&copy).unwrap().unwrap()
    }

    #[test]
    fn rows_are_copied_and_the_bytes_between_them_are_not() {
        let src: Vec<u8> = (0..60).collect();
        let mut dst = vec![255; 40];
        copy(&src, &mut dst, (20, 10), 7, 3).run();
        for (index, value) in dst.iter().enumerate() {
            let (row, column) = (index / 10, index % 10);
            let copied = column < 7 && row < 3;
            let expected = if copied { row * 20 + column } else { 255 };
            assert_eq!(*value as usize, expected, "at {index}");
        }
    }

    #[test]
    fn a_copy_without_gaps_is_cut_into_blocks_and_complete() {
        for total in [1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES - 1] {
            let src: Vec<u8> = (0..total).map(|index| (index % 251) as u8).collect();
            let mut dst = vec![0; total as usize];
            // A single row may have any pitch.
            let work = copy(&src, &mut dst, (0, 3), total, 1);
            assert_eq!(work.items as u64, total.div_ceil(BLOCK_BYTES));
            work.run();
            assert!(src == dst, "{total} bytes");
        }
        let src = vec![7; 4 * BLOCK_BYTES as usize];
        let mut dst = vec![0; src.len()];
        let work = copy(&src, &mut dst, (1 << 10, 1 << 10), 1 << 10, 1 << 10);
        assert_eq!(work.items, 4);
        work.run();
        assert!(src == dst);
    }

    #[test]
    fn a_fill_stays_inside_its_rows() {
        let mut dst = vec![1u8; 30];
        let address = dst.as_mut_ptr() as u64;
        let fill = |width, height| Fill2d {
            dst: address,
            pitch: 10,
            width,
            height,
        };
        let work = ItemWork::fill_zero(&fill(4, 3)).unwrap().unwrap();
        assert!(ItemWork::fill_zero(&fill(0, 3)).unwrap().is_none());
        assert!(ItemWork::fill_zero(&fill(4, 0)).unwrap().is_none());
        work.run();
        for (index, value) in dst.iter().enumerate() {
            assert_eq!(*value, u8::from(index % 10 >= 4), "at {index}");
        }
    }

    #[test]
    fn bad_rows_are_refused() {
        let with = |width, height, pitch| {
            let copy = Copy2d {
                kind: CopyKind::HostToDevice,
                src: 4096,
                src_pitch: pitch,
                dst: 4096,
                dst_pitch: u64::MAX,
                width,
                height,
            };
            ItemWork::copy(&copy).err().map(|error| error.status)
        };
        assert_eq!(with(8, 2, 7), Some(Status::InvalidValue));
        assert_eq!(with(8, 3, 8), Some(Status::Overflow));
        assert_eq!(with(8, u64::MAX, 8), Some(Status::Overflow));
        assert_eq!(with(8, 1, 0), None);
        let null = Fill2d {
            dst: 0,
            pitch: 8,
            width: 8,
            height: 1,
        };
        let error = ItemWork::fill_zero(&null).err().unwrap();
        assert_eq!(error.status, Status::NullPointer);
    }

    unsafe extern "C" fn read_params(params: *const libc::c_void, begin: i64, end: i64) {
        assert_eq!(params as usize % 16, 0);
        // SAFETY: the test below gives 24 bytes: the target's address and two numbers.
        unsafe {
            let target = *params.cast::<*mut u64>();
            *target = *params.cast::<u64>().add(1) + *params.cast::<u64>().add(2);
            *target.add(1) = (end - begin) as u64;
        }
    }

    static KERNEL: Kernel = Kernel {
        name: "read_params",
        host: read_params,
    };

    fn launch(params: &[u8], items: i64, items_per_task: i64) -> Result<Option<ItemWork>> {
        ItemWork::launch(&Launch {
            kernel: &KERNEL,
            params,
            items,
            items_per_task,
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            ranges: &[],
        })
    }

    #[test]
    fn params_are_copied_when_queued_and_bad_launches_are_refused() {
        let mut target = [0u64; 2];
        let params: Vec<u8> = [target.as_mut_ptr() as u64, 30, 12]
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        let work = launch(&params, 5, 1).unwrap().unwrap();
        drop(params);
        work.run();
        assert_eq!(target, [42, 5]);
        let status = |params: &[u8], items, items_per_task| {
            let result = launch(params, items, items_per_task);
            result.err().map(|error| error.status)
        };
        let most = vec![0; MAX_PARAMS_BYTES + 1];
        assert_eq!(status(&most[1..], 1, 1), None);
        assert_eq!(status(&most, 1, 1), Some(Status::InvalidValue));
        assert_eq!(status(&[], -1, 1), Some(Status::InvalidValue));
        assert_eq!(status(&[], 1, 0), Some(Status::InvalidValue));
        assert!(launch(&[], 0, 1).unwrap().is_none());
    }
}
