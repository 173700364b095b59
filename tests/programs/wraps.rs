//! The steps that wrap memory of the program's own, and what its owner hears.

use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance, without_provenance_mut};
use std::sync::{Mutex, PoisonError};

use cvc::backend::CopyKind;

use super::c_interface::*;
use super::captures::Refusal;
use super::model::*;
use super::program::*;
use super::run::*;
use super::slots::*;

/// Memory of the program's own, wrapped by one tensor at a time.
struct Piece {
    /// In words, so that elements of any type may begin it.
    bytes: Box<[u64]>,
    wrapped: Option<MemoryId>,
}

impl Piece {
    fn start(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    fn contents(&self, length: usize) -> Vec<u8> {
        let all = self.bytes.iter().flat_map(|word| word.to_ne_bytes());
        all.take(length).collect()
    }
}

pub(super) struct Pieces {
    all: [Piece; PIECES as usize],
    /// The first byte of what the next wrap holds at its beginning.
    first: u16,
    /// Of all wraps so far.
    ids: HashSet<u64>,
}

impl Default for Pieces {
    fn default() -> Pieces {
        let largest = TENSOR_KINDS.iter().map(|kind| kind.bytes as usize / 8);
        let words = largest.max().unwrap_or_default();
        // What an earlier program left does not count.
        take_heard();
        Pieces {
            all: std::array::from_fn(|_| Piece {
                bytes: vec![0; words].into(),
                wrapped: None,
            }),
            first: 0,
            ids: HashSet::new(),
        }
    }
}

impl Pieces {
    pub(super) fn has_wrap_of(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}

/// Whose owners heard since somebody asked last, by the places of the pieces.
static HEARD: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn take_heard() -> Vec<usize> {
    std::mem::take(&mut HEARD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The callback of every wrap.
unsafe extern "C" fn hears(piece: *mut c_void) {
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    heard.push(piece.addr());
}

/// How a tensor of that kind lies packed at `start`.
fn packed(of: &Kind, device: usize, start: u64, keeps_shells: bool) -> cvc_tensor_data_t {
    // SAFETY: plain numbers and pointers.
    let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
    let desc = desc_of(of.shape, of.dtype, of.layout, device);
    let element: usize = of.extents.iter().product::<usize>() / volume(of.shape);
    let mut stride = element as i64;
    for (place, extent) in of.shape.iter().enumerate().rev() {
        data.strides[place] = stride;
        stride *= extent;
    }
    data.struct_size = std::mem::size_of_val(&data);
    data.device = desc.device;
    data.rank = desc.rank;
    data.shape = desc.shape;
    data.dtype = desc.dtype;
    data.layout = desc.layout;
    data.flags = if keeps_shells {
        CVC_WRAP_KEEP_SHELLS
    } else {
        0
    };
    data.data = std::ptr::with_exposed_provenance_mut(start as usize);
    data
}

fn volume(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

impl Runner {
    /// What is in it was written by the host, or is being written by work on the stream that the step names.
    pub(super) fn wrap(&mut self, thread: usize, [slot, kind, name, flags]: [u16; 4]) {
        let (slot, kind) = (slot % TENSORS, kind % TENSOR_KINDS.len() as u16);
        let device = usize::from(slot >= FIRST_TENSOR_OF_DEVICE_1);
        let (keeps_shells, piece) = (flags / 2 % 2 == 1, usize::from(flags / 4 % PIECES));
        let free =
            self.tensors[usize::from(slot)].is_none() && self.pieces.all[piece].wrapped.is_none();
        let Some(cache) = self.cache(flags % 2).filter(|_| free) else {
            return;
        };
        let Ok(place) = self.consumer(name, device, thread) else {
            return;
        };
        let Some(index) = self.index(thread, cache) else {
            return;
        };
        let refusal = place.is_some_and(|place| self.captures.refuse(place.life));
        let form = Form::of(kind);
        self.pieces.first = (self.pieces.first + 17) % 250;
        let values = form.values_from(self.pieces.first);
        let start = self.pieces.all[piece].start();
        let written = match place {
            // What a graph writes is written by nothing that is queued.
            _ if refusal => false,
            Some(place) => self.write_by_work(thread, place, start, &values),
            None => self.write_by_host(piece, &values),
        };
        let of = &TENSOR_KINDS[usize::from(kind)];
        let data = packed(of, device, start, keeps_shells);
        let (owner, stream) = (self.caches[cache], Self::none_or(place));
        let (context, mut handle) = (without_provenance_mut(piece), null_mut());
        // SAFETY: memory that stays until the callback says that nobody uses it, and a place for the result.
        let made = self.call_as(thread, Refusal::when(refusal), &[], || unsafe {
            cvc_tensor_wrap(owner, &data, Some(hears), context, stream, &mut handle)
        });
        if !made {
            assert!(refusal, "nothing else of a wrap fails");
            return;
        }
        let (memory, has_shell) = self.model.wrap(cache, index, device, keeps_shells);
        if let Some(place) = place {
            let sequence = place.pointer.last_submitted();
            self.model.end_access(memory, place.stream, true, sequence);
        }
        self.new_memory(written.then_some(values));
        self.pieces.all[piece].wrapped = Some(memory);
        let id = self.tensor_id(handle);
        assert!(!self.ids.contains_key(&id), "a wrap in the cache's memory");
        let known = !self.pieces.ids.insert(id);
        if self.model.exact {
            assert_eq!(known, has_shell, "the wrap is in an earlier one's shell");
        }
        self.tensors[usize::from(slot)] = Some(Tensor {
            handle,
            memory,
            form,
            view: None,
        });
    }

    fn write_by_host(&mut self, piece: usize, values: &[u8]) -> bool {
        let words = values.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        for (place, word) in self.pieces.all[piece].bytes.iter_mut().zip(words) {
            *place = word;
        }
        true
    }

    fn write_by_work(&mut self, thread: usize, place: Place, start: u64, values: &[u8]) -> bool {
        let source: Box<[u8]> = values.into();
        let from = source.as_ptr().expose_provenance() as u64;
        self.sources.push(source);
        self.own_copy(
            thread,
            place,
            CopyKind::HostToDevice,
            [from, start],
            values.len(),
        )
    }

    /// The host itself may read and write the piece: all that was queued there is done, and seen.
    fn host_uses(&self, piece: usize) {
        let piece = &self.pieces.all[piece];
        let start = without_provenance(piece.start() as usize);
        let (bytes, host) = (piece.bytes.len() as u64 * 8, Self::none_or(None));
        // SAFETY: no preconditions.
        ok(unsafe { cvc_host_race_access(0, host, start, bytes, CVC_ACCESS_WRITE) });
    }

    /// Takes in what owners have heard: each once, of memory that nobody uses, with the bytes that work left there.
    pub(super) fn hear(&mut self) {
        let heard = take_heard();
        for piece in heard.iter().copied() {
            let wrapped = self.pieces.all[piece].wrapped.take();
            let memory = wrapped.expect("an owner was told twice");
            let followed = self.model.exact && !self.unsure;
            let judged = self.model.owner_heard(memory, followed);
            self.judged(judged);
            self.tally.owners_told += 1;
            self.host_uses(piece);
            if let Some(values) = self.values[memory].take() {
                let contents = self.pieces.all[piece].contents(values.len());
                assert!(contents == values, "wrapped memory has a wrong value");
            }
        }
        if !heard.is_empty() {
            assert_no_races();
        }
        if self.model.exact && !self.unsure {
            self.judged(self.model.all_have_heard());
        }
    }
}
