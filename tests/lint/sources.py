"""Common parts of the lint scripts: the list of files, and the report at the end."""
import pathlib
import subprocess
import sys


def root():
    """Returns the repository: the first argument, or two folders up from here."""
    here = pathlib.Path(__file__).resolve().parents[2]
    return pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here


def files(top, *suffixes):
    """Returns the files of the project (tracked or about to be), as paths below the root."""
    git = ["git", "-c", f"safe.directory={top}", "-C", str(top), "ls-files", "-co",
           "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(git, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        listed = [str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()
                  and p.relative_to(top).parts[0] not in ("build", "runs", ".git", ".cache")]
    kept = (pathlib.Path(f) for f in sorted(set(listed)) if f)
    return [f for f in kept if (top / f).is_file() and (not suffixes or f.suffix in suffixes)]


def finish(name, problems, checked):
    for problem in problems:
        print(problem, file=sys.stderr)
    if checked == 0:
        print(f"{name}: nothing to check: wrong folder?", file=sys.stderr)
    print(f"{name}: {checked} files, {len(problems)} problems")
    sys.exit(1 if problems or checked == 0 else 0)
