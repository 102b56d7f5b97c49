"""A pipeline in the Kubeflow Pipelines SDK: data, a model trained for each of several values, the best one chosen.

Compile it with `pip install kfp==2.17.0 && python3 pipeline.py`, which writes pipeline.yaml beside it. The components
need nothing but Python's standard library and the SDK's own runtime.
"""

from pathlib import Path
from typing import List

from kfp import compiler, dsl


@dsl.component(base_image="python:3.12-slim")
def make_data(rows: int, data: dsl.Output[dsl.Dataset]):
    """Points of a line with a bend: what the models have to find out."""
    import csv
    import random

    draw = random.Random(7)
    with open(data.path, "w", newline="") as file:
        writer = csv.writer(file)
        for i in range(rows):
            x = i / rows
            writer.writerow([x, 3 * x + x * x + draw.gauss(0, 0.05)])
    data.metadata["rows"] = rows


@dsl.component(base_image="python:3.12-slim")
def train(data: dsl.Input[dsl.Dataset], neighbours: int, model: dsl.Output[dsl.Model], metrics: dsl.Output[dsl.Metrics]) -> float:
    """The mean of the nearest points, judged by leaving each point out once."""
    import csv
    import json

    with open(data.path) as file:
        points = [(float(x), float(y)) for x, y in csv.reader(file)]

    def guess(x, others):
        nearest = sorted(others, key=lambda p: abs(p[0] - x))[:neighbours]
        return sum(y for _, y in nearest) / len(nearest)

    error = sum((guess(x, points[:i] + points[i + 1:]) - y) ** 2 for i, (x, y) in enumerate(points)) / len(points)
    with open(model.path, "w") as file:
        json.dump({"neighbours": neighbours, "points": points}, file)
    metrics.log_metric("error", error)
    return error


@dsl.component(base_image="python:3.12-slim")
def best(errors: List[float]) -> float:
    """The smallest error."""
    return min(errors)


@dsl.container_component
def announce(message: str, error: float):
    """A component that is no Python: any program in any image."""
    return dsl.ContainerSpec(image="busybox", command=["sh", "-c"], args=['echo "$0: the best model is off by $1"', message, error])


@dsl.pipeline(name="nearest-points", description="Trains a model for each number of neighbours and tells how good the best is.")
def nearest_points(message: str = "hello", rows: int = 60, neighbours: List[int] = [1, 3, 9], good_enough: float = 0.01) -> float:
    data = make_data(rows=rows)
    with dsl.ParallelFor(neighbours) as n:
        trained = train(data=data.outputs["data"], neighbours=n)
    chosen = best(errors=dsl.Collected(trained.outputs["Output"]))
    with dsl.If(chosen.output < good_enough, name="good enough"):
        announce(message=message, error=chosen.output)
    return chosen.output


if __name__ == "__main__":
    compiler.Compiler().compile(nearest_points, str(Path(__file__).with_suffix(".yaml")))
