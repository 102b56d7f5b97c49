"""Writes a workflow as people build it with Hera (PyPI: hera), as YAML, to standard output."""

from hera.shared import global_config
from hera.workflows import DAG, Container, Parameter, Workflow, script

global_config.image = "python:alpine3.23"


@script(command=["python3"], image_pull_policy="IfNotPresent")
def numbers(count: int):
    import json

    print(json.dumps(list(range(count))))


@script(command=["python3"], image_pull_policy="IfNotPresent", outputs=[Parameter(name="square", value_from={"path": "/tmp/square"})])
def square(number: int):
    with open("/tmp/square", "w") as f:
        f.write(str(number * number))


@script(command=["python3"], image_pull_policy="IfNotPresent")
def total(squares: list):
    print(sum(int(s) for s in squares))


with Workflow(generate_name="hera-", entrypoint="main", arguments=Parameter(name="count", value="3")) as w:
    say = Container(
        name="say", image="busybox", image_pull_policy="IfNotPresent", command=["echo"],
        args=["the total is {{inputs.parameters.total}}"], inputs=[Parameter(name="total")],
    )
    with DAG(name="main", outputs=[Parameter(name="total", value_from={"parameter": "{{tasks.total.outputs.result}}"})]):
        first = numbers(arguments={"count": "{{workflow.parameters.count}}"})
        each = square(arguments={"number": "{{item}}"}, with_param=first.result)
        last = total(arguments={"squares": "{{tasks.square.outputs.parameters.square}}"})
        first >> each >> last >> say(arguments={"total": last.result})

print(w.to_yaml())
