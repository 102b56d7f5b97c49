"""A loop of tiny Python components: `compile FILE N` writes the pipeline, `local FOLDER N` runs it with kfp.local."""

import sys

from kfp import compiler, dsl, local


@dsl.component(base_image="python:3.12-slim")
def double(n: int) -> int:
    return 2 * n


def make(count):
    @dsl.pipeline(name="bench")
    def bench():
        with dsl.ParallelFor(list(range(count))) as n:
            double(n=n).set_caching_options(False)

    return bench


if __name__ == "__main__":
    what, where, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "compile":
        compiler.Compiler().compile(make(count), where)
    else:
        local.init(local.SubprocessRunner(use_venv=False), pipeline_root=where)
        make(count)()
