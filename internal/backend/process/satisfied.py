"""Says whether this interpreter has the packages that pip would install.

The argument is JSON: for each "pip install" the list of its words. The answer on standard output is JSON: "identity" of
the interpreter, and "missing", the first requirement that is not met, or "".
"""
import importlib.metadata
import importlib.util
import json
import sys

WITH_VALUE = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--platform",
              "--python-version", "--implementation", "--abi", "--only-binary", "--no-binary", "--proxy", "--timeout",
              "--retries", "--cert", "--cache-dir", "--log"}
WITH_FILE = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-t", "--target", "--prefix", "--root"}


def tools():
    try:
        from packaging.requirements import Requirement
    except ImportError:
        from pip._vendor.packaging.requirements import Requirement
    return Requirement


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def kfp_version():
    """kfp may also be importable from a source tree, where it has no metadata."""
    version = installed("kfp")
    if version is None and importlib.util.find_spec("kfp") is not None:
        import kfp
        version = getattr(kfp, "__version__", None)
    return version


def met(requirement, extras=()):
    """A requirement is met by an installed version that it allows; kfp by any of the same major version."""
    if requirement.marker is not None and not any(
            requirement.marker.evaluate({"extra": e}) for e in (extras or ("",))):
        return True
    if requirement.url:
        return False
    if requirement.name.lower() == "kfp":
        version = kfp_version()
        majors = {s.version.split(".")[0] for s in requirement.specifier if s.operator in ("==", "~=", "===")}
        if version is not None and majors == {version.split(".")[0]}:
            return True
    else:
        version = installed(requirement.name)
    if version is None or not requirement.specifier.contains(version, prereleases=True):
        return False
    if not requirement.extras:
        return True
    Requirement = tools()
    for line in importlib.metadata.requires(requirement.name) or ():
        inner = Requirement(line)
        if inner.marker is not None and "extra" in str(inner.marker) and not met(inner, requirement.extras):
            return False
    return True


def missing(words):
    Requirement = tools()
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in WITH_VALUE:
            skip = True
        elif word.split("=")[0] in WITH_FILE:
            return word
        elif not word.startswith("-"):
            try:
                if not met(Requirement(word)):
                    return word
            except Exception:  # a path, a URL, or what else pip may know
                return word
    return ""


def main():
    try:
        answer = next(filter(None, map(missing, json.loads(sys.argv[1]))), "")
    except ImportError as e:
        answer = str(e)
    identity = "%s %s %s" % (sys.executable, sys.version, sys.prefix)
    json.dump({"identity": identity, "missing": answer}, sys.stdout)


main()
