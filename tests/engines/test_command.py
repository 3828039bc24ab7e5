from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.engines.command import (
    CommandResult,
    CommandSpec,
    evidence,
    met,
    parse_command,
    reason,
    run_command,
)
from runs.engines.process import Capture
from runs.kernel.errors import LoopError


def python(code: str, **more: object) -> CommandResult:
    return run_command(CommandSpec(argv=(sys.executable, "-c", code), **more))  # type: ignore[arg-type]  # keywords of the spec


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def soon(claim: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not claim():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def stopped(code: str, **more: object) -> CommandResult:
    """How it ends that was ready before its time was over, on a machine of whatever speed."""
    for limit in (400, 4_000, 40_000):
        result = python(code, timeout_ms=limit, **more)
        if result.stdout == "ready\n":
            return result
    raise AssertionError("It never was ready.")


class TestParse:
    def test_r60_a_string_is_split_on_white_space(self) -> None:
        assert parse_command("  pytest   -q\ttests ") == ("pytest", "-q", "tests")

    def test_r60_a_list_keeps_every_argument_as_it_is(self) -> None:
        assert parse_command(["echo", "a b", "$X"]) == ("echo", "a b", "$X")

    @pytest.mark.parametrize("mark", list("\"'|&;<>$`()"))
    def test_r61_a_string_that_wants_a_shell_is_refused(self, mark: str) -> None:
        with pytest.raises(LoopError, match="cannot be run") as refused:
            parse_command(f"echo a{mark}b")
        assert refused.value.code == "VALIDATION"

    @pytest.mark.parametrize("command", ["", "  ", [], ["", "x"], ["a", 1], ["a\0b"]])
    def test_r61_no_executable_or_a_wrong_argument_is_refused(self, command: list[str]) -> None:
        with pytest.raises(LoopError) as refused:
            parse_command(command)
        assert refused.value.code == "VALIDATION"


class TestRun:
    def test_r53_exit_0_is_met(self) -> None:
        result = python("print('hello')")

        assert (result.exit_code, result.stdout, result.stderr) == (0, "hello\n", "")
        assert met(result)
        assert reason(result).endswith("exited 0.")
        assert evidence(result) is None

    def test_r58_another_exit_is_not_met_and_its_output_is_evidence(self) -> None:
        result = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")

        assert not met(result)
        assert evidence(result) == "exit code: 3\nstdout:\nout\nstderr:\nerr"
        assert result.to_json()["exitCode"] == 3
        assert "timedOut" not in result.to_json()

    def test_r54_no_shell_reads_the_arguments(self) -> None:
        code = "import sys; print(sys.argv[1])"
        spec = CommandSpec(argv=(sys.executable, "-c", code, "$HOME; `id`"))
        assert run_command(spec).stdout == "$HOME; `id`\n"

    def test_r54_stdin_is_closed(self) -> None:
        assert python("import sys; print(repr(sys.stdin.read()))").stdout == "''\n"

    def test_r54_the_command_runs_where_it_is_told_to(self, tmp_path: Path) -> None:
        result = python("import os; print(os.getcwd())", cwd=tmp_path)
        assert result.stdout.strip() == str(tmp_path.resolve())

    def test_the_environment_is_overlaid_and_parts_of_it_are_kept_away(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KEPT", "old")
        monkeypatch.setenv("HIDDEN", "x")
        code = "import os; print(os.environ['KEPT'], os.environ.get('HIDDEN'))"
        result = python(code, env={"KEPT": "new"}, unset=frozenset({"HIDDEN"}))

        assert result.stdout == "new None\n"
        assert os.environ["KEPT"] == "old"

    def test_r53_a_missing_executable_is_not_met(self) -> None:
        result = run_command(CommandSpec(argv=("no-such-executable-here",)))

        assert not met(result)
        assert result.exit_code is None
        assert "could not be started: No such file" in reason(result)
        assert "exit code: none" in str(evidence(result))

    def test_a_missing_directory_is_not_met(self, tmp_path: Path) -> None:
        assert not met(python("pass", cwd=tmp_path / "gone"))

    def test_a_command_ended_by_a_signal_has_no_exit_code(self) -> None:
        result = python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")

        assert (result.exit_code, result.signal) == (None, signal.SIGKILL)
        assert "was ended by SIGKILL" in reason(result)


class TestLimits:
    def test_r56_past_its_limit_it_is_stopped_and_not_met(self) -> None:
        result = python("import time; time.sleep(600)", timeout_ms=80)

        assert result.timed_out
        assert not met(result)
        assert "ran past its limit of 80 ms" in reason(result)
        assert result.to_json()["timedOut"] is True

    def test_r56_an_exit_0_after_the_limit_is_still_not_met(self) -> None:
        code = (
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))\n"
            "print('ready', flush=True)\n"
            "time.sleep(600)"
        )
        result = stopped(code)

        assert (result.exit_code, result.timed_out) == (0, True)
        assert not met(result)

    def test_r55_a_process_that_will_not_stop_is_killed_after_the_grace(self) -> None:
        code = (
            "import signal, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print('ready', flush=True)\n"
            "time.sleep(600)"
        )
        result = stopped(code, grace_ms=50)

        assert result.signal == signal.SIGKILL

    def test_r257_a_cancel_stops_the_whole_group(self, tmp_path: Path) -> None:
        mark = tmp_path / "pid"
        code = (
            "import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({str(mark)!r} + '.new', 'w').write(str(child.pid))\n"
            f"import os; os.rename({str(mark)!r} + '.new', {str(mark)!r})\n"
            "time.sleep(600)"
        )
        result = run_command(CommandSpec(argv=(sys.executable, "-c", code)), cancelled=mark.exists)

        assert result.cancelled
        assert not met(result)
        assert "was cancelled" in reason(result)
        assert soon(lambda: is_gone(int(mark.read_text())))

    def test_a_cancel_before_the_start_is_seen_at_once(self) -> None:
        result = run_command(
            CommandSpec(argv=(sys.executable, "-c", "import time; time.sleep(600)")),
            cancelled=lambda: True,
        )
        assert result.cancelled

    def test_a_grandchild_that_holds_the_pipe_does_not_hang_the_wait(self) -> None:
        code = (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            "print(child.pid, flush=True)"
        )
        result = python(code)

        assert met(result)
        assert soon(lambda: is_gone(int(result.stdout)))

    def test_a_grandchild_that_left_the_group_does_not_hang_the_wait(self) -> None:
        code = (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
            " start_new_session=True)\n"
            "print(child.pid, flush=True)"
        )
        result = python(code)
        os.kill(int(result.stdout), signal.SIGKILL)

        assert met(result)

    def test_more_output_than_a_pipe_holds_is_read_from_both_streams(self) -> None:
        code = (
            "import sys\n"
            "for n in range(2000):\n"
            "    sys.stdout.write('o' * 500 + '\\n'); sys.stderr.write('e' * 500 + '\\n')"
        )
        result = python(code)

        assert (len(result.stdout), len(result.stderr)) == (1_002_000, 1_002_000)
        assert not result.truncated

    def test_r55_output_past_the_cap_is_drained_and_its_ends_are_kept(self) -> None:
        code = "print('first'); print(('x' * 99 + '\\n') * 20_000 + 'last')"
        result = python(code, output_cap=4_000)

        assert met(result)
        assert result.truncated
        assert len(result.stdout) < 4_100
        assert result.stdout.startswith("first\n")
        assert result.stdout.endswith("last\n")
        assert "bytes left out]" in result.stdout

    def test_no_half_line_is_kept_around_the_gap(self) -> None:
        capture = Capture(4_000)
        capture.feed(b"a" * 1_990 + b"\nSECRET" + b"z" * 9_000 + b"SECRET\n" + b"b" * 1_990)

        assert "SEC" not in capture.text()
        assert capture.text().endswith("\n" + "b" * 1_990)


class TestScrubbed:
    def test_r227_an_injected_value_never_shows(self) -> None:
        code = "import os, sys; print('x' + os.environ['CHANNEL'] + 'y'); sys.exit(1)"
        result = python(code, env={"CHANNEL": "purple-rain"})

        assert result.stdout == "xpurple-rainy\n"
        assert "purple" not in str(evidence(result))
        assert "purple" not in reason(result, capture=True)

    def test_r227_a_value_that_is_secret_by_its_variable_never_shows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse")
        result = python("import os, sys; print(os.environ['DEPLOY_TOKEN']); sys.exit(1)")

        assert "correct" not in str(evidence(result))

    def test_r59_the_whole_stream_is_scrubbed_before_the_cut(self) -> None:
        secret = "sk-" + "a1" * 40
        result = python(f"print('{secret}' + 'b ' * 1_999); raise SystemExit(1)")
        kept = str(evidence(result))

        assert "a1a1" not in kept
        assert "characters cut]" in kept
        assert len(kept) < 4_200

    def test_r59_a_captured_reason_ends_with_the_last_3000_characters(self) -> None:
        result = python("print('ear' + 'ly'); print('z' * 2_996 + 'late')")
        text = reason(result, capture=True)

        assert "early" not in text
        assert text.split("\n", 1)[1].startswith("[")
        assert text.endswith("late")

    def test_r227_a_secret_in_the_arguments_never_shows(self) -> None:
        result = run_command(CommandSpec(argv=("no-such-executable", "--token=swordfish")))

        assert "swordfish" not in reason(result)
        assert "swordfish" not in str(result.to_json())
