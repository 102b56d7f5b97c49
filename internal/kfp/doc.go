// Package kfp is the front end for compiled Kubeflow pipelines (PipelineSpec 2.1.0): it reads and checks them, compiles
// them into a [program.Program] whose texts internal/expr/kfpexpr evaluates, and projects an engine's state back into
// KFP's Run.
//
// How a pipeline becomes a program:
//
//   - A component with a graph is a template with a [program.Graph], one with an executor a template with a
//     [program.Body]. Template keys are "local/<component>"; the root's is "pipeline/root". A component whose tasks inherit
//     a retry policy from the task around them is compiled once more for each such policy, under a scope of its own.
//   - A task is a call. It needs the tasks that it names and those whose outputs it takes, and runs when all of them
//     Succeeded, or when all of them Ended (ALL_UPSTREAM_TASKS_COMPLETED: exit tasks, ignore_upstream_failure).
//   - triggerPolicy.condition is a Condition of form "cel": it is evaluated after the call's arguments are resolved, in a
//     scope whose inputs.* are those arguments.
//   - An iterator is a Loop; the item reaches the component as an argument with the Ref "item". The loop's outputs are
//     lists over its iterations, those without the output left out; a loop in a loop gives lists of lists.
//   - "valueFromOneof" and several artifact selectors are a Binding's OneOf.
//   - A null given to an optional input counts as not given: the component's default applies. Defaults of optional inputs
//     are the template's, so that the engine can tell given from defaulted (KFP's cache key has the given ones only).
package kfp
