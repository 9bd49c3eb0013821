//! Doubly linked lists of numbered objects. An object is in one list at most, so all lists of a policy share one pair of links
//! for each object.

const NONE: u32 = u32::MAX;

/// The neighbours of every object in its list.
#[derive(Debug)]
pub(super) struct Links {
    newer: Vec<u32>,
    older: Vec<u32>,
}

/// The ends of one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
}

impl Links {
    pub(super) fn new(objects: usize) -> Self {
        Self { newer: vec![NONE; objects], older: vec![NONE; objects] }
    }

    /// The next newer object in the list; none: it is the newest.
    #[inline]
    pub(super) fn newer(&self, object: u32) -> Option<u32> {
        some(self.newer[object as usize])
    }
}

impl List {
    pub(super) const EMPTY: Self = Self { newest: NONE, oldest: NONE };

    #[inline]
    pub(super) fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    #[inline]
    pub(super) fn push(&mut self, links: &mut Links, object: u32) {
        links.newer[object as usize] = NONE;
        links.older[object as usize] = self.newest;
        match some(self.newest) {
            Some(newest) => links.newer[newest as usize] = object,
            None => self.oldest = object,
        }
        self.newest = object;
    }

    #[inline]
    pub(super) fn remove(&mut self, links: &mut Links, object: u32) {
        let (newer, older) = (links.newer[object as usize], links.older[object as usize]);
        match some(newer) {
            Some(newer) => links.older[newer as usize] = older,
            None => self.newest = older,
        }
        match some(older) {
            Some(older) => links.newer[older as usize] = newer,
            None => self.oldest = newer,
        }
    }

    #[inline]
    pub(super) fn renew(&mut self, links: &mut Links, object: u32) {
        if self.newest != object {
            self.remove(links, object);
            self.push(links, object);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self, links: &mut Links) -> Option<u32> {
        let oldest = self.oldest()?;
        self.remove(links, oldest);
        Some(oldest)
    }
}

#[inline]
fn some(object: u32) -> Option<u32> {
    (object != NONE).then_some(object)
}
