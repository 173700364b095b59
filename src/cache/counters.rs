//! What one index counts of one device.

/// Counts of one device in one index. All are exact while the index's lock is held and no remote release waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Entries that own memory, live and held.
    pub total_count: u64,
    pub total_bytes: u64,
    /// The indexed part of them: some of the live ones and all of the held ones.
    pub indexed_count: u64,
    pub indexed_bytes: u64,
    /// Released and kept.
    pub held_count: u64,
    pub held_bytes: u64,
    /// Live wraps of foreign memory, and the part of them that is indexed.
    pub wrapped_count: u64,
    pub indexed_wrapped: u64,
    pub hits_exact: u64,
    pub hits_fit: u64,
    pub hits_pending: u64,
    pub misses: u64,
    pub evictions: u64,
}

impl Counters {
    /// Takes out what tells of the past, to be counted elsewhere from now on.
    pub fn take_history(&mut self) -> Counters {
        let history = Counters {
            hits_exact: self.hits_exact,
            hits_fit: self.hits_fit,
            hits_pending: self.hits_pending,
            misses: self.misses,
            evictions: self.evictions,
            ..Counters::default()
        };
        self.hits_exact = 0;
        self.hits_fit = 0;
        self.hits_pending = 0;
        self.misses = 0;
        self.evictions = 0;
        history
    }

    pub fn add(&mut self, other: &Counters) {
        self.total_count += other.total_count;
        self.total_bytes += other.total_bytes;
        self.indexed_count += other.indexed_count;
        self.indexed_bytes += other.indexed_bytes;
        self.held_count += other.held_count;
        self.held_bytes += other.held_bytes;
        self.wrapped_count += other.wrapped_count;
        self.indexed_wrapped += other.indexed_wrapped;
        self.hits_exact += other.hits_exact;
        self.hits_fit += other.hits_fit;
        self.hits_pending += other.hits_pending;
        self.misses += other.misses;
        self.evictions += other.evictions;
    }
}
