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
    durability = "sync"

    def open(self, workers: int) -> None:
        load("langgraph.graph")
        postgres = load("langgraph.checkpoint.postgres")
        self.url = self.stage.database(f"langgraph_{self.durability}")
        with postgres.PostgresSaver.from_conn_string(self.url) as saver:
            saver.setup()
        super().open(workers)

    def words(self) -> list[str]:
        return [self.durability]


class LangGraphAsync(LangGraph):
    name: ClassVar[str] = "langgraph, async"
    given: ClassVar[str] = (
        'the same with its default durability, "async": a step is kept while the next one runs, '
        "so that a crash may lose it"
    )
    durability = "async"


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

    url, durability = sys.argv[1:]
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

        def go_on(run: str, given: Any) -> Any:
            config = {"configurable": {"thread_id": run}}
            return app.invoke(given, config, durability=durability)

        hands.serve(
            lambda run: go_on(run, {}),
            lambda run: float(go_on(run, types.Command(resume=True))["b"]),
        )


if __name__ == "__main__":
    main()
