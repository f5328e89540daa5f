"""Fetches packages from their registries, checks what came, and writes some of their files into a folder.

Each line of the list: registry, name, version, SHA-256 of the package, where files are in it, where they go.
"""

import hashlib
import html.parser
import io
import pathlib
import sys
import tarfile
import urllib.parse
import urllib.request


def fetched(address):
    with urllib.request.urlopen(address, timeout=120) as answer:
        return answer.read()


class Links(html.parser.HTMLParser):
    """The addresses that the index of PyPI has for a project."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


def source_of(name, version):
    """Where PyPI keeps the source of a version."""
    index = f"https://pypi.org/simple/{name}/"
    links = Links()
    links.feed(fetched(index).decode())
    for link in links.found:
        address = urllib.parse.urldefrag(urllib.parse.urljoin(index, link)).url
        if address.endswith(f"/{name}-{version}.tar.gz"):
            return address
    sys.exit(f"PyPI has no source of {name} {version}")


def address_of(registry, name, version):
    if registry == "crates.io":
        return f"https://static.crates.io/crates/{name}/{name}-{version}.crate"
    if registry == "npm":
        return f"https://registry.npmjs.org/{name}/-/{name}-{version}.tgz"
    return source_of(name, version)


def unpack(package, inside, target):
    """Writes the file that is at a place in the package, or all files below it."""
    written = 0
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for member in archive:
            # The first folder of every package is the package itself.
            path = pathlib.PurePosixPath(*pathlib.PurePosixPath(member.name).parts[1:])
            if not member.isfile() or ".." in path.parts or not path.is_relative_to(inside):
                continue
            place = target / path.relative_to(inside)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(archive.extractfile(member).read())
            written += 1
    return written


def main():
    wanted, kit = map(pathlib.Path, sys.argv[1:])
    packages = {}
    for line in wanted.read_text().splitlines():
        registry, name, version, expected, inside, target = line.split("\t")
        if name not in packages:
            print(f"{name} {version} from {registry}", flush=True)
            package = fetched(address_of(registry, name, version))
            if hashlib.sha256(package).hexdigest() != expected:
                sys.exit(f"{name} {version} is not the package that it was")
            packages[name] = package
        if unpack(packages[name], inside, kit / target) == 0:
            sys.exit(f"{name} {version} has no {inside}")


main()
