//! The steps that make, use and release tensors and images.

use super::c_interface::*;
use super::captures::Refusal;
use super::choice::Wanted;
use super::model::MemoryId;
use super::program::*;
use super::run::*;
use super::slots::*;
use std::ptr::{null, null_mut};

type Numbers = [u16; 4];

fn access_of(write: bool) -> cvc_access_t {
    match write {
        true => CVC_ACCESS_WRITE,
        false => CVC_ACCESS_READ,
    }
}

impl Runner {
    pub(super) fn tensor(&self, slot: u16) -> Option<Tensor> {
        self.tensors[usize::from(slot % TENSORS)]
    }

    /// A tensor that a step may work on: nobody else works on it.
    pub(super) fn usable(&self, slot: u16) -> Option<Tensor> {
        self.tensor(slot).filter(|tensor| !self.lent[tensor.memory])
    }

    pub(super) fn device_of(&self, tensor: &Tensor) -> usize {
        self.model.memories[tensor.memory].device
    }

    /// The stream for work on a tensor.
    fn stream_for(&mut self, tensor: &Tensor, name: u16, thread: usize) -> Option<Place> {
        let device = self.device_of(tensor);
        self.stream(name, device, thread)
    }

    /// The stream of a request, where it names one; `Err` where that is in an empty slot.
    pub(super) fn consumer(
        &mut self,
        name: u16,
        device: usize,
        thread: usize,
    ) -> Result<Option<Place>, ()> {
        if name == NO_STREAM {
            return Ok(None);
        }
        self.stream(name, device, thread).map(Some).ok_or(())
    }

    pub(super) fn none_or(place: Option<Place>) -> cvc_stream_t {
        let none = std::ptr::without_provenance_mut(usize::MAX);
        place.map_or(none, |place| place.handle)
    }

    pub(super) fn create(&mut self, thread: usize, [slot, kind, name, flags]: Numbers) {
        let (slot, kind) = (slot % TENSORS, kind % TENSOR_KINDS.len() as u16);
        let device = usize::from(slot >= FIRST_TENSOR_OF_DEVICE_1);
        let Some(cache) = self
            .cache(flags % 2)
            .filter(|_| self.tensor(slot).is_none())
        else {
            return;
        };
        let Ok(place) = self.consumer(name, device, thread) else {
            return;
        };
        let of = &TENSOR_KINDS[usize::from(kind)];
        let desc = desc_of(of.shape, of.dtype, of.layout, device);
        let (form, handle_of) = (Form::of(kind), self.caches[cache]);
        let wanted = self.wanted(thread, cache, device, &form, place);
        let (stream, mut handle) = (Self::none_or(place), null_mut());
        let refusal = self.request_refusal(place);
        // SAFETY: a description and a place for the result.
        let made = self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], || unsafe {
            cvc_tensor_create(handle_of, &desc, stream, &mut handle)
        });
        if !made {
            return self.not_made(&wanted, refusal);
        }
        let memory = self.obtained(self.tensor_id(handle), &wanted);
        self.note_address(memory, data(handle));
        self.tensors[usize::from(slot)] = Some(Tensor {
            handle,
            memory,
            form,
            view: None,
        });
        // Work on the stream that was named may use the memory at once.
        if let Some(place) = place.filter(|_| flags / 2 % 2 == 1) {
            self.note_access(thread, place, handle, memory, true);
        }
    }

    /// Announces work of the program's own, after it.
    fn note_access(
        &mut self,
        thread: usize,
        place: Place,
        handle: cvc_tensor_t,
        memory: MemoryId,
        write: bool,
    ) {
        let refusal = Refusal::when(self.captures.refuse(place.life));
        // SAFETY: handles.
        self.call_as(thread, refusal, &[], || unsafe {
            cvc_tensor_end_access(handle, place.handle, access_of(write))
        });
        if self.last_status != CVC_STATUS_CAPTURING {
            let sequence = place.pointer.last_submitted();
            self.model.end_access(memory, place.stream, write, sequence);
        }
    }

    pub(super) fn release_tensor(&mut self, thread: usize, slot: u16) {
        if let Some(tensor) = self.tensors[usize::from(slot % TENSORS)].take() {
            // SAFETY: a handle, released once.
            self.call(thread, &[], || unsafe { cvc_tensor_release(tensor.handle) });
            self.forget_view(tensor.view);
            self.let_go(tensor.memory, thread);
        }
    }

    /// A view is gone where no slot, export or batch has it any more.
    pub(super) fn forget_view(&mut self, view: Option<u64>) {
        let exports = self.exports.iter().flatten().map(|export| export.view);
        let tensors = self.tensors.iter().flatten().map(|tensor| tensor.view);
        let batches = self.tensor_batches.iter().flatten();
        let members = batches.flat_map(|batch| batch.tensors.iter().map(|tensor| tensor.view));
        let mut known = exports.chain(tensors).chain(members);
        self.views -= u64::from(view.is_some() && !known.any(|known| known == view));
    }

    fn add_view(&mut self, slot: u16, handle: cvc_tensor_t, memory: usize, form: Form) {
        self.references[memory] += 1;
        self.views += 1;
        self.tensors[usize::from(slot % TENSORS)] = Some(Tensor {
            handle,
            memory,
            form,
            view: Some(self.tensor_id(handle)),
        });
    }

    /// The same bytes with an N in front, or rows of 64 as rows of 16.
    pub(super) fn view(&mut self, thread: usize, [to, from, variant, _]: Numbers) {
        let whole = self
            .tensor(from)
            .filter(|t| t.view.is_none() && t.form.shape < 100);
        let (Some(tensor), None) = (whole, self.tensor(to)) else {
            return;
        };
        let of = &TENSOR_KINDS[usize::from(tensor.form.shape)];
        if of.layout != "HWC" {
            return;
        }
        let other_rows = variant % 2 == 1 && tensor.form.shape == 1;
        let (desc, form) = if other_rows {
            let of = &TENSOR_KINDS[2];
            (desc_of(of.shape, of.dtype, of.layout, 0), Form::of(2))
        } else {
            let shape = [&[1], of.shape].concat();
            (desc_of(&shape, of.dtype, "NHWC", 0), tensor.form.with_n())
        };
        let mut view = null_mut();
        // SAFETY: a handle, a description and a place for the result.
        if self.call(thread, &[], || unsafe {
            cvc_tensor_reshape(tensor.handle, &desc, &mut view)
        }) {
            self.add_view(to, view, tensor.memory, form);
        }
    }

    pub(super) fn upload(&mut self, thread: usize, [slot, name, first, _]: Numbers) {
        let Some(tensor) = self.usable(slot) else {
            return;
        };
        let Some(place) = self.stream_for(&tensor, name, thread) else {
            return;
        };
        let values = tensor.form.values_from(first);
        let source = values.clone().into_boxed_slice();
        let from = source.as_ptr();
        self.sources.push(source);
        // SAFETY: the source stays until the device is through.
        let queued = self.submit(thread, place, &[(tensor.memory, true)], || unsafe {
            cvc_upload(place.handle, from.cast(), null(), tensor.handle)
        });
        if let Some(whole) = queued {
            self.values[tensor.memory] = whole.then_some(values);
        }
    }

    pub(super) fn fill(&mut self, thread: usize, [slot, name, ..]: Numbers) {
        let Some(tensor) = self.usable(slot) else {
            return;
        };
        let Some(place) = self.stream_for(&tensor, name, thread) else {
            return;
        };
        // SAFETY: handles.
        let queued = self.submit(thread, place, &[(tensor.memory, true)], || unsafe {
            cvc_fill_zero(place.handle, tensor.handle)
        });
        if let Some(whole) = queued {
            self.values[tensor.memory] = whole.then(|| vec![0; tensor.form.value_bytes()]);
        }
    }

    /// An operator that makes its result did not. What it took before that is not followed.
    pub(super) fn not_made(&mut self, wanted: &Wanted, refusal: Refusal) {
        if self.last_status != CVC_STATUS_CAPTURING {
            return self.refused(wanted);
        }
        if refusal == Refusal::Perhaps {
            self.model.exact = false;
            self.unsure = true;
        }
    }

    fn flipped_value(&self, tensor: &Tensor, code: i32) -> Option<Vec<u8>> {
        let values = self.values[tensor.memory].as_ref()?;
        Some(flipped(values, tensor.form.extents, code))
    }

    pub(super) fn flip(&mut self, thread: usize, [slot, name, code, _]: Numbers) {
        let Some(tensor) = self.usable(slot).filter(|t| t.form.shape != CODES) else {
            return;
        };
        let Some(place) = self.stream_for(&tensor, name, thread) else {
            return;
        };
        let code = i32::from(code % 3) - 1;
        let values = self.flipped_value(&tensor, code);
        let handle = tensor.handle;
        // SAFETY: handles.
        let queued = self.submit(thread, place, &[(tensor.memory, true)], || unsafe {
            cvc_op_flip(place.handle, handle, handle, code)
        });
        if let Some(whole) = queued {
            self.values[tensor.memory] = values.filter(|_| whole);
        }
    }

    pub(super) fn flip_new(&mut self, thread: usize, [from, to, name, code]: Numbers) {
        let source = self.usable(from).filter(|t| t.form.shape != CODES);
        let (Some(tensor), None) = (source, self.tensor(to)) else {
            return;
        };
        let Some(place) = self.stream_for(&tensor, name, thread) else {
            return;
        };
        let code = i32::from(code % 3) - 1;
        let values = self.flipped_value(&tensor, code);
        let (device, cache) = (
            self.device_of(&tensor),
            self.model.memories[tensor.memory].cache,
        );
        if self.index(thread, cache).is_none() {
            return;
        }
        let wanted = self.wanted(thread, cache, device, &tensor.form, Some(place));
        let mut handle = null_mut();
        let refusal = self.refusal_of(place, &[(tensor.memory, false)]);
        // SAFETY: handles and a place for the result.
        let made = self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], || unsafe {
            cvc_op_flip_new(place.handle, tensor.handle, code, &mut handle)
        });
        if !made {
            return self.not_made(&wanted, refusal);
        }
        let memory = self.obtained(self.tensor_id(handle), &wanted);
        self.note_address(memory, data(handle));
        self.submitted(place, thread, &[(tensor.memory, false), (memory, true)]);
        self.values[memory] = values;
        self.tensors[usize::from(to % TENSORS)] = Some(Tensor {
            handle,
            memory,
            form: tensor.form,
            view: None,
        });
    }

    pub(super) fn copy(&mut self, thread: usize, [from, to, name, _]: Numbers) {
        let (Some(source), Some(target)) = (self.usable(from), self.usable(to)) else {
            return;
        };
        let alike = source.form.shape == target.form.shape
            && self.device_of(&source) == self.device_of(&target);
        if !alike || source.memory == target.memory {
            return;
        }
        let Some(place) = self.stream_for(&source, name, thread) else {
            return;
        };
        let accesses = [(source.memory, false), (target.memory, true)];
        // SAFETY: handles.
        let queued = self.submit(thread, place, &accesses, || unsafe {
            cvc_copy(place.handle, source.handle, target.handle)
        });
        if let Some(whole) = queued {
            let values = self.values[source.memory].clone();
            self.values[target.memory] = values.filter(|_| whole);
        }
    }

    pub(super) fn download(&mut self, thread: usize, [slot, name, ..]: Numbers) {
        let Some(tensor) = self.usable(slot) else {
            return;
        };
        let (Some(values), Some(place)) = (
            self.values[tensor.memory].clone(),
            self.stream_for(&tensor, name, thread),
        ) else {
            return;
        };
        let mut got = vec![0u8; values.len()].into_boxed_slice();
        let into = got.as_mut_ptr();
        // SAFETY: the place stays until the device is through.
        let queued = self.submit(thread, place, &[(tensor.memory, false)], || unsafe {
            cvc_download(place.handle, tensor.handle, into.cast(), null())
        });
        let device = self.device_of(&tensor);
        if queued == Some(true) {
            self.downloads.push(Download {
                device,
                got,
                values,
            });
        } else {
            self.sources.push(got);
        }
    }

    /// Work of the program's own, announced before and after.
    pub(super) fn launch(&mut self, thread: usize, [slot, name, write, _]: Numbers) {
        let Some(tensor) = self.usable(slot) else {
            return;
        };
        let Some(place) = self.stream_for(&tensor, name, thread) else {
            return;
        };
        let write = write % 2 == 1;
        let accesses = [(tensor.memory, write)];
        let refusal = self.refusal_of(place, &accesses);
        // SAFETY: handles.
        let begun = self.call_as(thread, refusal, &[], || unsafe {
            cvc_tensor_begin_access(tensor.handle, place.handle, access_of(write))
        });
        if !begun {
            return self.half_begin(place, &accesses, refusal);
        }
        self.model.begin_access(tensor.memory, place.stream, write);
        self.note_access(thread, place, tensor.handle, tensor.memory, write);
    }

    /// Exports a tensor; where it lends, the consumer at once queues work of its own, and nobody else does before the end.
    pub(super) fn export(&mut self, thread: usize, [slot, from, name, lends]: Numbers) {
        let slot = usize::from(slot % EXPORTS);
        let Some(tensor) = self.usable(from).filter(|_| self.exports[slot].is_none()) else {
            return;
        };
        let device = self.device_of(&tensor);
        let Ok(place) = self.consumer(name, device, thread) else {
            return;
        };
        let (stream, mut managed) = (Self::none_or(place), null_mut());
        let accesses = [(tensor.memory, true)];
        let refusal = place.map_or(Refusal::Never, |place| self.refusal_of(place, &accesses));
        // SAFETY: handles and a place for the result.
        let made = self.call_as(thread, refusal, &[], || unsafe {
            cvc_tensor_to_dlpack(tensor.handle, stream, 0, &mut managed)
        });
        if !made {
            if let Some(place) = place {
                self.half_begin(place, &accesses, refusal);
            }
            return;
        }
        let lends = lends % 2 == 1 && place.is_some();
        let mut consumer = place;
        if let Some(place) = place {
            self.model.begin_access(tensor.memory, place.stream, true);
            if lends {
                let start = std::ptr::without_provenance(data(tensor.handle) as usize);
                let (bytes, write) = (tensor.form.value_bytes() as u64, CVC_ACCESS_WRITE);
                // SAFETY: no preconditions.
                self.call(thread, &[], || unsafe {
                    cvc_host_race_access(device as i32, stream, start, bytes, write)
                });
            }
            if place.name == PER_THREAD {
                // The end may come from another thread, where that handle is another stream.
                consumer = self.stream(LEGACY, device, thread);
            }
        }
        self.lent[tensor.memory] = lends;
        self.references[tensor.memory] += 1;
        self.exports[slot] = Some(Export {
            managed,
            memory: tensor.memory,
            consumer,
            lends,
            view: tensor.view,
        });
    }

    pub(super) fn end_export(&mut self, thread: usize, slot: u16) {
        let slot = usize::from(slot % EXPORTS);
        let consumer = self.exports[slot]
            .as_ref()
            .and_then(|export| export.consumer);
        // No event can be left on a stream of somebody else's while it captures: the consumer ends its captures first.
        let is_foreign = |place: Place| !place.pointer.is_known_by_handle();
        if consumer.is_some_and(|place| is_foreign(place) && self.captures.refuse(place.life)) {
            return;
        }
        let Some(export) = self.exports[slot].take() else {
            return;
        };
        // SAFETY: a struct of `cvc_tensor_to_dlpack`, deleted once.
        self.call(thread, &[], || unsafe {
            ((*export.managed.cast::<Managed>()).deleter)(export.managed);
            CVC_STATUS_OK
        });
        if let Some(place) = export.consumer {
            let sequence = place.pointer.last_submitted();
            self.model
                .end_access(export.memory, place.stream, true, sequence);
        }
        self.forget_view(export.view);
        if export.lends {
            self.lent[export.memory] = false;
        }
        self.let_go(export.memory, thread);
    }

    pub(super) fn new_image(&mut self, thread: usize, [slot, kind, name, _]: Numbers) {
        let (slot, kind) = (usize::from(slot % IMAGES), kind % IMAGE_KINDS.len() as u16);
        if self.images[slot].is_some() {
            return;
        }
        let Ok(place) = self.consumer(name, 0, thread) else {
            return;
        };
        let of = &IMAGE_KINDS[usize::from(kind)];
        let desc = cvc_image_desc_t {
            struct_size: std::mem::size_of::<cvc_image_desc_t>(),
            device: 0,
            format: match of.dtype {
                "RGB8" => CVC_FORMAT_RGB8,
                _ => CVC_FORMAT_U8,
            },
            width: of.shape[0] as i32,
            height: of.shape[1] as i32,
            row_align: 0,
            base_align: 0,
        };
        let wanted = self.wanted(thread, 0, 0, &Form::of_image(kind), place);
        let (cache, stream) = (self.caches[0], Self::none_or(place));
        let (mut handle, mut id) = (null_mut(), 0);
        let refusal = self.request_refusal(place);
        // SAFETY: a description and a place for the result.
        let made = self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], || unsafe {
            cvc_image_create(cache, &desc, stream, &mut handle)
        });
        if !made {
            return self.not_made(&wanted, refusal);
        }
        // SAFETY: a handle and a place for the result.
        ok(unsafe { cvc_image_get_id(handle, &mut id) });
        let memory = self.obtained(id, &wanted);
        self.images[slot] = Some(Image {
            handle,
            memory,
            kind,
        });
    }

    pub(super) fn release_image(&mut self, thread: usize, slot: u16) {
        if let Some(image) = self.images[usize::from(slot % IMAGES)].take() {
            // SAFETY: a handle, released once.
            self.call(thread, &[], || unsafe { cvc_image_release(image.handle) });
            self.let_go(image.memory, thread);
        }
    }

    pub(super) fn image_view(&mut self, thread: usize, [to, from, ..]: Numbers) {
        if to % TENSORS >= FIRST_TENSOR_OF_DEVICE_1 {
            return;
        }
        let image = self.images[usize::from(from % IMAGES)];
        let (Some(image), None) = (image, self.tensor(to)) else {
            return;
        };
        let mut view = null_mut();
        // SAFETY: a handle and a place for the result.
        if self.call(thread, &[], || unsafe {
            cvc_tensor_from_image(image.handle, &mut view)
        }) {
            let form = Form::of_image_view(image.kind);
            self.add_view(to, view, image.memory, form);
        }
    }
}
