"""Build a stand-in for the official image where none can be pulled: `python -m cluster.standin`, as root on Debian.

It has the same jars, the same variables and the same words in its log, on a Debian made by debootstrap. An image of
that name that is here already, or can be pulled, is left as it is.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import docker
import docker.errors

from .container import IMAGE, STAND_IN, NoImage, engine, pull
from .jars import VERSION, jars
from .node import TEMPLATES

# The last Debian with Java 17, whatever this machine runs. Its Python is the one that cqlsh's wheels must fit.
SUITE, SUITE_PYTHON = "bookworm", "3.11"
PACKAGES = "openjdk-17-jre-headless,python3-minimal,libpython3-stdlib"
BASE = f"slotkeeper-java:{SUITE}"
SOURCES = Path(__file__).parent / "image"


def main() -> None:
    """Make sure that there is an image, and say which."""
    try:
        with engine() as client:
            print(_ensure(client))
    except NoImage as error:
        sys.exit(f"no image: {error}")


def _ensure(client: docker.DockerClient) -> str:
    recipe = _recipe()
    try:
        labels = client.images.get(IMAGE).labels
        if labels.get(STAND_IN, recipe) == recipe:
            return f"{IMAGE} is here already{' (stand-in)' if STAND_IN in labels else ''}"
    except docker.errors.ImageNotFound:
        try:
            pull(client)
            return f"{IMAGE} was pulled"
        except NoImage as error:
            print(error.reason)
    _build(client, recipe)
    return f"{IMAGE} is a stand-in built here"


def _recipe() -> str:
    """Give a digest of all that the image is made from, by which one made from an older recipe is known."""
    digest = hashlib.sha256(VERSION.encode())
    for file in (Path(__file__), *sorted(SOURCES.iterdir()), *sorted(TEMPLATES.iterdir())):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _build(client: docker.DockerClient, recipe: str) -> None:
    if not client.images.list(BASE):
        _import_base(client)
    with tempfile.TemporaryDirectory(dir=jars().parent) as folder:  # where the jars can be linked rather than copied
        context = Path(folder)
        _lay_out(context / "root")
        shutil.copy(SOURCES / "Dockerfile", context)
        client.images.build(path=str(context), tag=IMAGE, labels={STAND_IN: recipe}, rm=True)
    client.images.prune(filters={"label": STAND_IN})  # an older one has lost its name, and only takes room


def _lay_out(root: Path) -> None:
    """Lay out what the image has on top of Debian and Java."""
    shutil.copytree(jars(), root / "opt/cassandra/jars", copy_function=os.link)
    shutil.copytree(TEMPLATES, root / "opt/cassandra/templates")
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    for name, source in {"docker-entrypoint": "entrypoint.py", "cqlsh": "cqlsh.sh"}.items():
        shutil.copy(SOURCES / source, programs / name)
        (programs / name).chmod(0o755)
    _install_cqlsh(root / "opt/cqlsh")


def _install_cqlsh(target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--target", str(target)]
    wheels = ["--only-binary=:all:", "--python-version", SUITE_PYTHON]
    wheels += ["--platform", f"manylinux2014_{platform.machine()}"]
    subprocess.run([*pip, *wheels, "cqlsh"], check=True)


def _import_base(client: docker.DockerClient) -> None:
    if shutil.which("debootstrap") is None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "debootstrap"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        root, tar = Path(folder, "root"), Path(folder, "root.tar")
        _debootstrap(root)
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
        repository, tag = BASE.split(":")
        client.api.import_image(src=str(tar), repository=repository, tag=tag)


def _debootstrap(root: Path) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if answer.returncode:
        raise NoImage("debootstrap failed", answer.stdout[-2000:])
    for kept in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
        shutil.rmtree(root / kept, ignore_errors=True)


if __name__ == "__main__":
    main()
