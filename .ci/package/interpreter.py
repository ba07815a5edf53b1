"""Build the interpreter that the packages are made with: a Python and OpenSSL of Debian's sources that need no newer
glibc than 2.31, so that they start on RHEL 9, Ubuntu 20.04, Debian 11, Amazon 2023 and SLES 15.

    python3 .ci/package/interpreter.py [--print]

It is made once, in a directory of Debian 11 (root, debootstrap, some minutes of two processors), and stored below
PUPPET_INSPECTOR_INTERPRETERS, or ``~/.cache/puppet-inspector-build``. ``--print`` names it, without building anything.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from tests.real import releases  # noqa: E402

VERSION = "3.13"
GLIBC = "2.31"
"""That of Debian 11."""
PACKAGES = ("build-essential", "ca-certificates", "libbz2-dev", "libffi-dev", "liblzma-dev", "libncursesw5-dev",
            "libreadline-dev", "libsqlite3-dev", "patchelf", "pkg-config", "uuid-dev", "zlib1g-dev")  # fmt: skip
PREFIX = "/opt/python"
"""Where it is installed in the directory. It runs anywhere else, too: it finds all by its own place."""
_ONLY_OLDER = f"""
def manylinux_compatible(major, minor, _machine):
    return (major, minor) <= ({GLIBC.replace(".", ", ")})
"""
"""What pip asks (PEP 600): it takes no wheel that needs a newer glibc, wherever it runs."""
_SOURCES = """
set -eu
printf 'deb-src %s trixie main\\n' "$MIRROR" > /etc/apt/sources.list.d/sources.list
apt-get update -q
mkdir /src; cd /src
for name in python$VERSION openssl; do
    # A mirror may lack the newest one that its index has.
    for version in $(apt-cache showsrc --only-source $name | sed -n 's/^Version: //p' | sort -rV); do
        if apt-get source -q --download-only $name=$version; then break; fi
        rm -f ${name}_*
    done
done
dpkg-source --no-check -x openssl_*.dsc openssl
dpkg-source --no-check --skip-patches -x python*.dsc python
# Debian's corrections, without what moves Python to Debian's places.
cd python
grep -E '^(CVE|issue|ssl|dict|traverse)' debian/patches/series | while read -r patch; do
    patch -s -p1 < debian/patches/$patch
done
"""
_COMPILED = """
set -eu
cd /src/openssl
./Configure --prefix=$PREFIX --libdir=lib --openssldir=/usr/lib/ssl shared no-tests no-docs no-apps
nice -n 19 make -j2 build_libs
make install_dev
cd /src/python
# configure writes it into the Makefile: what was built is started there to see which modules it has.
export LD_LIBRARY_PATH=$PREFIX/lib
./configure --prefix=$PREFIX --enable-optimizations --with-lto --enable-shared --without-static-libpython \\
    --disable-test-modules --with-openssl=$PREFIX
export LD_LIBRARY_PATH=/src/python:$LD_LIBRARY_PATH
nice -n 19 make -j2
make install
rm -rf $PREFIX/lib/python*/idlelib $PREFIX/lib/*.a
$PREFIX/bin/python3 -c 'import bz2, ctypes, curses, lzma, readline, sqlite3, ssl, uuid, zlib'
"""
_LIBRARIES = r"""
set -eu
own=$(find $PREFIX -type f \( -name '*.so*' -o -path '*/bin/python3.*[0-9]' \))
# Wheels of others want the two of the compiler.
LD_LIBRARY_PATH=$PREFIX/lib ldd $own /usr/lib/*/libstdc++.so.6 | awk '$3 ~ /^\/(usr\/)?lib\// { print $3 }' | sort -u |
    grep -vE '/lib(c|m|dl|pthread|rt|util|resolv)\.so' > /src/libraries
echo /usr/lib/*/libstdc++.so.6 | tr ' ' '\n' >> /src/libraries
mkdir $PREFIX/licenses
sort -u /src/libraries | while read -r library; do
    cp -L $library $PREFIX/lib
    package=$(dpkg-query -S "*/$(basename $library)" | sed -n '/^diversion/d; s/:.*//p' | head -n 1)
    cp /usr/share/doc/$package/copyright $PREFIX/licenses/$package.txt
    dpkg-query -W -f "$(basename $library) \${Package} \${source:Package} \${source:Version}\n" $package
done > $PREFIX/libraries
version=$(sed -n 's/^Version: //p' /src/openssl_*.dsc | head -n 1)
cp /src/openssl/debian/copyright $PREFIX/licenses/libssl3.txt
for library in libssl.so.3 libcrypto.so.3; do echo "$library libssl3 openssl $version" >> $PREFIX/libraries; done
chmod -R u+w $PREFIX
for file in $(find $PREFIX -type f \( -name '*.so*' -o -path '*/bin/python3.*[0-9]' \)); do
    strip --strip-unneeded $file
    patchelf --set-rpath "\$ORIGIN/$(realpath --relative-to=$(dirname $file) $PREFIX/lib)" $file
done
"""


def place() -> Path:
    """Where it is, or would be."""
    stored = os.environ.get("PUPPET_INSPECTOR_INTERPRETERS") or Path.home() / ".cache/puppet-inspector-build"
    return Path(stored) / f"python-{VERSION}-glibc-{GLIBC}-{platform.machine()}"


def python() -> Path | None:
    """Its program, if it has been built."""
    path = place() / f"bin/python{VERSION}"
    return path if path.is_file() else None


def libraries() -> dict[str, dict[str, str]]:
    """The libraries of the directory that it was made in, by the names of their files, with Debian's packages."""
    keys = ("name", "source", "version")
    lines = (place() / "libraries").read_text().splitlines()
    return {words[0]: dict(zip(keys, words[1:], strict=True)) for words in map(str.split, lines)}


def _build() -> None:
    place().parent.mkdir(parents=True, exist_ok=True)
    # Not in /tmp, which may be small, nor inside: what is half made has no name that is looked for.
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=place().parent))
    try:
        system = releases.make("bullseye", unfinished / "debian", PACKAGES)
        log = place().parent / "interpreter.log"
        given = {"PREFIX": PREFIX, "VERSION": VERSION, "MIRROR": releases._mirror()}
        for script in (_SOURCES, _COMPILED, _LIBRARIES):
            done = system.run(script, **given)
            with log.open("a") as file:
                file.write(done.stdout + done.stderr)
            if done.returncode:
                sys.exit(f"{done.stdout[-2000:]}{done.stderr[-2000:]}\nThe interpreter was not built: see {log}.")
        made = system.root / PREFIX.strip("/")
        (made / f"lib/python{VERSION}/_manylinux.py").write_text(_ONLY_OLDER)
        made.rename(place())
    finally:
        shutil.rmtree(unfinished)


def main() -> int:
    if "--print" not in sys.argv[1:] and not python():
        _build()
    print(python() or f"{sys.executable} (no portable interpreter: make interpreter)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
