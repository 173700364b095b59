//! Which streams to ask the driver about: gathered under a caller's lock, asked once each after it was let go.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::access::Accesses;
use super::stream::Stream;

/// How much one call looks at.
#[derive(Clone, Copy)]
pub struct Looks {
    /// Entries of a list, from its front.
    pub entries: usize,
    /// So many streams are asked about, and of the entries that are not known to be done so many go to the back of a list.
    pub open: usize,
}

impl Looks {
    /// As much as a submission may cost, however much is pending.
    pub const FEW: Looks = Looks {
        entries: 64,
        open: 8,
    };
    pub const ALL: Looks = Looks {
        entries: usize::MAX,
        open: usize::MAX,
    };

    /// Takes out of a list what is done. Those that were asked about go to the back, so that all have their turn.
    pub fn take_done<T>(
        self,
        list: &mut VecDeque<T>,
        mut is_done: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        let looked_at = list.drain(..list.len().min(self.entries));
        let (done, mut open): (Vec<T>, Vec<T>) = looked_at.partition(&mut is_done);
        let next = open.split_off(open.len().min(self.open));
        list.extend(open);
        for item in next.into_iter().rev() {
            list.push_front(item);
        }
        done
    }
}

/// The streams that some accesses wait for.
pub struct Polls {
    looks: Looks,
    /// By address, each once.
    streams: SmallVec<[&'static Stream; 8]>,
}

impl Polls {
    pub fn new(looks: Looks) -> Polls {
        Polls {
            looks,
            streams: SmallVec::new(),
        }
    }

    /// Notes the streams of the first entries of a list, as far as these are not known to be done, up to the number of streams
    /// that are asked about.
    pub fn note<'a>(&mut self, entries: impl Iterator<Item = &'a Accesses>) {
        let open = entries
            .take(self.looks.entries)
            .flat_map(Accesses::iter)
            .filter(|access| !access.is_done());
        for access in open {
            if self.streams.len() >= self.looks.open {
                break;
            }
            let address = std::ptr::from_ref(access.stream);
            let place = self
                .streams
                .binary_search_by_key(&address, |known| std::ptr::from_ref(*known));
            if let Err(place) = place {
                self.streams.insert(place, access.stream);
            }
        }
    }

    /// Asks about each stream; what that shows, `Accesses::is_done` then says without asking.
    pub fn ask(&self) {
        for stream in &self.streams {
            stream.poll();
        }
    }
}
