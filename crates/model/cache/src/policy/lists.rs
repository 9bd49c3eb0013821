//! Doubly linked lists of numbered objects. An object is in one list at most, so all lists of a policy share one node for each object,
//! and what the policy knows of the object lies beside its links: in the same line of the processor's cache.

const NONE: u32 = u32::MAX;

/// An object's neighbours in its list, and what its policy knows of it.
#[derive(Debug, Clone, Copy)]
struct Node<T> {
    newer: u32,
    older: u32,
    known: T,
}

/// The nodes of all objects.
#[derive(Debug)]
pub(super) struct Links<T = ()> {
    nodes: Vec<Node<T>>,
}

/// The ends of one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
}

impl<T: Copy> Links<T> {
    /// For objects numbered below `objects`, of which nothing but this is known.
    pub(super) fn new(objects: usize, known: T) -> Self {
        Self { nodes: vec![Node { newer: NONE, older: NONE, known }; objects] }
    }

    /// Makes room for objects numbered below `objects`, of which nothing but this is known.
    pub(super) fn grow(&mut self, objects: usize, known: T) {
        self.nodes.resize(objects, Node { newer: NONE, older: NONE, known });
    }

    /// The next newer object in the list; none: it is the newest.
    #[inline]
    pub(super) fn newer(&self, object: u32) -> Option<u32> {
        some(self.nodes[object as usize].newer)
    }

    /// What is known of an object.
    #[inline]
    pub(super) fn known(&self, object: u32) -> T {
        self.nodes[object as usize].known
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn known_mut(&mut self, object: u32) -> &mut T {
        &mut self.nodes[object as usize].known
    }

    /// Reads an object's node, and returns a number without a meaning.
    #[inline]
    pub(super) fn warm(&self, object: u32) -> u64 {
        self.nodes.get(object as usize).map_or(0, |node| u64::from(node.newer))
    }
}

impl List {
    pub(super) const EMPTY: Self = Self { newest: NONE, oldest: NONE };

    #[inline]
    pub(super) fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    #[inline]
    pub(super) fn push<T>(&mut self, links: &mut Links<T>, object: u32) {
        let node = &mut links.nodes[object as usize];
        (node.newer, node.older) = (NONE, self.newest);
        match some(self.newest) {
            Some(newest) => links.nodes[newest as usize].newer = object,
            None => self.oldest = object,
        }
        self.newest = object;
    }

    #[inline]
    pub(super) fn remove<T>(&mut self, links: &mut Links<T>, object: u32) {
        let Node { newer, older, .. } = &links.nodes[object as usize];
        let (newer, older) = (*newer, *older);
        match some(newer) {
            Some(newer) => links.nodes[newer as usize].older = older,
            None => self.newest = older,
        }
        match some(older) {
            Some(older) => links.nodes[older as usize].newer = newer,
            None => self.oldest = newer,
        }
    }

    #[inline]
    pub(super) fn renew<T>(&mut self, links: &mut Links<T>, object: u32) {
        if self.newest != object {
            self.remove(links, object);
            self.push(links, object);
        }
    }

    #[inline]
    pub(super) fn pop<T>(&mut self, links: &mut Links<T>) -> Option<u32> {
        let oldest = self.oldest()?;
        self.remove(links, oldest);
        Some(oldest)
    }
}

#[inline]
fn some(object: u32) -> Option<u32> {
    (object != NONE).then_some(object)
}
