"""Shared code of the scripts for Apple platforms: the platforms, the toolchain, the cache and the compiler calls."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
PACKAGE = FOLDER.parent.parent
DECLARATIONS = FOLDER / "declarations"
CACHE = PACKAGE / ".build" / "apple"

# The triple of each platform, with the minimum version from Package.swift.
PLATFORMS = {
    "macos": "x86_64-apple-macosx15.0",
    "ios": "arm64-apple-ios18.0",
    "tvos": "arm64-apple-tvos18.0",
    "watchos": "arm64_32-apple-watchos11.0",
    "visionos": "arm64-apple-xros2.0",
}

# The folder of a platform's modules in a resource directory, in which the compiler looks for them.
MODULE_FOLDERS = {
    "macosx": "macosx",
    "ios": "iphoneos",
    "tvos": "appletvos",
    "watchos": "watchos",
    "xros": "xros",
}


class Triple:
    """A target triple with its folders in the cache."""

    def __init__(self, text):
        self.text = PLATFORMS.get(text, text)
        self.architecture, self.vendor, system = self.text.split("-")
        self.system = system.rstrip("0123456789.")
        self.has32BitPointers = self.architecture in ("arm64_32", "armv7k", "armv7", "i386")
        self.folder = CACHE / self.text
        self.resources = self.folder / "resources"
        self.modules = self.resources / MODULE_FOLDERS[self.system]
        self.sdk = self.folder / "sdk"
        # The modules and headers of our own declarations.
        self.declarations = self.folder / "declarations"
        self.clangModules = self.folder / "clang-modules"

    def modulePath(self, module):
        """Returns the path at which the compiler looks for a module of the standard library."""
        system = "macos" if self.system == "macosx" else self.system
        return self.modules / f"{module}.swiftmodule" / f"{self.architecture}-apple-{system}.swiftmodule"


class Toolchain:
    """The Swift toolchain whose compiler is first in PATH."""

    def __init__(self):
        compiler = shutil.which("swiftc")
        if compiler is None:
            sys.exit("error: swiftc is not in the search path.")
        # The program can be a symbolic link of SwiftPM or swiftly, but the resources are next to the real program.
        self.root = pathlib.Path(os.path.realpath(compiler)).parent.parent
        self.frontend = self.root / "bin" / "swift-frontend"
        self.resources = self.root / "lib" / "swift"
        self.version = subprocess.run(
            [self.frontend, "-version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]

    def interfaces(self):
        """Returns the folder with the textual interfaces of the standard library, and the name of an interface in a module's folder."""
        for system in ("linux", "macosx"):
            for interface in sorted((self.resources / system).glob("Swift.swiftmodule/*.swiftinterface")):
                if ".private." not in interface.name:
                    return self.resources / system, interface.name
        sys.exit(f"error: {self.resources} has no textual interface of the standard library.")


def digest(*parts):
    """Returns a short hash of the given text, bytes, files and folders with their content."""
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, pathlib.Path):
            files = sorted(file for file in part.rglob("*") if file.is_file()) if part.is_dir() else [part]
            for file in files:
                state.update(str(file.relative_to(part.parent)).encode())
                state.update(file.read_bytes())
        else:
            state.update(part if isinstance(part, bytes) else str(part).encode())
        state.update(b"\0")
    return state.hexdigest()[:32]


def run(command, quiet=False):
    """Runs a command and returns whether it succeeded, with its output."""
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace")
    if result.returncode != 0 and not quiet:
        sys.stdout.write(result.stdout)
        sys.stdout.flush()
    return result.returncode == 0, result.stdout


class Stopwatch:
    """Prints a line with the duration of a step."""

    def __init__(self):
        self.started = time.monotonic()

    def line(self, text, verdict="PASS"):
        print(f"{verdict}  {time.monotonic() - self.started:6.1f} s  {text}", flush=True)
