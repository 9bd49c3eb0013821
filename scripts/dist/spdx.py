"""The SPDX 2.3 list of what the program is made from: every crate that is linked into it, with version, licence and checksum.

usage: spdx.py TOP TARGET

Read from `cargo metadata` and Cargo.lock. Crates for tests and for building only are not in the program, and not in the list.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import datetime, timezone


def metadata(top, target):
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=top, check=True, stdout=subprocess.PIPE).stdout)


def linked(found):
    """Identifiers of the packages that the program `assay` is linked from, itself included."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting = [package["id"] for package in found["packages"] if package["name"] == "assay"]
    seen = set(waiting)
    while waiting:
        for inner in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in inner["dep_kinds"])
            if is_linked and inner["pkg"] not in seen:
                seen.add(inner["pkg"])
                waiting.append(inner["pkg"])
    return seen


def entry(package, checksums):
    name, version = package["name"], package["version"]
    # Some still write `MIT/Apache-2.0`, which SPDX does not know.
    licence = (package["license"] or "NOASSERTION").replace("/", " OR ")
    described = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": package["repository"] or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:cargo/{name}@{version}"}
        ],
    }
    if (name, version) in checksums:
        described["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksums[name, version]}]
    return described


def main(top, target):
    found = metadata(top, target)
    with open(os.path.join(top, "Cargo.lock"), "rb") as lock:
        packages = tomllib.load(lock)["package"]
    checksums = {(one["name"], one["version"]): one["checksum"] for one in packages if "checksum" in one}
    wanted = linked(found)
    listed = [entry(package, checksums) for package in found["packages"] if package["id"] in wanted]
    listed.sort(key=lambda package: package["SPDXID"])
    program = next(package for package in listed if package["name"] == "assay")
    created = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    relations = [
        {"spdxElementId": program["SPDXID"], "relationshipType": "STATIC_LINK", "relatedSpdxElement": package["SPDXID"]}
        for package in listed
        if package is not program
    ]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"assay-{program['versionInfo']}",
        "documentNamespace": f"https://github.com/assay-bench/assay/spdx/assay-{program['versionInfo']}-{target}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: scripts/dist/spdx.py"]},
        "packages": listed,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": program["SPDXID"]},
            *relations,
        ],
    }
    print(json.dumps(document, indent=1))


main(*sys.argv[1:])
