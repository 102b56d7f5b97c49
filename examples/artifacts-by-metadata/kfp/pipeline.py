"""Driver, executor and publisher as ordinary tasks of a Kubeflow pipeline: artifacts travel by their description.

  collect   makes two data sets: ordinary outputs
  driver    looks at what there is and decides what the executor works on: it sets its output's uri to that of the chosen
            input, so that nothing is uploaded
  train     the executor: it gets the artifact that the driver chose, as any input
  describe  gives the model's description as JSON, a placeholder of Sluice's
  publish   an importer that takes this description in place of a URI and adds metadata: again nothing is uploaded
  use       gets the published model, bytes and metadata

Compile it with `pip install kfp==2.17.0 && python3 pipeline.py`.
"""

from pathlib import Path

from kfp import compiler, dsl


@dsl.container_component
def collect(small: dsl.Output[dsl.Dataset], large: dsl.Output[dsl.Dataset]):
    return dsl.ContainerSpec(
        image="busybox",
        command=["sh", "-c"],
        args=['mkdir -p "$(dirname "$0")" "$(dirname "$1")" && seq 3 >"$0" && seq 100 >"$1"', small.path, large.path],
    )


@dsl.component(base_image="python:3.12-slim")
def driver(small: dsl.Input[dsl.Dataset], large: dsl.Input[dsl.Dataset], chosen: dsl.Output[dsl.Dataset]):
    print("choosing between", small.uri, "and", large.uri)
    chosen.uri = large.uri
    chosen.metadata["why"] = "there is more of it"


@dsl.container_component
def train(data: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    return dsl.ContainerSpec(
        image="busybox",
        command=["sh", "-c"],
        args=['mkdir -p "$(dirname "$1")" && awk "{ s += \\$1 } END { print s / NR }" "$0" >"$1"', data.path, model.path],
    )


@dsl.container_component
def describe(model: dsl.Input[dsl.Model], description: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="busybox",
        command=["sh", "-c"],
        args=['mkdir -p "$(dirname "$1")" && printf %s "$0" >"$1"', "{{$.inputs.artifacts['model'].json}}", description],
    )


@dsl.container_component
def use(model: dsl.Input[dsl.Model]):
    return dsl.ContainerSpec(
        image="busybox",
        command=["sh", "-c"],
        args=[
            'echo "the model in $0 says $(cat "$1")"; test "$(cat "$1")" = 50.5 && test "$0" = production',
            "{{$.inputs.artifacts['model'].metadata['stage']}}",
            model.path,
        ],
    )


@dsl.pipeline(name="artifacts-by-metadata")
def by_metadata():
    collected = collect()
    drove = driver(small=collected.outputs["small"], large=collected.outputs["large"])
    trained = train(data=drove.outputs["chosen"])
    described = describe(model=trained.outputs["model"])
    published = dsl.importer(
        artifact_uri=described.outputs["description"], artifact_class=dsl.Model, reimport=True, metadata={"stage": "production"}
    )
    use(model=published.output)


if __name__ == "__main__":
    compiler.Compiler().compile(by_metadata, str(Path(__file__).with_suffix(".yaml")))
