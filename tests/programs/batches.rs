//! The steps on batches of images and of tensors: their members are not reused while they hold them.

use super::c_interface::*;
use super::model::MemoryId;
use super::program::*;
use super::run::*;
use super::slots::*;
use std::collections::BTreeSet;
use std::ptr::null_mut;

type Numbers = [u16; 4];

impl Runner {
    fn batch_form(capacity: i32) -> Form {
        Form {
            class: 100 + capacity as u16,
            shape: 0,
            bytes: batch_bytes(capacity),
            slack: 0,
            extents: [0; 4],
        }
    }

    fn tensor_batch_form(capacity: i32) -> Form {
        Form {
            class: 300 + capacity as u16,
            bytes: tensor_batch_bytes(capacity),
            ..Self::batch_form(capacity)
        }
    }

    /// A batch from the default cache, as `create` makes it there.
    fn obtain_batch<T>(
        &mut self,
        thread: usize,
        form: &Form,
        name: u16,
        create: impl FnOnce(cvc_cache_t, cvc_stream_t, &mut *mut T) -> i32,
        id_of: fn(*mut T) -> u64,
    ) -> Option<(*mut T, MemoryId)> {
        let place = self.consumer(name, 0, thread).ok()?;
        let wanted = self.wanted(thread, 0, 0, form, place);
        let (cache, stream, mut handle) = (self.caches[0], Self::none_or(place), null_mut());
        let make = || create(cache, stream, &mut handle);
        let refusal = self.request_refusal(place);
        if !self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], make) {
            self.not_made(&wanted, refusal);
            return None;
        }
        let memory = self.obtained(id_of(handle), &wanted);
        Some((handle, memory))
    }

    pub(super) fn new_batch(&mut self, thread: usize, [slot, capacity, name, _]: Numbers) {
        let slot = usize::from(slot % BATCHES);
        let capacity = CAPACITIES[usize::from(capacity) % CAPACITIES.len()];
        if self.batches[slot].is_some() {
            return;
        }
        let form = Self::batch_form(capacity);
        // SAFETY: a place for the result.
        let create = |cache, stream, handle: &mut cvc_image_batch_t| unsafe {
            cvc_image_batch_create(cache, 0, capacity, stream, handle)
        };
        let made = self.obtain_batch(thread, &form, name, create, Self::batch_id);
        self.batches[slot] = made.map(|(handle, memory)| Batch {
            handle,
            memory,
            capacity,
            images: Vec::new(),
        });
    }

    fn batch_id(handle: cvc_image_batch_t) -> u64 {
        let mut id = 0;
        // SAFETY: a handle and a place for the result.
        ok(unsafe { cvc_image_batch_get_id(handle, &mut id) });
        id
    }

    pub(super) fn push(&mut self, thread: usize, [slot, image, ..]: Numbers) {
        let image = self.images[usize::from(image % IMAGES)];
        let slot = usize::from(slot % BATCHES);
        let (Some(image), Some(batch)) = (image, &self.batches[slot]) else {
            return;
        };
        if batch.images.len() as i32 >= batch.capacity {
            return;
        }
        let (handle, images) = (batch.handle, [image.handle]);
        // SAFETY: handles.
        let pushed = self.call(thread, &[], || unsafe {
            cvc_image_batch_push(handle, images.as_ptr(), 1)
        });
        if let (true, Some(batch)) = (pushed, &mut self.batches[slot]) {
            batch.images.push((image.memory, image.kind));
            self.references[image.memory] += 1;
        }
    }

    pub(super) fn release_batch(&mut self, thread: usize, slot: u16) {
        if let Some(batch) = self.batches[usize::from(slot % BATCHES)].take() {
            // SAFETY: a handle, released once.
            self.call(thread, &[], || unsafe {
                cvc_image_batch_release(batch.handle)
            });
            for (image, _) in batch.images {
                self.let_go(image, thread);
            }
            self.let_go(batch.memory, thread);
        }
    }

    /// Each image by its code, into a batch from the cache: the batch first, then image by image.
    pub(super) fn flip_batch(&mut self, thread: usize, [from, to, name, codes]: Numbers) {
        let to = usize::from(to % BATCHES);
        let source = self.batches[usize::from(from % BATCHES)].clone();
        let codes = self
            .usable(codes)
            .filter(|t| t.form.shape == CODES && self.device_of(t) == 0);
        let (Some(source), Some(codes), None) = (source, codes, &self.batches[to]) else {
            return;
        };
        // After a fault the capacities of several new objects could not be told.
        let lent = source.images.iter().any(|(image, _)| self.lent[*image]);
        if lent || self.doubtful {
            return;
        }
        let Some(place) = self.stream(name, 0, thread) else {
            return;
        };
        let mut handle = null_mut();
        let images = source.images.iter().map(|(image, _)| (*image, false));
        let read: Vec<_> = [(source.memory, false), (codes.memory, false)]
            .into_iter()
            .chain(images)
            .collect();
        let refusal = self.refusal_of(place, &read);
        // SAFETY: handles and a place for the result.
        let made = self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], || unsafe {
            cvc_op_flip_var_shape_new(place.handle, source.handle, codes.handle, &mut handle)
        });
        let form = Self::batch_form(source.capacity);
        let wanted = self.wanted(thread, 0, 0, &form, Some(place));
        if !made {
            // Some of the images may have been made: what they took is not followed.
            if self.last_status == CVC_STATUS_OUT_OF_MEMORY {
                self.model.exact = false;
                self.unsure = !self.fault_was_hit;
            }
            return self.not_made(&wanted, refusal);
        }
        let memory = self.obtained(Self::batch_id(handle), &wanted);
        let mut images = Vec::new();
        let mut accesses = vec![
            (source.memory, false),
            (memory, true),
            (codes.memory, false),
        ];
        let values = self.values[codes.memory].clone();
        for (place_in_batch, (image, kind)) in source.images.iter().enumerate() {
            let form = Form::of_image(*kind);
            let wanted = self.wanted(thread, 0, 0, &form, Some(place));
            let (mut item, mut id) = (null_mut(), 0);
            // SAFETY: handles and places for results; the reference goes at once.
            unsafe {
                ok(cvc_image_batch_get(
                    handle,
                    place_in_batch as i32,
                    &mut item,
                ));
                ok(cvc_image_get_id(item, &mut id));
                ok(cvc_image_release(item));
            }
            let made = self.obtained(id, &wanted);
            accesses.extend([(*image, false), (made, true)]);
            let code = values.as_ref().map(|codes| {
                let bytes = &codes[place_in_batch * 4..][..4];
                i32::from_le_bytes(bytes.try_into().expect("four bytes"))
            });
            let value = self.values[*image].as_ref().zip(code);
            self.values[made] = value.map(|(value, code)| flipped(value, form.extents, code));
            images.push((made, *kind));
        }
        if !images.is_empty() {
            self.submitted(place, thread, &accesses);
        }
        self.batches[to] = Some(Batch {
            handle,
            memory,
            capacity: source.capacity,
            images,
        });
    }

    fn tensor_batch_id(handle: cvc_tensor_batch_t) -> u64 {
        let mut id = 0;
        // SAFETY: a handle and a place for the result.
        ok(unsafe { cvc_tensor_batch_get_id(handle, &mut id) });
        id
    }

    fn tensor_batch(&self, slot: u16) -> Option<&TensorBatch> {
        self.tensor_batches[usize::from(slot % BATCHES)].as_ref()
    }

    pub(super) fn new_tensor_batch(&mut self, thread: usize, [slot, capacity, name, _]: Numbers) {
        let slot = usize::from(slot % BATCHES);
        let capacity = CAPACITIES[usize::from(capacity) % CAPACITIES.len()];
        if self.tensor_batches[slot].is_some() {
            return;
        }
        let form = Self::tensor_batch_form(capacity);
        // SAFETY: a place for the result.
        let create = |cache, stream, handle: &mut cvc_tensor_batch_t| unsafe {
            cvc_tensor_batch_create(cache, 0, capacity, stream, handle)
        };
        let made = self.obtain_batch(thread, &form, name, create, Self::tensor_batch_id);
        self.tensor_batches[slot] = made.map(|(handle, memory)| TensorBatch {
            handle,
            memory,
            capacity,
            tensors: Vec::new(),
            records: None,
        });
    }

    /// A tensor may join these: one class has one rank, dtype and layout.
    fn may_join(&self, tensor: &Tensor, others: &[Tensor]) -> bool {
        let alike = |other: &Tensor| other.form.class == tensor.form.class;
        self.device_of(tensor) == 0 && others.iter().all(alike)
    }

    /// A call that changes the members of a batch. It succeeds where that is `possible`, and changes nothing else.
    fn change_members(&mut self, thread: usize, possible: bool, call: impl FnOnce() -> i32) {
        const REFUSALS: [i32; 7] = [
            CVC_STATUS_CAPACITY_EXCEEDED,
            CVC_STATUS_CAPACITY_UNDERFLOW,
            CVC_STATUS_DEVICE_MISMATCH,
            CVC_STATUS_DTYPE_MISMATCH,
            CVC_STATUS_INVALID_INDEX,
            CVC_STATUS_INVALID_LAYOUT,
            CVC_STATUS_INVALID_RANK,
        ];
        let done = self.call(thread, &REFUSALS, call);
        let status = self.last_status;
        assert_eq!(done, possible, "status {status} of a call on a batch");
        self.tally.batch_calls_refused += u64::from(!done);
    }

    pub(super) fn push_tensor(&mut self, thread: usize, [slot, tensor, ..]: Numbers) {
        let (Some(tensor), Some(batch)) = (self.tensor(tensor), self.tensor_batch(slot)) else {
            return;
        };
        let has_room = (batch.tensors.len() as i32) < batch.capacity;
        let possible = has_room && self.may_join(&tensor, &batch.tensors);
        let (handle, tensors) = (batch.handle, [tensor.handle]);
        // SAFETY: handles.
        self.change_members(thread, possible, || unsafe {
            cvc_tensor_batch_push(handle, tensors.as_ptr(), 1)
        });
        if let Some(batch) = &mut self.tensor_batches[usize::from(slot % BATCHES)] {
            if possible {
                batch.tensors.push(tensor);
                self.references[tensor.memory] += 1;
            }
        }
    }

    /// In the place of another.
    pub(super) fn set_tensor(&mut self, thread: usize, [slot, place, tensor, _]: Numbers) {
        let (Some(tensor), Some(batch)) = (self.tensor(tensor), self.tensor_batch(slot)) else {
            return;
        };
        let place = usize::from(place % CAPACITIES[1] as u16);
        let mut others = batch.tensors.clone();
        let replaced = (place < others.len()).then(|| others.remove(place));
        let possible = replaced.is_some() && self.may_join(&tensor, &others);
        let handle = batch.handle;
        // SAFETY: handles.
        self.change_members(thread, possible, || unsafe {
            cvc_tensor_batch_set(handle, place as i32, tensor.handle)
        });
        let batch = &mut self.tensor_batches[usize::from(slot % BATCHES)];
        if let (Some(batch), Some(replaced), true) = (batch, replaced, possible) {
            batch.tensors[place] = tensor;
            self.references[tensor.memory] += 1;
            self.let_tensors_go(thread, vec![replaced]);
        }
    }

    /// A member as a tensor of its own again.
    pub(super) fn get_tensor(&mut self, thread: usize, [slot, place, to, _]: Numbers) {
        let Some(batch) = self.tensor_batch(slot) else {
            return;
        };
        let place = usize::from(place % CAPACITIES[1] as u16);
        let member = batch.tensors.get(place).copied();
        if to % TENSORS >= FIRST_TENSOR_OF_DEVICE_1 || self.tensor(to).is_some() {
            return;
        }
        let (batch, mut handle) = (batch.handle, null_mut());
        // SAFETY: a handle and a place for the result.
        self.change_members(thread, member.is_some(), || unsafe {
            cvc_tensor_batch_get(batch, place as i32, &mut handle)
        });
        if let Some(member) = member {
            self.references[member.memory] += 1;
            self.tensors[usize::from(to % TENSORS)] = Some(Tensor { handle, ..member });
        }
    }

    pub(super) fn pop_tensors(&mut self, thread: usize, [slot, count, ..]: Numbers) {
        let Some(batch) = self.tensor_batch(slot) else {
            return;
        };
        let count = usize::from(count % 3);
        let rest = batch.tensors.len().checked_sub(count);
        let handle = batch.handle;
        // SAFETY: a handle.
        self.change_members(thread, rest.is_some(), || unsafe {
            cvc_tensor_batch_pop(handle, count as i32)
        });
        if let Some(rest) = rest {
            self.keep_members(thread, slot, rest);
        }
    }

    pub(super) fn clear_tensors(&mut self, thread: usize, slot: u16) {
        let Some(batch) = self.tensor_batch(slot) else {
            return;
        };
        let handle = batch.handle;
        // SAFETY: a handle.
        self.change_members(thread, true, || unsafe { cvc_tensor_batch_clear(handle) });
        self.keep_members(thread, slot, 0);
    }

    /// The batch has lost all but the first ones.
    fn keep_members(&mut self, thread: usize, slot: u16, count: usize) {
        if let Some(batch) = &mut self.tensor_batches[usize::from(slot % BATCHES)] {
            let removed = batch.tensors.split_off(count);
            self.let_tensors_go(thread, removed);
        }
    }

    fn let_tensors_go(&mut self, thread: usize, tensors: Vec<Tensor>) {
        // A batch may have held the same view twice.
        let views: BTreeSet<u64> = tensors.iter().filter_map(|tensor| tensor.view).collect();
        for view in views {
            self.forget_view(Some(view));
        }
        for tensor in tensors {
            let is_last = self.references[tensor.memory] == 1;
            self.tally.last_held_by_batches += u64::from(is_last);
            self.let_go(tensor.memory, thread);
        }
    }

    /// Work that writes the batch's own memory: a record of each tensor.
    pub(super) fn write_records(&mut self, thread: usize, [slot, name, ..]: Numbers) {
        let Some((handle, memory)) = self.tensor_batch(slot).map(|one| (one.handle, one.memory))
        else {
            return;
        };
        let Some(place) = self.stream(name, 0, thread) else {
            return;
        };
        // SAFETY: plain numbers and pointers.
        let mut data: cvc_tensor_batch_data_t = unsafe { std::mem::zeroed() };
        data.struct_size = std::mem::size_of_val(&data);
        let count = self
            .tensor_batch(slot)
            .map_or(0, |batch| batch.tensors.len());
        // SAFETY: handles and a place for the result.
        let queued = self.submit(thread, place, &[(memory, true)], || unsafe {
            cvc_tensor_batch_get_data(handle, place.handle, &mut data)
        });
        let words = (0..count as i32).flat_map(|index| Self::record_of(handle, index));
        let records = (data.records.addr() as u64, words.collect());
        let batch = &mut self.tensor_batches[usize::from(slot % BATCHES)];
        if let (Some(batch), Some(whole)) = (batch, queued) {
            batch.records = whole.then_some(records);
        }
    }

    /// What device memory says of a member.
    fn record_of(batch: cvc_tensor_batch_t, index: i32) -> Vec<u64> {
        let mut tensor = null_mut();
        // SAFETY: plain numbers and pointers.
        let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
        data.struct_size = std::mem::size_of_val(&data);
        // SAFETY: handles and places for results; the reference goes at once.
        unsafe {
            ok(cvc_tensor_batch_get(batch, index, &mut tensor));
            ok(cvc_tensor_get_data(tensor, &mut data));
            ok(cvc_tensor_release(tensor));
        }
        let mut words = vec![data.data.addr() as u64];
        words.push(data.rank as u64 | (data.dtype as u64) << 32);
        words.extend(data.shape.map(|extent| extent as u64));
        words.extend(data.strides.map(|stride| stride as u64));
        words
    }

    /// All work is done: the records are what they were when they were written.
    pub(super) fn read_records(&self) {
        for (start, words) in self
            .tensor_batches
            .iter()
            .flatten()
            .filter_map(|b| b.records.as_ref())
        {
            let start: *const u64 = std::ptr::with_exposed_provenance(*start as usize);
            for (place, word) in words.iter().enumerate() {
                // SAFETY: memory of a batch that lives, which the host backend has in this process.
                let now = unsafe { start.add(place).read() };
                assert_eq!(now, *word, "word {place} of a batch's records");
            }
        }
    }

    pub(super) fn release_tensor_batch(&mut self, thread: usize, slot: u16) {
        if let Some(batch) = self.tensor_batches[usize::from(slot % BATCHES)].take() {
            // SAFETY: a handle, released once.
            self.call(thread, &[], || unsafe {
                cvc_tensor_batch_release(batch.handle)
            });
            self.let_tensors_go(thread, batch.tensors);
            self.let_go(batch.memory, thread);
        }
    }
}
