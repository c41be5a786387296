"""Check scopes one after the other until one is broken, in a process of its own: the product may be a mutant.

Reads one JSON object, and writes a line of JSON before each scope, and one behind it. It is started with the tree that
it is to check on its path.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from time import process_time
from typing import Any

MOST_MEMORY = 4 << 30
"""In bytes; the whole of `small` needs a tenth of that."""


def main() -> None:
    """Carry out the order that stands in the standard input."""
    order = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.setitimer(signal.ITIMER_PROF, order["limit_s"])
    from barrierlab.sim.check.runner import plan

    chosen = plan(order["group"], (), "")
    imported = _reached()  # by every scope: the first one must not have them alone
    for name, limit_s in order["scopes"] or [(name, order["limit_s"]) for name in chosen.names]:
        print(json.dumps({"scope": name}), flush=True)
        result = _checked(chosen, name, limit_s, imported)
        print(json.dumps(result), flush=True)
        if result["verdict"] != "holds" and order["wording"] != result["invariant"]:
            return


def _checked(chosen: Any, name: str, limit_s: float, imported: dict[str, list[int]]) -> dict[str, object]:
    """The outcome of a scope. Out of time, the process ends at once, by SIGPROF."""
    from barrierlab.sim.check.runner import check_one

    signal.setitimer(signal.ITIMER_PROF, limit_s)  # of this process, not of the clock: others may be at work
    begun = process_time()
    try:
        outcome = check_one(chosen, name)
    except Exception as error:  # whatever a mutant raises
        return {"scope": name, "verdict": "broken", "invariant": "RAISED", "why": f"{type(error).__name__}: {error}"}
    invariants = [each.invariant for each in outcome.violations]
    return {
        "scope": name,
        "verdict": outcome.verdict,
        "invariant": invariants[0] if invariants else outcome.verdict.upper(),
        "why": outcome.why,
        "transitions": outcome.transitions,
        "seconds": process_time() - begun,
        "reached": {name: imported.get(name, []) + lines for name, lines in (imported | _reached()).items()},
    }


def _reached() -> dict[str, list[int]]:
    """The lines that were reached since this was last asked, by module, if they are marked (`tests.mutants.tree`)."""
    lines = {}
    for name, module in sys.modules.items():
        marked = getattr(module, "reached_lines", None)
        if marked:
            lines[name.removeprefix("barrierlab.")] = sorted(marked)
            marked.clear()
    return lines


if __name__ == "__main__":
    main()
