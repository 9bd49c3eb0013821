//! Doubly linked lists of numbered objects. An object is in one list at most, so all lists of a policy share one node for each object.
//! The policy's data of an object lies beside its links, in the same line of the processor's cache.

const NONE: u32 = u32::MAX;

/// Neighbours of an object in its list, and the policy's data of the object.
#[derive(Debug, Clone, Copy)]
struct Node<T> {
    newer: u32,
    older: u32,
    data: T,
}

#[derive(Debug)]
pub(super) struct Links<T = ()> {
    nodes: Vec<Node<T>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
}

impl<T: Copy> Links<T> {
    /// Nodes for objects numbered below `objects`, with this data.
    pub(super) fn new(objects: usize, data: T) -> Self {
        Self { nodes: vec![Node { newer: NONE, older: NONE, data }; objects] }
    }

    /// Adds nodes with this data, for objects numbered below `objects`.
    pub(super) fn grow(&mut self, objects: usize, data: T) {
        self.nodes.resize(objects, Node { newer: NONE, older: NONE, data });
    }

    /// The next newer object in the list; none for the newest.
    #[inline]
    pub(super) fn newer(&self, object: u32) -> Option<u32> {
        some(self.nodes[object as usize].newer)
    }

    #[inline]
    pub(super) fn data(&self, object: u32) -> T {
        self.nodes[object as usize].data
    }

    #[inline]
    pub(super) fn data_mut(&mut self, object: u32) -> &mut T {
        &mut self.nodes[object as usize].data
    }

    /// Reads an object's node, to bring it into the processor's cache; the value has no meaning.
    #[inline]
    pub(super) fn prefetch(&self, object: u32) -> u64 {
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
    pub(super) fn move_to_newest<T>(&mut self, links: &mut Links<T>, object: u32) {
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
