//! Paths of the documents of services over HTTP, in both directions.
//!
//! The first document is at the service's path (`/file5k.html`), number *n* has `-n` before the extension
//! (`/file5k-17.html`): so a study's copies of WebStone's files have names of their own, and a switch can tell classes by
//! what paths begin and end with.

use crate::simulate::experiment::Service;

/// Path of a service without one of its own: files are pages, all others are programs.
pub fn default_path(name: &str, documents: u64) -> String {
    match documents {
        0 => format!("/cgi-bin/{}.cgi", name.replace('-', "_")),
        _ => format!("/{name}.html"),
    }
}

/// Path of document `number` of a service.
pub fn path_of(service: &Service, number: u64) -> String {
    if number == 0 {
        return service.path.clone();
    }
    let (stem, extension) = split(&service.path);
    format!("{stem}-{number}{extension}")
}

/// Splits a path before its extension.
fn split(path: &str) -> (&str, &str) {
    let file = path.find('?').unwrap_or(path.len());
    let dot = path[..file].rfind('.').filter(|dot| !path[*dot..file].contains('/')).unwrap_or(file);
    path.split_at(dot)
}

/// Index of the service that a path requests, and the number of the document. Queries are ignored: they are the parameters of
/// programs.
pub fn document_at(services: &[Service], path: &str) -> Option<(usize, u64)> {
    let file = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let requested = file(path);
    let same = |service: &Service| file(&service.path) == requested;
    if let Some(index) = services.iter().position(same) {
        return Some((index, 0));
    }
    let (stem, extension) = split(&requested);
    let (stem, digits) = stem.rsplit_once('-')?;
    let number: u64 = digits.parse().ok().filter(|_| !digits.starts_with(['0', '+']))?;
    let holds = |service: &Service| {
        let own = file(&service.path);
        number < service.documents && split(&own) == (stem, extension)
    };
    services.iter().position(holds).map(|index| (index, number))
}

#[cfg(test)]
mod tests {
    use crate::dispatch::ClassId;

    use super::*;
    use crate::simulate::experiment::ServiceTimeLaw;

    fn service(name: &str, path: Option<&str>, documents: u64) -> Service {
        let path = path.map_or_else(|| default_path(name, documents), str::to_owned);
        let (class, law) = (ClassId(0), ServiceTimeLaw::Constant);
        Service {
            name: name.into(),
            path,
            class,
            processor_s: 0.0,
            disk_s: 0.0,
            law,
            bytes: 0,
            documents,
            zipf: 0.0,
        }
    }

    #[test]
    fn every_document_is_found_where_it_is() {
        let services = [
            service("file500", None, 700),
            service("file5k", None, 1000),
            service("cpu-light", None, 0),
            service("disk-load", Some("/cgi-bin/disk_load.cgi?file=a.html"), 0),
        ];
        for (index, number, path) in [
            (0, 0, "/file500.html"),
            (0, 699, "/file500-699.html"),
            (1, 17, "/file5k-17.html"),
            (2, 0, "/cgi-bin/cpu_light.cgi"),
            (3, 0, "/cgi-bin/disk_load.cgi?file=a.html"),
        ] {
            assert_eq!(path_of(&services[index], number), path);
            assert_eq!(document_at(&services, path), Some((index, number)), "{path}");
        }
        assert_eq!(document_at(&services, "/cgi-bin/disk_load.cgi?file=/other.html"), Some((3, 0)));
        for unknown in
            ["/", "/file500-700.html", "/file500-01.html", "/file500-.html", "/file500", "/a-1.html", "-"]
        {
            assert_eq!(document_at(&services, unknown), None, "{unknown}");
        }
    }
}
