//! What stands behind a handle: an entry of the cache, a count of references, and what the object is at present.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::batch::{ImageBatchBody, TensorBatchBody};
use super::handle::{self, Handle, ObjectKind};
use super::image_desc::ImageDesc;
use super::tensor_desc::TensorDesc;
use super::word::{References, Word, USERS_MASK};
use crate::cache::{self, Cache, Entry, Hooks};
use crate::error::{Result, Status};
use crate::fail;
use crate::observe::mistake::{self, Mistake};

/// What an object is. Written only while one caller owns the object alone; read-only while it is alive.
pub enum Body {
    Empty,
    /// A handle of a cache.
    Cache,
    Tensor {
        desc: TensorDesc,
        data: u64,
    },
    Image {
        desc: ImageDesc,
        data: u64,
    },
    ImageBatch(ImageBatchBody),
    TensorBatch(TensorBatchBody),
    /// Raw memory.
    Memory,
}

/// `entry` comes first, so that the cache's pointers to entries are pointers to objects.
#[repr(C)]
pub struct Object {
    pub entry: Entry,
    pub(super) word: Word,
    references: References,
    slot: u32,
    id: AtomicU64,
    cache: UnsafeCell<Option<&'static Cache>>,
    /// The object that owns the memory of this view.
    parent: UnsafeCell<Option<ObjectRef>>,
    body: UnsafeCell<Body>,
    /// Neither a view, a wrap nor a batch, and its slot is not worn out: its end is a plain release.
    plain: Cell<bool>,
    /// Held while work on the object is queued: shared by readers, alone by a writer.
    pub submission: RwLock<()>,
}

// SAFETY: `cache`, `parent` and `body` change only while one caller owns the object alone (its references are 0 or just
// became 1 unseen by others); the entry's own fields follow the rules of the cache.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

/// Spare objects, the longest unused first.
struct Spares(VecDeque<NonNull<Object>>);
// SAFETY: a spare object belongs to this list alone.
unsafe impl Send for Spares {}

static SPARES: Mutex<Spares> = Mutex::new(Spares(VecDeque::new()));
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Tells the cache how objects are made. To be called before the first cache is.
pub fn install_hooks() {
    cache::set_hooks(Hooks { take, give });
}

fn take() -> Result<*mut Entry> {
    let spare = SPARES.lock().0.pop_front();
    let object = match spare {
        Some(object) => object.as_ptr(),
        None => handle::new_slot(|slot| {
            Box::into_raw(Box::new(Object {
                entry: Entry::new(),
                word: Word::new(),
                references: References::none(),
                slot,
                id: AtomicU64::new(0),
                cache: UnsafeCell::new(None),
                parent: UnsafeCell::new(None),
                body: UnsafeCell::new(Body::Empty),
                plain: Cell::new(false),
                submission: RwLock::new(()),
            }))
        })?,
    };
    // SAFETY: objects are never freed, and nobody else has this one.
    unsafe {
        (*object)
            .id
            .store(NEXT_ID.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed)
    };
    Ok(object.cast())
}

fn give(entry: *mut Entry) {
    let object: *mut Object = entry.cast();
    // SAFETY: the cache gives entries that nobody else has; each is the head of an object.
    unsafe {
        *(*object).body.get() = Body::Empty;
        if (*object).word.is_worn_out() {
            // Its next handle would repeat an old one: the slot stays closed.
            return;
        }
        SPARES.lock().0.push_back(NonNull::new_unchecked(object));
    }
}

impl Object {
    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    pub fn device(&self) -> i32 {
        match self.body() {
            Body::Tensor { desc, .. } => desc.device,
            Body::Image { desc, .. } => desc.device,
            Body::ImageBatch(_)
            | Body::TensorBatch(_)
            | Body::Memory
            | Body::Cache
            | Body::Empty => self.entry.device(),
        }
    }

    pub fn cache(&self) -> &'static Cache {
        // SAFETY: set before the object was opened.
        match unsafe { *self.cache.get() } {
            Some(cache) => cache,
            None => unreachable!("a live object has a cache"),
        }
    }

    pub fn body(&self) -> &Body {
        // SAFETY: read-only while the object is alive.
        unsafe { &*self.body.get() }
    }

    /// The object whose memory and accesses this one shares: itself, unless it is a view.
    pub fn root(&self) -> &Object {
        // SAFETY: set before the object was opened.
        match unsafe { &*self.parent.get() } {
            Some(_) if mistake::is(Mistake::ForgetAlias) => self,
            Some(parent) => parent,
            None => self,
        }
    }

    pub fn is_view(&self) -> bool {
        !std::ptr::eq(self.root(), self)
    }

    pub(super) fn had(&self, generation: u64) -> bool {
        self.word.had(generation)
    }

    /// A handle for one more user reference.
    pub fn share(&self) -> Result<Handle> {
        let Some((named, first)) = self.word.reopen() else {
            fail!(
                Status::CapacityExceeded,
                "the object has {USERS_MASK} references, the most there can be"
            );
        };
        if first {
            // All users together hold one reference.
            self.references.add();
        }
        Ok(named | u64::from(self.slot))
    }

    /// Gives up one reference; the last one ends the object.
    ///
    /// # Safety
    /// The caller has that reference.
    #[inline(always)]
    pub(super) unsafe fn unref(&self) {
        if self.references.remove() {
            // SAFETY: the last reference is gone: the object is this caller's alone.
            unsafe { end(std::ptr::from_ref(self).cast_mut()) };
        }
    }
}

/// Makes an object that the caller owns alone a live one with one user reference.
///
/// # Safety
/// `entry` came from the cache as the caller's alone.
#[inline(always)]
pub unsafe fn open(entry: *mut Entry, cache: &'static Cache, kind: ObjectKind) -> Handle {
    let object: *mut Object = entry.cast();
    // SAFETY: the caller's promise.
    unsafe {
        *(*object).cache.get() = Some(cache);
        (*object).plain.set(
            matches!(
                *(*object).body.get(),
                Body::Tensor { .. } | Body::Image { .. } | Body::Memory
            ) && (*(*object).parent.get()).is_none()
                && !(*entry).is_wrap(),
        );
        Object::reopen_plain(object, kind)
    }
}

impl Object {
    /// Like `open`, for an object that is as it was when it was last opened.
    ///
    /// # Safety
    /// As `open`.
    #[inline(always)]
    pub unsafe fn reopen_plain(object: *mut Object, kind: ObjectKind) -> Handle {
        // SAFETY: the caller's promise.
        unsafe {
            let named = (*object).word.open(kind as u64);
            if (*object).word.is_worn_out() {
                (*object).plain.set(false);
            }
            (*object).references.begin();
            named | u64::from((*object).slot)
        }
    }
}

/// Writes what an object is.
///
/// # Safety
/// As `open`, and before it.
pub unsafe fn set_body(entry: *mut Entry, body: Body, parent: Option<ObjectRef>) {
    let object: *mut Object = entry.cast();
    // SAFETY: the caller's promise.
    unsafe {
        *(*object).body.get() = body;
        *(*object).parent.get() = parent;
    }
}

/// A view of `parent`'s root: a live object that owns no memory and keeps the root.
pub fn open_view(parent: &ObjectRef, body: Body, kind: ObjectKind) -> Result<Handle> {
    let root = match ObjectRef::try_new(parent.root()) {
        Some(root) => root,
        None => unreachable!("a live view keeps its root alive"),
    };
    let cache = root.cache();
    let views = &cache.device(root.device())?.views;
    let entry = take()?;
    views.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a new object is this caller's alone.
    unsafe {
        let held = mistake::is(Mistake::ViewHoldsNothing).then_some(root.0);
        set_body(entry, body, Some(root));
        let view = open(entry, cache, kind);
        if let Some(root) = held {
            root.as_ref().unref();
        }
        Ok(view)
    }
}

/// A new cache and its handle; with the last reference the cache is closed.
pub fn create_cache(initial_limit: Option<u64>) -> Result<(&'static Cache, Handle)> {
    let entry = take()?;
    let cache = Cache::create(initial_limit);
    // SAFETY: a new object is this caller's alone.
    unsafe {
        set_body(entry, Body::Cache, None);
        Ok((cache, open(entry, cache, ObjectKind::Cache)))
    }
}

/// # Safety
/// `object` is the caller's alone.
#[inline(always)]
unsafe fn end(object: *mut Object) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*object).plain.get() {
            cache::release((*object).cache(), object.cast());
        } else {
            end_other(object);
        }
    }
}

#[cold]
unsafe fn end_other(object: *mut Object) {
    // SAFETY: as in `end`.
    unsafe {
        let cache = (*object).cache();
        if (*(*object).parent.get()).is_some() {
            end_view(object, cache);
            return;
        }
        match &*(*object).body.get() {
            Body::Cache => {
                cache::close(cache);
                give(object.cast());
                return;
            }
            Body::ImageBatch(batch) => batch.drop_items(),
            Body::TensorBatch(batch) => batch.drop_items(),
            _ => {}
        }
        let entry: *mut Entry = object.cast();
        if (*entry).is_wrap() {
            cache::release_wrap(cache, entry, !(*object).word.is_worn_out());
        } else if (*object).word.is_worn_out() {
            cache::discard(cache, entry);
        } else {
            cache::release(cache, entry);
        }
    }
}

#[cold]
unsafe fn end_view(object: *mut Object, cache: &'static Cache) {
    // SAFETY: as in `end`.
    unsafe {
        let parent = (*(*object).parent.get()).take();
        if let Some(Ok(device)) = parent.as_ref().map(|root| cache.device(root.device())) {
            device.views.fetch_sub(1, Ordering::Relaxed);
        }
        give(object.cast());
        if mistake::is(Mistake::ViewHoldsNothing) {
            std::mem::forget(parent);
            return;
        }
        drop(parent);
    }
}

/// A reference to a live object, held inside the library.
pub struct ObjectRef(NonNull<Object>);

// SAFETY: objects are Sync, and the count is atomic.
unsafe impl Send for ObjectRef {}
// SAFETY: as above.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// `None` where the object's last reference is gone.
    #[inline]
    pub(super) fn try_new(object: &Object) -> Option<ObjectRef> {
        let added = object.references.try_add();
        added.then(|| ObjectRef(NonNull::from(object)))
    }
}

impl Deref for ObjectRef {
    type Target = Object;

    fn deref(&self) -> &Object {
        // SAFETY: objects are never freed, and this one is alive while the reference is.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ObjectRef {
    fn clone(&self) -> ObjectRef {
        self.references.add();
        ObjectRef(self.0)
    }
}

impl Drop for ObjectRef {
    fn drop(&mut self) {
        // SAFETY: this reference is given up here and nowhere else.
        unsafe { self.unref() };
    }
}
