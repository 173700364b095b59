"""Mutation testing of timeline, cache and memory: all mutants of cargo-mutants in one build.

cargo-mutants builds the crate and its tests anew for each mutant, which takes hours. Here
`mutants/` makes a switch of each in a copy of the sources, the tests are built once, and every
mutant runs them until one fails: `mutants.py [--part K/N] [--only NUMBER...]`. What does not
compile is left out, as cargo-mutants does. What was found lies in build/mutants/results, by the
mutant's name, which holds no line numbers; a second run tries those that are not there yet, and
the survivors. Remove that file where sources or tests have become weaker. `mutants/survivors.md`
says why some are not found; a survivor that it does not name is a failure.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mutants"
TREE = FOLDER / "tree"
LIST = FOLDER / "list.json"
RESULTS = FOLDER / "results"
LAYERS = ["src/timeline/**", "src/cache/**", "src/memory/**"]
LIBRARY = FOLDER / "library" / "libcvc.so.0.1"
PROGRAMS = FOLDER / "programs"
EXPLAINED = ROOT / "mutants" / "survivors.md"
UNVIABLE = FOLDER / "unviable.json"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
UNIT_TESTS = "cvc"
# Those that find most come first. The rest is about what these layers do not decide.
TESTS = [
    "programs",
    UNIT_TESTS,
    "raw_memory",
    "backend_faults",
    "stream_faults",
    "backend_calls",
    "lifetimes",
    "races",
    "handles",
    "stepped",
    "moments",
    "captures",
    "memory_pressure",
    "eviction",
    "operators",
]
# What these miss, the tests of the C interface (of build/c_tests) and of the package are asked.
C_TESTS = [
    "cache",
    "tensor",
    "image",
    "image_batch",
    "tensor_batch",
    "mem",
    "stream",
    "event",
    "threads",
]
PYTHON_TESTS = [
    "test_cache.py",
    "test_cache_limit.py",
    "test_memory.py",
    "test_lifetime.py",
    "test_stream.py",
]
SECONDS = 120
SURVIVED = "SURVIVED"
ENVIRONMENT = dict(
    os.environ,
    CVC_CUDA_ARCHS="none",
    CVC_KERNEL_CACHE=str(ROOT / "build" / "kernels"),
    CARGO_TARGET_DIR=str(FOLDER / "target"),
    CARGO_PROFILE_DEV_DEBUG="0",
)


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)


def list_mutants():
    files = [word for layer in LAYERS for word in ("-f", layer)]
    listed = run("cargo", "mutants", "--list", "--json", *files, cwd=ROOT)
    if listed.returncode != 0:
        sys.exit(f"cargo-mutants did not list anything; is it installed?\n{listed.stderr}")
    LIST.write_text(listed.stdout)


def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    for name in run("git", "ls-files", cwd=ROOT).stdout.splitlines():
        target = TREE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    manifest = TREE / "Cargo.toml"
    text = manifest.read_text()
    manifest.write_text(re.sub(r"crate-type = .*", 'crate-type = ["rlib"]', text))


def place(excluded):
    """Rewrites the copy; the numbers that have no place."""
    copy_tree()
    placed = run(
        "cargo",
        "run",
        "--release",
        "--quiet",
        "--manifest-path",
        ROOT / "mutants" / "Cargo.toml",
        "--",
        LIST,
        TREE,
        *map(str, sorted(excluded)),
    )
    if placed.returncode != 0:
        sys.exit(placed.stderr)
    return {int(line) for line in placed.stdout.split()}


def culprits(message):
    """The mutants that a compiler's error is about."""
    found = set()
    for span in message["spans"]:
        path = TREE / span["file_name"]
        if not span["is_primary"] or not path.is_file():
            continue
        line = path.read_text().splitlines()[span["line_start"] - 1]
        column = span["column_start"] - 1
        bodies = list(re.finditer(r"if crate::chosen_mutant::is\((\d+)\) \{ return .*?; \}", line))
        inside = [body for body in bodies if body.start() <= column < body.end()]
        found |= {int(body[1]) for body in inside or bodies}
        if not bodies:
            switches = re.finditer(r"chosen_mutant::is\((\d+)\)", line[:column])
            found |= {int(switch[1]) for switch in list(switches)[-1:]}
    return found


def build():
    """Builds the tests until all compiles, and the library for programs outside of the crate."""
    excluded = set()
    while True:
        missing = place(excluded)
        command = [
            "cargo",
            "test",
            "--locked",
            "--features",
            "mistakes",
            "--no-run",
            "--message-format=json",
            "--lib",
        ]
        command += [word for test in TESTS if test != UNIT_TESTS for word in ("--test", test)]
        built = run(*command, cwd=TREE, env=ENVIRONMENT)
        messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
        if built.returncode == 0:
            PROGRAMS.mkdir(exist_ok=True)
            for message in messages:
                if message.get("executable"):
                    shutil.copy2(message["executable"], PROGRAMS / message["target"]["name"])
            UNVIABLE.write_text(json.dumps(sorted(missing | excluded)))
            build_library()
            return
        errors = [
            message["message"]
            for message in messages
            if message.get("reason") == "compiler-message"
        ]
        errors = [error for error in errors if error["level"] == "error" and error["spans"]]
        new = set().union(*map(culprits, errors)) - excluded if errors else set()
        if not new:
            sys.exit(
                "the copy does not compile:\n"
                + built.stderr[-3000:]
                + "".join(e["rendered"] for e in errors[:3])
            )
        print(f"-- {len(new)} do not compile", flush=True)
        excluded |= new


def build_library():
    command = ["cargo", "rustc", "--locked", "--lib", "--crate-type", "cdylib"]
    built = run(*command, cwd=TREE, env=ENVIRONMENT)
    if built.returncode != 0:
        sys.exit(built.stderr)
    LIBRARY.parent.mkdir(exist_ok=True)
    shutil.copy2(FOLDER / "target" / "debug" / "libcvc.so", LIBRARY)


def outside_tests():
    """Commands by name, and what they need in the environment."""
    environment = {
        "CVC_BACKEND": "host",
        "CVC_HOST_DEVICES": "2",
        "LD_LIBRARY_PATH": str(LIBRARY.parent),
        "CVC_LIBRARY": str(LIBRARY),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    commands = {name: [ROOT / "build" / "c_tests" / f"test_{name}"] for name in C_TESTS}
    python = [PYTHON if PYTHON.exists() else sys.executable, "-m", "pytest", "-x", "-q"]
    python += ["-p", "no:cacheprovider", "-m", "not long"]
    commands["python"] = python + [ROOT / "python_ctypes" / "tests" / name for name in PYTHON_TESTS]
    return commands, environment


def inside_tests():
    """As `outside_tests`, of the crate's own."""
    environment = dict(ENVIRONMENT, RUST_BACKTRACE="0", CVC_NO_SHRINKING="1")
    commands = {test: [PROGRAMS / test, "--quiet", "--test-threads=4"] for test in TESTS}
    return commands, environment


def outcome(number, commands, environment):
    """The test program that finds the mutant, or None."""
    environment = {**os.environ, **environment, "CVC_MUTANT": str(number)}
    for name, command in commands.items():
        log = FOLDER / "logs" / f"{number}-{name}"
        with open(log, "w") as output:
            try:
                status = subprocess.run(
                    command,
                    cwd=TREE,
                    env=environment,
                    stdout=output,
                    stderr=output,
                    timeout=SECONDS,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                return f"{name} (time)"
        if status != 0:
            return name
        log.unlink()
    return None


def stable_names(mutants):
    """Names that an edit elsewhere in the file leaves alone: equal ones are counted."""
    seen = collections.Counter()
    names = []
    for mutant in mutants:
        plain = re.sub(r":\d+:\d+:", ":", mutant["name"], count=1)
        seen[plain] += 1
        names.append(f"{plain} #{seen[plain]}")
    return names


def found_before():
    """What finds each mutant, by its name."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text().splitlines()
    return {name: found for found, name in (line.split("\t", 1) for line in lines)}


def explained():
    """The survivors that have their reason written down, by name."""
    return set(re.findall(r"^- `(.*)`$", EXPLAINED.read_text(), re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--part", default="1/1", help="K/N: only every N-th mutant, from the K-th on"
    )
    parser.add_argument("--only", nargs="*", type=int, help="only these numbers")
    parser.add_argument("--outside", action="store_true", help="then the C and Python tests too")
    parser.add_argument("--built", action="store_true", help="as the last run built it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    (FOLDER / "logs").mkdir(parents=True, exist_ok=True)
    if not arguments.built:
        list_mutants()
        build()
    mutants = json.loads(LIST.read_text())
    unviable = set(json.loads(UNVIABLE.read_text()))
    commands, environment = inside_tests()
    if arguments.outside:
        more, needed = outside_tests()
        commands |= more
        environment |= needed
    attempt_one = functools.partial(outcome, commands=commands, environment=environment)
    if attempt_one(len(mutants)) is not None:
        sys.exit("the tests fail without a mutant; see build/mutants/logs")
    first, step = map(int, arguments.part.split("/"))
    chosen = arguments.only or range(first - 1, len(mutants), step)
    known = found_before()
    names = stable_names(mutants)
    viable = [number for number in chosen if number not in unviable]
    chosen = [number for number in viable if known.get(names[number], SURVIVED) == SURVIVED]
    print(f"-- {len(mutants)} mutants, {len(unviable)} do not compile", flush=True)
    print(f"-- {len(viable) - len(chosen)} were found before; trying {len(chosen)}", flush=True)
    start = time.monotonic()
    lock = threading.Lock()

    def attempt(number):
        found = attempt_one(number) or SURVIVED
        with lock, open(RESULTS, "a") as results:
            results.write(f"{found}\t{names[number]}\n")
        if found == SURVIVED:
            print(f"survived: {number} {names[number]}", flush=True)
        return found

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        survivors = list(pool.map(attempt, chosen)).count(SURVIVED)
    known = found_before()
    tried = {names[number]: known[names[number]] for number in viable if names[number] in known}
    late = sum(found.endswith("(time)") for found in tried.values())
    left = {name for name, found in tried.items() if found == SURVIVED}
    reasons = explained()
    print(f"-- {time.monotonic() - start:.0f} s; {survivors} of {len(chosen)} survived")
    if tried:
        share = 100 * (1 - len(left) / len(tried))
        print(f"-- {len(tried) - len(left)} of {len(tried)} tried were found, {share:.1f} %")
        print(f"-- {late} of them by running for more than {SECONDS} s")
    if not arguments.only:
        for name in sorted(reasons - set(names)):
            print(f"named in {EXPLAINED.name}, but there is none: {name}")
        for name in sorted(name for name in reasons if tried.get(name, SURVIVED) != SURVIVED):
            print(f"named in {EXPLAINED.name}, but found: {name}")
    unexplained = sorted(left - reasons)
    for name in unexplained:
        print(f"survived without a reason: {name}")
    sys.exit(1 if unexplained else 0)


main()
