"""langgraph: a graph with `interrupt`, gone on with by `Command(resume)`, kept by PostgresSaver."""

from __future__ import annotations

import sys
import time
from typing import Any, ClassVar, TypedDict

from tests.benchmarks.systems import hands
from tests.benchmarks.systems.base import load


class LangGraph(hands.Hands):
    name: ClassVar[str] = "langgraph"
    given: ClassVar[str] = (
        f"`invoke` in processes of {hands.THREADS} threads with a PostgresSaver on a pool of "
        'connections; durability "sync": a step is kept before the next one begins'
    )
    module = "tests.benchmarks.systems.langgraph_graph"
    way = "sync"

    def open(self, workers: int) -> None:
        load("langgraph.graph")
        postgres = load("langgraph.checkpoint.postgres")
        self.url = self.stage.database("langgraph")
        with postgres.PostgresSaver.from_conn_string(self.url) as saver:
            saver.setup()
        super().open(workers)


class LangGraphAsync(LangGraph):
    name: ClassVar[str] = "langgraph, async"
    given: ClassVar[str] = (
        'the same processes with the default durability, "async": a step is kept while the next '
        "one runs, so that a crash may lose it"
    )
    way = "async"

    def __init__(self, twin: LangGraph) -> None:
        super().__init__(twin.stage)
        self._twin = twin

    def open(self, workers: int) -> None:
        if not self._twin.processes:
            load("langgraph.graph")
            self._twin.open(workers)
        self.join(self._twin)

    def close(self) -> None:
        """Leave the processes to whose they are."""


class Cycle(TypedDict, total=False):
    """The state of the graph."""

    a: float
    answer: Any
    b: float


def main() -> None:
    """Serve as one of the processes."""
    graph, types = load("langgraph.graph"), load("langgraph.types")
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    (url,) = sys.argv[1:]
    building = graph.StateGraph(Cycle)
    building.add_node("a", lambda _: {"a": time.time()})
    building.add_node("ask", lambda _: {"answer": types.interrupt("Go on?")})
    building.add_node("b", lambda _: {"b": time.time()})
    for before, after in ((graph.START, "a"), ("a", "ask"), ("ask", "b"), ("b", graph.END)):
        building.add_edge(before, after)
    # The three that PostgresSaver asks of connections which it did not make itself.
    wanted = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=1, max_size=hands.THREADS, kwargs=wanted) as pool:
        saver = load("langgraph.checkpoint.postgres").PostgresSaver(pool)
        app = building.compile(checkpointer=saver)

        def go_on(run: str, given: Any, durability: str) -> Any:
            config = {"configurable": {"thread_id": run}}
            return app.invoke(given, config, durability=durability)

        hands.serve(
            lambda run, way: go_on(run, {}, way),
            lambda run, way: float(go_on(run, types.Command(resume=True), way)["b"]),
        )


if __name__ == "__main__":
    main()
