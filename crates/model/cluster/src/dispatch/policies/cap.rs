//! CAP: a round robin of its own for every class of requests, each class starting at another server.
//!
//! Requests are told apart by the resources that they strain (static, dynamic, disk…). Each class takes turns over its own
//! list of servers, so every server gets the same share of every class, whatever the mix does; nothing is known of servers,
//! and nothing needs tuning but the classes. Lists start at different servers, so that classes of few requests do not all
//! begin at the same one. Unless lists are given, class c starts c places before the first server: with servers 0 1 2 3
//! that is 0 1 2 3, 3 0 1 2, 2 3 0 1, which are the document's own maps. Source: E. Casalicchio and M. Colajanni,
//! "A Client-Aware Dispatching Algorithm for Web Clusters Providing Multiple Services", WWW10 (2001); maps and turns as in
//! R. M. Jones's switch (Portland State University, 2002), whose three classes are disk (`load.cgi`), dynamic (other `.cgi`,
//! and files of 500 KB and 5 MB) and static.

use crate::dispatch::members::{Cursor, MemberIndex, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{ClassId, Policy, Request, ServerId};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapSettings {
    /// Servers by class, in the order of their turns; a class without a list has all servers.
    pub lists: Vec<Option<Vec<ServerId>>>,
}

#[derive(Debug, Clone)]
pub struct Cap {
    settings: CapSettings,
    members: Members,
    /// By class.
    turns: Vec<ClassTurn>,
}

/// Whose turn it is in a class.
#[derive(Debug, Clone, Default)]
struct ClassTurn {
    /// Among all servers; none before the first request.
    cursor: Option<Cursor>,
    /// Position in the list of the class, which stays as it is when servers come and go.
    list_position: usize,
}

impl Cap {
    pub fn new(settings: CapSettings) -> Self {
        Self { settings, members: Members::default(), turns: Vec::new() }
    }
}

impl Policy for Cap {
    fn name(&self) -> &'static str {
        "cap"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.members.insert(server, weight);
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
    }

    fn choose(&mut self, request: &Request, _now: Moment) -> Option<ServerId> {
        let len = self.members.len();
        if len == 0 {
            return None;
        }
        let class = request.class.index();
        if self.turns.len() <= class {
            self.turns.resize(class + 1, ClassTurn::default());
        }
        let ClassTurn { cursor, list_position } = &mut self.turns[class];
        let Some(list) = list(&self.settings, request.class) else {
            let first = self.members.at(MemberIndex((len - class % len) % len));
            return self.members.take_turn(cursor.get_or_insert(Cursor::before(first)));
        };
        let mut positions = (*list_position..list.len()).chain(0..*list_position);
        let position = positions.find(|position| self.members.contains(list[*position]))?;
        *list_position = (position + 1) % list.len();
        Some(list[position])
    }
}

fn list(settings: &CapSettings, class: ClassId) -> Option<&[ServerId]> {
    settings.lists.get(class.index())?.as_deref().filter(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{class, names, up};
    use super::*;

    #[test]
    fn the_documents_maps_come_out() {
        let mut policy = Cap::new(CapSettings::default());
        up(&mut policy, 4);
        assert_eq!(names(&mut policy, &class(0), 5), [0, 1, 2, 3, 0], "static");
        assert_eq!(names(&mut policy, &class(1), 5), [3, 0, 1, 2, 3], "dynamic");
        assert_eq!(names(&mut policy, &class(2), 5), [2, 3, 0, 1, 2], "disk");
    }

    #[test]
    fn classes_do_not_disturb_each_others_turns() {
        let mut policy = Cap::new(CapSettings::default());
        up(&mut policy, 4);
        assert_eq!(names(&mut policy, &class(0), 2), [0, 1]);
        assert_eq!(names(&mut policy, &class(1), 3), [3, 0, 1]);
        assert_eq!(names(&mut policy, &class(0), 2), [2, 3]);
    }

    #[test]
    fn a_class_with_a_list_of_its_own_stays_on_it() {
        let lists = vec![None, Some(vec![ServerId(2), ServerId(0)])];
        let mut policy = Cap::new(CapSettings { lists });
        up(&mut policy, 3);
        assert_eq!(names(&mut policy, &class(1), 4), [2, 0, 2, 0]);
        policy.server_gone(ServerId(2), Moment::START);
        assert_eq!(names(&mut policy, &class(1), 2), [0, 0]);
        policy.server_gone(ServerId(0), Moment::START);
        assert_eq!(policy.choose(&class(1), Moment::START), None, "nobody else may serve it");
        assert_eq!(names(&mut policy, &class(0), 1), [1]);
    }

    #[test]
    fn with_one_class_it_is_rr() {
        let mut policy = Cap::new(CapSettings::default());
        up(&mut policy, 3);
        assert_eq!(names(&mut policy, &class(0), 6), [0, 1, 2, 0, 1, 2]);
    }
}
