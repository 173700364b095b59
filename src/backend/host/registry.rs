//! Handles: numbers that are looked up, never dereferenced, and never given out twice in a process.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::RwLock;

/// What a handle or a stream's id names, in its lowest four bits: one kind is never taken for another.
#[derive(Clone, Copy)]
pub enum Tag {
    LegacyStream = 1,
    PerThreadStream = 2,
    Event = 4,
    Stream = 8,
    Latch = 12,
}

const TAG_BITS: u32 = 4;

/// A new handle: never 0, 1, 2 or all ones.
pub fn new_handle(tag: Tag) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    tagged(NEXT.fetch_add(1, Ordering::Relaxed), tag)
}

pub fn tagged(number: u64, tag: Tag) -> u64 {
    number << TAG_BITS | tag as u64
}

pub fn number_of(handle: u64) -> u64 {
    handle >> TAG_BITS
}

const SHARD_BITS: u32 = 4;

type Shard<T> = RwLock<HashMap<u64, Arc<T>, BuildHasherDefault<MixHasher>>>;

/// What handles name.
pub struct Registry<T> {
    shards: [Shard<T>; 1 << SHARD_BITS],
}

impl<T> Registry<T> {
    pub fn new() -> Registry<T> {
        Registry {
            shards: std::array::from_fn(|_| RwLock::new(HashMap::default())),
        }
    }

    fn shard(&self, handle: u64) -> &Shard<T> {
        // Other bits of the product than those that the map uses.
        &self.shards[(mix(handle) >> 24) as usize % self.shards.len()]
    }

    pub fn insert(&self, handle: u64, value: Arc<T>) {
        self.shard(handle).write().insert(handle, value);
    }

    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.shard(handle).read().get(&handle).cloned()
    }

    /// `get` for a look that needs no share.
    pub fn with<R>(&self, handle: u64, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.shard(handle)
            .read()
            .get(&handle)
            .map(|value| look(value))
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.shard(handle).write().remove(&handle)
    }

    /// `remove` where `wanted`; `Err` gives why not, and `None` is an unknown handle.
    pub fn remove_if<E>(
        &self,
        handle: u64,
        wanted: impl FnOnce(&T) -> Result<(), E>,
    ) -> Result<Option<Arc<T>>, E> {
        let mut shard = self.shard(handle).write();
        match shard.get(&handle) {
            None => Ok(None),
            Some(value) => {
                wanted(value)?;
                Ok(shard.remove(&handle))
            }
        }
    }

    /// All that are wanted, the oldest handle first.
    pub fn select(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.read();
            let wanted = shard.iter().filter(|(_, value)| wanted(value));
            found.extend(wanted.map(|(handle, value)| (*handle, Arc::clone(value))));
        }
        found.sort_unstable_by_key(|(handle, _)| *handle);
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// Forgets what nobody else holds and `idle` lets go. Whoever has it from `get` holds it.
    pub fn forget_unheld(&self, idle: impl Fn(&T) -> bool) {
        for shard in &self.shards {
            let held = |value: &Arc<T>| Arc::strong_count(value) > 1 || !idle(value);
            shard.write().retain(|_, value| held(value));
        }
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }
}

fn mix(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// Handles count up; one multiplication spreads them, the same in every process.
#[derive(Default)]
pub struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_until_removed_and_spread_over_the_shards() {
        let registry = Registry::new();
        let handles: Vec<u64> = (0..1600).map(|_| new_handle(Tag::Event)).collect();
        for handle in &handles {
            registry.insert(*handle, Arc::new(*handle));
        }
        for shard in &registry.shards {
            let length = shard.read().len();
            assert!((50..=200).contains(&length), "{length} of 1600 in a shard");
        }
        assert_eq!(registry.len(), 1600);
        assert!(handles.iter().all(|h| *registry.get(*h).unwrap() == *h));
        let is_odd = |value: &u64| value >> 4 & 1 == 1;
        let odd = registry.select(is_odd);
        // Other tests may have taken handles between these.
        assert_eq!(
            odd.len(),
            handles.iter().filter(|value| is_odd(value)).count()
        );
        assert!(odd.windows(2).all(|pair| pair[0] < pair[1]));
        let kept = registry.remove_if(handles[0], |_| Err(()));
        assert!(kept.is_err() && registry.get(handles[0]).is_some());
        assert!(registry.remove(handles[0]).is_some());
        assert!(registry.remove(handles[0]).is_none());
        assert!(registry.with(handles[0], |_| ()).is_none());
    }

    #[test]
    fn what_is_held_or_busy_is_not_forgotten() {
        let registry = Registry::new();
        let held = Arc::new(1);
        registry.insert(16, Arc::clone(&held));
        registry.insert(32, Arc::new(2));
        registry.insert(48, Arc::new(3));
        registry.forget_unheld(|value| *value != 3);
        let left = registry.select(|_| true);
        assert_eq!(left.iter().map(|v| **v).collect::<Vec<_>>(), [1, 3]);
    }
}
