"""An annotated tag, made and pushed in a way that a second try finds done."""

from __future__ import annotations

from runs.engines.command import met
from runs.examples._git import Git, complaint
from runs.examples._source import Refused


def check_tag(git: Git, tag: str, commit: str) -> bool:
    """Whether the tag is there already; raises Refused when it stands for something else."""
    ref = f"refs/tags/{tag}"
    kind = git.attempt("cat-file", "-t", ref)
    if not met(kind):
        return False
    if (found := git.commit(ref)) != commit:
        raise Refused(_taken(tag, found or "no commit", commit))
    if kind.stdout.strip() != "tag":
        raise Refused(
            f"The tag {tag} is on this commit already, but it is not an annotated one. "
            "Remove it or choose another version."
        )
    return True


def make_tag(git: Git, tag: str, commit: str, message: str) -> bool:
    """Make the annotated tag; False when an equal one was there."""
    if check_tag(git, tag, commit):
        return False
    made = git.attempt(
        *git.identity(), "tag", "--annotate", "--no-sign", f"--message={message}", tag, commit
    )
    # Another try of this step may have made it in between; only what is there now counts.
    if not check_tag(git, tag, commit):
        raise Refused(f"Tagging {commit[:12]} as {tag} failed. {complaint(made)}")
    return met(made)


def push_tag(git: Git, tag: str, commit: str) -> bool:
    """Push the tag to where the clone came from; False when it was there."""
    if _is_there(git, tag, commit):
        return False
    ref = f"refs/tags/{tag}"
    pushed = git.attempt(
        "push", "--quiet", "--no-verify", "--no-follow-tags", "origin", f"{ref}:{ref}"
    )
    if not met(pushed) and not _is_there(git, tag, commit):
        raise Refused(f"Pushing the tag {tag} failed. {complaint(pushed)}")
    return met(pushed)


def _is_there(git: Git, tag: str, commit: str) -> bool:
    ref = f"refs/tags/{tag}"
    printed = git.run(
        "ls-remote", "origin", ref, f"{ref}^{{}}", doing="Asking for the remote's tags"
    )
    refs = {
        name: found for found, _, name in (line.partition("\t") for line in printed.splitlines())
    }
    # An annotated tag is listed twice; the second line is the commit it stands for.
    found = refs.get(f"{ref}^{{}}", refs.get(ref))
    if found is not None and found != commit:
        raise Refused(_taken(tag, found, commit))
    return found is not None


def _taken(tag: str, found: str, commit: str) -> str:
    return (
        f"The tag {tag} already stands for {found[:12]}, not for {commit[:12]}. "
        "Choose another version or remove the tag."
    )
